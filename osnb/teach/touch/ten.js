// Ten samples to drag along the axis of scores; every curve and every convention follows.
//
// A sample is {name, known, right, score, target}; a higher score means more known, and target is
// the score of a known sample's true class, which the convention palechor reads.

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
const falling = (values) => [...new Set(values)].sort((a, b) => b - a);

// Area under points [x, y] by trapezoids.
const area = (points) =>
  points.slice(1).reduce((sum, [x, y], i) => sum + ((x - points[i][0]) * (y + points[i][1])) / 2, 0);

// Share of the samples with this property whose score `accepts` says yes to.
const rate = (samples, accepts, property = () => true) =>
  samples.filter((s) => accepts(s) && property(s)).length / samples.length;

// FPR, CCR and TPR at each distinct score, ties together, from the one that accepts nothing.
function levels(samples) {
  const [known, unknown] = [samples.filter((s) => s.known), samples.filter((s) => !s.known)];
  return [Infinity, ...falling(samples.map((s) => s.score))].map((t) => {
    const accepts = (s) => s.score >= t;
    return { t, fpr: rate(unknown, accepts), ccr: rate(known, accepts, (s) => s.right), tpr: rate(known, accepts) };
  });
}

// Points [FPR, CCR] of the OSCR curve, by convention.
function oscr(samples) {
  const [known, unknown] = [samples.filter((s) => s.known), samples.filter((s) => !s.known)];
  const target = known.map((s) => ({ ...s, score: s.right ? s.score : s.target }));
  const arpl = sorted(samples).map((s, i, down) => [
    down.slice(0, i + 1).filter((x) => !x.known).length / unknown.length,
    down.slice(0, i).filter((x) => x.right).length / known.length,
  ]);
  return {
    exact: levels(samples).map((x) => [x.fpr, x.ccr]),
    palechor: falling(target.map((s) => s.score)).slice(1).map((t) => [
      rate(unknown, (s) => s.score > t), rate(target, (s) => s.score > t, (s) => s.right)]),
    bisgin: falling(unknown.map((s) => s.score)).map((t) => [
      rate(unknown, (s) => s.score >= t), rate(known, (s) => s.score >= t, (s) => s.right)]),
    arpl,
  };
}

// Down the list; of a tie unknown samples come first, then wrong ones.
const sorted = (samples) => [...samples].sort((a, b) => b.score - a.score || a.known - b.known || a.right - b.right);

// Points [coverage, risk]: of a tie the mean over its orders, or kim's, the order of the file.
function risks(samples) {
  const down = [...samples].sort((a, b) => b.score - a.score); // stable
  const errors = (part) => part.filter((s) => !s.right).length;
  const exact = down.map((s, i) => {
    const [above, tie] = [down.filter((x) => x.score > s.score), down.filter((x) => x.score === s.score)];
    return errors(above) + (errors(tie) * (i + 1 - above.length)) / tie.length;
  });
  const kim = down.map((_, i) => errors(down.slice(0, i + 1)));
  const points = (all) => all.map((count, i) => [(i + 1) / down.length, count / (i + 1)]);
  return { exact: points(exact), kim: points(kim) };
}

// Points [recall, precision] of finding the unknown samples, lowest score first.
function precisions(samples) {
  const unknown = samples.filter((s) => !s.known).length;
  const rows = levels(samples).map(({ t }) => samples.filter((s) => s.score < t)).reverse();
  return [...rows].map((refused) => {
    const hits = refused.filter((s) => !s.known).length;
    return [hits / unknown, refused.length ? hits / refused.length : 1];
  });
}

// FPR at a TPR, by convention.
function falseAt(samples, tpr) {
  const [steps, down] = [levels(samples), sorted(samples)];
  const count = (known) => samples.filter((s) => s.known === known).length;
  const share = (i, known) => down.slice(0, i + 1).filter((s) => s.known === known).length / count(known);
  const off = down.map((_, i) => Math.abs(share(i, true) - tpr));
  const last = off.lastIndexOf(Math.min(...off));
  return {
    exact: steps.find((x) => x.tpr >= tpr).fpr,
    kim: share(last, false),
    openood: 1 - steps.filter((x) => 1 - x.fpr >= tpr).pop().tpr,
  };
}

// CCR at an FPR, by convention; NaN is the dash of those that have no such point.
function rightAt(curves, fpr) {
  const largest = (points) => (points.length ? Math.max(...points.map((p) => p[1])) : NaN);
  const off = curves.palechor.map((p) => Math.abs(p[0] - fpr)), least = Math.min(...off);
  return {
    exact: largest(curves.exact.filter((p) => p[0] <= fpr)),
    palechor: least < 0.1 * fpr ? largest(curves.palechor.filter((_, i) => off[i] === least)) : NaN,
    bisgin: largest(curves.bisgin.filter((p) => p[0] < fpr)),
  };
}

