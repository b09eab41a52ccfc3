// Two images as arrows in a plane of logits, and real test images around them.
//
// A point is [largest logit, log sum exp of all others]; MSP is the softmax of these two numbers.

const msp = ([z, rest]) => 1 / (1 + Math.exp(rest - z));
const odds = ([z, rest]) => z - rest;
const RULES = { MLS: ([z]) => z, MSP: odds }; // MSP's order is that of its log odds

// The highest threshold of a rule that accepts this share of the known points, at least.
function accepting(points, rule, share) {
  const falling = points.map(rule).sort((a, b) => b - a);
  return falling[Math.max(0, Math.ceil(share * falling.length - 1e-9) - 1)];
}

// Share of pairs, a known and an unknown point, that a rule orders right; a tie is a half.
function auroc(known, unknown, rule) {
  const [a, b] = [known.map(rule), unknown.map(rule)];
  let right = 0;
  for (const x of a) for (const y of b) right += (x > y) + (x === y) / 2;
  return right / (a.length * b.length);
}

function explorer(root, data) {
  const arrows = { A: [...data.pair[0]], B: [...data.pair[1]] };
  const colours = { A: "#0b5cad", B: "#a35c00" };
  const areas = Object.keys(RULES).map((rule) => `${rule} ${number(auroc(data.known, data.unknown, RULES[rule]))}`).join(", ");
  let share = 0.8;
  const every = [...data.known, ...data.unknown], voice = spoken();
  const span = (i) => {
    const values = every.map((p) => p[i]).concat(0);
    return [Math.floor(Math.min(...values)) - 1, Math.ceil(Math.max(...values)) + 1];
  };
  const even = ([low, high]) => Array.from({ length: high - low + 1 }, (_, i) => low + i).filter((v) => v % 2 === 0);
  const [xs, ys] = [span(0), span(1)];
  const graph = plot({
    x: { range: xs, ticks: even(xs), label: "largest logit (MLS)" },
    y: { range: ys, ticks: even(ys), label: "all other logits as one" },
    width: 460, height: 400, title: "Two arrows, test images, and the thresholds of MLS and MSP",
  });
  graph.node.setAttribute("role", "group");
  const cloud = make("svg:g", { "aria-hidden": "true" });
  for (const [points, style] of [[data.unknown, "fill:#f0a30a;opacity:.45"], [data.known, "fill:#0b5cad;opacity:.7"]]) {
    for (const point of points) {
      const [cx, cy] = graph.at(point);
      cloud.append(make("svg:circle", { cx, cy, r: 2, style }));
    }
  }
  const lines = make("svg:g"), rows = make("div"), counts = make("p");
  const clamp = (v, [low, high]) => Math.min(high, Math.max(low, v));
  const handles = Object.keys(arrows).map((name) => {
    const shaft = make("svg:line", { style: `stroke:${colours[name]};stroke-width:3` });
    const tip = make("svg:circle", { r: 11, style: `fill:#fff;stroke:${colours[name]};stroke-width:3` });
    const label = make("svg:text", { "text-anchor": "middle", style: "font-weight:700;font-size:13px" }, name);
    const node = make("svg:g", {
      tabindex: 0, role: "application", "aria-label": `Image ${name}: arrow keys move its tip`, "data-arrow": name, style: "cursor:grab;touch-action:none",
      keydown: (event) => {
        const by = { ArrowRight: [0.2, 0], ArrowLeft: [-0.2, 0], ArrowUp: [0, 0.2], ArrowDown: [0, -0.2] }[event.key];
        if (!by) return;
        event.preventDefault();
        event.stopPropagation();
        move(name, arrows[name].map((v, i) => v + by[i]));
      },
      pointerdown: (event) => { node.setPointerCapture(event.pointerId); node.focus(); event.preventDefault(); },
      pointermove: (event) => { if (node.hasPointerCapture(event.pointerId)) move(name, graph.value(event)); },
    }, shaft, tip, label);
    const place = () => {
      const [x0, y0] = graph.at([0, 0]), [x, y] = graph.at(arrows[name]);
      for (const [key, value] of Object.entries({ x1: x0, y1: y0, x2: x, y2: y })) shaft.setAttribute(key, value);
      for (const [key, value] of Object.entries({ cx: x, cy: y })) tip.setAttribute(key, value);
      label.setAttribute("x", x);
      label.setAttribute("y", y + 4.5);
    };
    return { node, place };
  });

  function move(name, to) {
    arrows[name] = [clamp(to[0], xs), clamp(to[1], ys)];
    show();
  }

  const above = (rule, threshold, point) => RULES[rule](point) >= threshold;

  function sentence() {
    const winner = (rule) => (RULES[rule](arrows.A) === RULES[rule](arrows.B) ? "neither" : RULES[rule](arrows.A) > RULES[rule](arrows.B) ? "A" : "B");
    return `MLS: A ${number(arrows.A[0], 2)}, B ${number(arrows.B[0], 2)}, ${winner("MLS")} first. MSP: A ${number(msp(arrows.A))}, B ${number(msp(arrows.B))}, ${winner("MSP")} first.`;
  }

  function show() {
    const cut = Object.fromEntries(Object.keys(RULES).map((rule) => [rule, accepting(data.known, RULES[rule], share)]));
    const low = Math.max(xs[0], ys[0] + cut.MSP), high = Math.min(xs[1], ys[1] + cut.MSP);
    lines.replaceChildren(
      make("svg:path", { d: graph.path([[cut.MLS, ys[0]], [cut.MLS, ys[1]]]), style: "stroke:#111;stroke-width:2" }),
      make("svg:path", { d: graph.path([[low, low - cut.MSP], [high, high - cut.MSP]]), style: "stroke:#111;stroke-width:2;stroke-dasharray:6 4" }));
    handles.forEach((x) => x.place());
    const verdict = (rule, point) => (above(rule, cut[rule], point) ? "accepts" : "rejects");
    rows.replaceChildren(table("The two arrows", [["", "MLS", "others", "MSP", "length", "MLS says", "MSP says"],
      ...Object.entries(arrows).map(([name, p]) => [name, number(p[0], 2), number(p[1], 2), number(msp(p)), number(Math.hypot(...p), 2), verdict("MLS", p), verdict("MSP", p)])]));
    const accepted = (rule) => data.unknown.filter((p) => above(rule, cut[rule], p)).length;
    const both = data.unknown.filter((p) => above("MLS", cut.MLS, p) && above("MSP", cut.MSP, p)).length;
    counts.textContent = `Of ${data.unknown.length} unknown images MLS accepts ${accepted("MLS")}, MSP ${accepted("MSP")}, both ${both}. AUROC: ${areas}.`;
    voice.say(sentence());
  }

  const longer = (by) => () => { for (const name of Object.keys(arrows)) arrows[name] = arrows[name].map((v, i) => clamp(v * by, [xs, ys][i])); show(); };
  const lifted = (by) => () => { for (const name of Object.keys(arrows)) arrows[name] = arrows[name].map((v, i) => clamp(v + by, [xs, ys][i])); show(); };
  const button = (text, click) => make("button", { type: "button", click }, text);
  graph.marks.append(cloud, lines, ...handles.map((x) => x.node));
  root.append(
    make("p", {}, "Each arrow is an image with two logits: the largest, and all others taken together, log Σ exp. MLS reads how far right its tip lies; MSP how far it lies below the diagonal. Drag a tip, or go to it with Tab and use the arrow keys."),
    make("div", { class: "beside" },
      make("div", {}, graph.node),
      make("div", {},
        make("div", { class: "buttons" },
          button("Arrows a tenth longer", longer(1.1)), button("shorter", longer(1 / 1.1)),
          button("1 more on all logits", lifted(1)), button("1 less", lifted(-1)),
          button("First arrows again", () => { [arrows.A, arrows.B] = data.pair.map((p) => [...p]); show(); })),
        rows, voice.node,
        slider("Known images accepted", { min: 0.5, max: 1, step: 0.01, value: share }, (value) => { share = value; show(); }),
        counts)),
    make("p", { class: "note" }, `Blue points are known test images, yellow ones unknown, of the network ${data.run}. Solid: MLS's threshold; dashed: MSP's; both accept the same share of the known images. At first the arrows are one known and one unknown image whose MSP is nearly the same.`));
  show();
}
