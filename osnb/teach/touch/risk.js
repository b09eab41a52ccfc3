// Risk and coverage of every threshold of a method, and what it costs.

// Operating points {odds, coverage, risk}: rejecting all, then each distinct score from the surest on.
function operating({ odds, right }) {
  const points = [{ odds: Infinity, coverage: 0, risk: 0 }];
  let errors = 0;
  odds.forEach((value, i) => {
    errors += !right[i];
    if (value !== odds[i + 1]) points.push({ odds: value, coverage: (i + 1) / odds.length, risk: errors / (i + 1) });
  });
  return points;
}

// Expected cost of a sample (Chow 1970).
const cost = ({ coverage, risk }, { wrong, rejection }) => wrong * coverage * risk + rejection * (1 - coverage);

// Place of the cheapest point; of equal ones that of the largest coverage.
function cheapest(points, prices) {
  const costs = points.map((p) => cost(p, prices));
  return costs.lastIndexOf(Math.min(...costs));
}

// Place of the point of the largest coverage whose risk is at most `most`.
const atRisk = (points, most) => points.reduce((last, p, i) => (p.risk <= most ? i : last), 0);

const probability = (odds) => 1 / (1 + Math.exp(-odds));

function explorer(root, data) {
  let pool = Object.keys(data)[0], method = Object.keys(data[pool])[0], place = 0;
  const prices = { wrong: 2, rejection: 1 }, voice = spoken();
  const all = Object.fromEntries(Object.entries(data).map(([name, methods]) => [name, Object.fromEntries(Object.entries(methods).map(([m, x]) => [m, operating(x)]))]));
  const points = () => all[pool][method];
  const picture = make("div", { class: "beside small" }), found = make("div");
  const position = slider("Threshold: coverage", { min: 0, max: 1, step: 0.001, value: 0, text: (x) => number(x) }, (value) => {
    place = points().reduce((last, p, i) => (p.coverage <= value + 1e-9 ? i : last), 0);
    show();
  });

  function go(to) {
    place = to;
    const input = position.querySelector("input");
    input.value = points()[place].coverage;
    position.querySelector("output").textContent = number(points()[place].coverage);
    input.setAttribute("aria-valuetext", number(points()[place].coverage));
    show();
  }

  function drawn(label, of, top) {
    const graph = plot({
      x: { range: [0, 1], ticks: [0, 0.25, 0.5, 0.75, 1], label: "coverage" }, y: { range: [0, top], ticks: [0, top / 2, top], label },
      width: 420, height: 300, title: `${label} over coverage of ${method}, ${pool}`,
    });
    for (const [name, curve] of Object.entries(all[pool])) {
      const thin = curve.filter((_, i) => i % 4 === 1 || i === curve.length - 1 || (label === "cost" && !i));
      graph.marks[name === method ? "append" : "prepend"](make("svg:path", { d: graph.path(thin.map((p) => [p.coverage, of(p)])), style: name === method ? "fill:none;stroke:#0b5cad;stroke-width:3" : "fill:none;stroke:#b9bfc5;stroke-width:1.2" }));
    }
    const best = points()[cheapest(points(), prices)], here = points()[place];
    for (const [point, style] of [[best, "fill:#fff;stroke:#17692f;stroke-width:3"], [here, "fill:#111"]]) {
      const [cx, cy] = graph.at([point.coverage, of(point)]);
      graph.marks.append(make("svg:circle", { cx, cy, r: 6, style }));
    }
    return graph.node;
  }

  function show() {
    const curve = points(), best = curve[cheapest(curve, prices)], here = curve[place];
    const top = Math.max(prices.wrong, prices.rejection, 0.5);
    picture.replaceChildren(drawn("risk", (p) => p.risk, 1), drawn("cost", (p) => cost(p, prices), top));
    const row = (name, p) => [name, p.odds === Infinity ? "reject all" : number(probability(p.odds)), number(p.coverage), number(p.risk), number(cost(p, prices))];
    found.replaceChildren(table("Two thresholds of this method", [["", "threshold", "coverage", "risk", "cost"], row("yours (black)", here), row("cheapest (green)", best)]));
    voice.say(`${method}: coverage ${number(here.coverage)}, risk ${number(here.risk)}, cost ${number(cost(here, prices))}; the cheapest threshold has coverage ${number(best.coverage)} and cost ${number(cost(best, prices))}.`);
  }

  const price = (label, name) => slider(label, { min: 0, max: 10, step: 0.1, value: prices[name], text: (x) => number(x, 1) }, (value) => { prices[name] = value; show(); });
  const names = (object) => Object.keys(object).map((name) => [name, name]);
  const button = (text, click) => make("button", { type: "button", click }, text);
  root.append(
    make("p", {}, "A threshold accepts the surest samples. Coverage is the share that is accepted, risk the share of errors among these. An accepted error costs w, a rejection d: a sample costs w · coverage · risk + d · (1 − coverage) on average."),
    choice("Pool of test samples", names(data), (value) => { pool = value; go(Math.min(place, points().length - 1)); }),
    choice("Method", names(data[pool]), (value) => { method = value; go(Math.min(place, points().length - 1)); }),
    position,
    price("w, an accepted error", "wrong"), price("d, a rejection", "rejection"),
    make("div", { class: "buttons" },
      button("To the cheapest threshold", () => go(cheapest(points(), prices))),
      button("To a risk of 0.4", () => go(atRisk(points(), 0.4)))),
    picture, found, voice.node,
    make("p", { class: "note" }, "One network or ensemble of each method, split 0, from the committed scores tables of notebook 31. The threshold is in units of a probability. Grey: the other methods."));
  go(cheapest(points(), prices));
}