// All numbers of ten samples: measure, then convention.
function measures(samples, { fpr, tpr }) {
  const [known, unknown] = [samples.filter((s) => s.known), samples.filter((s) => !s.known)];
  const pairs = known.flatMap((a) => unknown.map((b) => a.score - b.score));
  const [curves, risk, found] = [oscr(samples), risks(samples), precisions(samples)];
  const wrong = mean(samples.map((s) => !s.right));
  const best = wrong + (wrong < 1 ? (1 - wrong) * Math.log(1 - wrong) : 0);
  const aurc = Object.fromEntries(Object.entries(risk).map(([name, points]) => [name, mean(points.map((p) => p[1]))]));
  return {
    "OSCR area": Object.fromEntries(Object.entries(curves).map(([name, points]) => [name, area(points)])),
    [`CCR at FPR ${fpr}`]: rightAt(curves, fpr),
    [`FPR at TPR ${tpr}`]: falseAt(samples, tpr),
    AUROC: { exact: mean(pairs.map((d) => (d > 0) + (d === 0) / 2)), kim: mean(pairs.map((d) => d > 0)) },
    AURC: aurc,
    "E-AURC": { exact: aurc.exact - best, kim: aurc.kim - best },
    AP: {
      exact: found.slice(1).reduce((sum, [r, p], i) => sum + (r - found[i][0]) * p, 0),
      openood: area(found),
    },
  };
}

const COLOURS = { exact: "#0b5cad", palechor: "#a3320b", bisgin: "#17692f", arpl: "#6a3d9a", kim: "#a3320b" };
const DASHES = { exact: "", palechor: "7 3", bisgin: "2 3", arpl: "9 3 2 3", kim: "7 3" };
const STEP = 0.05; // scores are moved by so much, so that ties are easily made

function explorer(root, data) {
  let samples = data.samples.map((s) => ({ ...s }));
  let threshold = 0.5;
  const voice = spoken();
  const rates = { range: [0, 1], ticks: [0, 0.5, 1] };
  const graph = (x, y, title) => plot({ x: { ...rates, label: x }, y: { ...rates, label: y }, title, width: 300, height: 250 });
  const graphs = {
    OSCR: graph("FPR", "CCR", "OSCR curves by convention"),
    ROC: graph("FPR", "TPR", "ROC curve"),
    risk: graph("coverage", "risk", "Risk over coverage"),
    precision: graph("recall", "precision", "Precision over recall of the unknown"),
  };
  const wide = root.clientWidth && root.clientWidth < 600 ? 380 : 640; // so that a finger hits a sample
  const axis = make("svg:svg", { viewBox: `0 0 ${wide} 132`, class: "plot axis", style: "max-width:100%", role: "group", "aria-label": "Ten samples on the axis of scores" });
  const numbers = make("div");
  const where = (score) => 20 + score * (wide - 40);

  function move(sample, score, aloud = true) {
    sample.score = Math.min(1, Math.max(0, Math.round(score / STEP) * STEP));
    sample.score = Number(sample.score.toFixed(2));
    show();
    if (aloud) voice.say(`${sample.name} scores ${number(sample.score, 2)}. ${sentence()}`);
  }

  const handles = samples.map((_, i) => {
    const key = (event) => {
      const by = { ArrowRight: STEP, ArrowUp: STEP, ArrowLeft: -STEP, ArrowDown: -STEP }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      move(samples[i], samples[i].score + by);
    };
    const handle = make("svg:g", {
      tabindex: 0, role: "slider", "aria-valuemin": 0, "aria-valuemax": 1, "data-sample": samples[i].name, style: "cursor:grab;touch-action:none", keydown: key,
      pointerdown: (event) => { handle.setPointerCapture(event.pointerId); handle.focus(); event.preventDefault(); },
      pointermove: (event) => {
        if (!handle.hasPointerCapture(event.pointerId)) return;
        const box = axis.getBoundingClientRect();
        move(samples[i], (((event.clientX - box.left) / box.width) * wide - 20) / (wide - 40));
      },
    });
    return handle;
  });

  function drawAxis() {
    const line = make("svg:g", { class: "ticks" }, make("svg:line", { x1: 20, x2: wide - 20, y1: 100, y2: 100, style: "stroke:#333" }));
    for (const t of [0, 0.25, 0.5, 0.75, 1]) line.append(make("svg:text", { x: where(t), y: 122, "text-anchor": "middle", style: "font-size:14px" }, `${t}`));
    const cut = make("svg:line", { x1: where(threshold - STEP / 2), x2: where(threshold - STEP / 2), y1: 4, y2: 100, style: "stroke:#111;stroke-width:2;stroke-dasharray:4 3" });
    samples.forEach((s, i) => {
      const below = samples.slice(0, i).filter((x) => x.score === s.score).length;
      const tied = samples.filter((x) => x.score === s.score).length; // the picture has room for 66 above the first
      const [x, y] = [where(s.score), 82 - below * Math.min(27, 66 / Math.max(tied - 1, 1))];
      const kind = s.known ? (s.right ? "known, right" : "known, wrong") : "unknown";
      const colour = s.known ? (s.right ? "#0b5cad" : "#fff") : "#f0a30a";
      const shape = s.known
        ? make("svg:circle", { cx: x, cy: y, r: 12, style: `fill:${colour};stroke:#0b5cad;stroke-width:2` })
        : make("svg:rect", { x: x - 11, y: y - 11, width: 22, height: 22, style: `fill:${colour};stroke:#5c3d00;stroke-width:2` });
      handles[i].replaceChildren(shape, make("svg:text", { x, y: y + 5, "text-anchor": "middle", style: `font-size:14px;font-weight:600;fill:${s.known && s.right ? "#fff" : "#111"}` }, s.name));
      handles[i].setAttribute("aria-label", `${s.name}, ${kind}`);
      handles[i].setAttribute("aria-valuenow", s.score);
      handles[i].setAttribute("aria-valuetext", `${number(s.score, 2)}`);
    });
    if (handles[0].parentNode) { // focus stays where it is
      axis.querySelectorAll(":scope > :not([role=slider])").forEach((x) => x.remove());
      axis.prepend(line, cut);
    } else axis.append(line, cut, ...handles);
  }

  function drawCurves() {
    const [curves, risk, steps] = [oscr(samples), risks(samples), levels(samples)];
    const lines = ({ path, marks }, named) => marks.replaceChildren(...Object.entries(named).map(([name, points]) =>
      make("svg:path", { d: path(points), style: `fill:none;stroke:${COLOURS[name]};stroke-width:2.5;stroke-dasharray:${DASHES[name]}` })));
    lines(graphs.OSCR, curves);
    lines(graphs.ROC, { exact: steps.map((x) => [x.fpr, x.tpr]) });
    lines(graphs.risk, risk);
    lines(graphs.precision, { exact: precisions(samples) });
    const here = at(), accepted = samples.filter((s) => s.score >= threshold);
    const dot = (graph, point) => { const [cx, cy] = graph.at(point); graph.marks.append(make("svg:circle", { cx, cy, r: 5, style: "fill:#111" })); };
    dot(graphs.OSCR, [here.fpr, here.ccr]);
    dot(graphs.ROC, [here.fpr, here.tpr]);
    if (accepted.length) dot(graphs.risk, [accepted.length / samples.length, mean(accepted.map((s) => !s.right))]);
  }

  const at = () => levels(samples).filter((x) => x.t >= threshold).pop();
  const sentence = () => {
    const { ccr, fpr } = at(), m = measures(samples, data);
    return `Accepting from ${number(threshold, 2)}: CCR ${number(ccr, 2)}, FPR ${number(fpr, 2)}. OSCR area ${number(m["OSCR area"].exact)}, AUROC ${number(m.AUROC.exact)}, AURC ${number(m.AURC.exact)}.`;
  };

  function show() {
    drawAxis();
    drawCurves();
    const all = measures(samples, data), conventions = ["exact", "palechor", "bisgin", "arpl", "kim", "openood"];
    numbers.replaceChildren(table("Every measure under each convention", [["", ...conventions],
      ...Object.entries(all).map(([name, values]) => [name, ...conventions.map((c) => (c in values ? number(values[c]) : ""))])]));
  }

  const key = Object.keys(DASHES).slice(0, 4).map((name) => make("span", { style: "white-space:nowrap;margin-right:1rem" },
    make("svg:svg", { width: 34, height: 10, "aria-hidden": "true" }, make("svg:path", { d: "M0 5H34", style: `stroke:${COLOURS[name]};stroke-width:3;stroke-dasharray:${DASHES[name]}` })), ` ${name}${name === "palechor" ? " (kim in risk)" : ""}`));
  root.append(
    make("p", {}, "Drag a sample, or go to it with Tab and move it with the arrow keys. Blue circles are known samples (d, white, is classified wrong), yellow squares are unknown ones; samples on top of each other are tied. What lies right of the dashed line is accepted."),
    axis,
    slider("Accept from a score of", { min: 0, max: 1, step: STEP, value: threshold }, (value) => { threshold = value; show(); voice.say(sentence()); }),
    make("div", { class: "buttons" }, make("button", { type: "button", click: () => { samples.forEach((s, i) => (s.score = data.samples[i].score)); show(); voice.say(`The first scores again. ${sentence()}`); } }, "First scores again")),
    voice.node,
    make("p", {}, ...key),
    make("div", { class: "beside small" }, ...Object.values(graphs).map((x) => x.node)),
    numbers);
  show();
  voice.say(sentence(), 0);
}
