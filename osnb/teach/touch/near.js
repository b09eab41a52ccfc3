// Unknown classes by their distance to the closest known one: is near harder than far?

// Ranks from 1; equal values share their mean rank.
function ranks(values) {
  return values.map((v) => values.filter((x) => x < v).length + (values.filter((x) => x === v).length + 1) / 2);
}

// Spearman's rank correlation; NaN where one side does not vary.
function spearman(a, b) {
  const [x, y] = [ranks(a), ranks(b)], middle = (a.length + 1) / 2;
  const sum = (p, q) => p.reduce((total, v, i) => total + (v - middle) * (q[i] - middle), 0);
  return sum(x, y) / Math.sqrt(sum(x, x) * sum(y, y));
}

// AUROC of each class less the mean of its division, as notebook 24 ranks it.
function centred(rows) {
  return rows.map((r) => {
    const same = rows.filter((other) => other.split === r.split);
    return r.auroc - same.reduce((sum, other) => sum + other.auroc, 0) / same.length;
  });
}

// Classes up to so many steps, and the others: their number and mean AUROC.
function sides(rows, steps) {
  const summary = (part) => ({ classes: part.length, auroc: part.reduce((sum, r) => sum + r.auroc, 0) / part.length });
  return { near: summary(rows.filter((r) => r.steps <= steps)), far: summary(rows.filter((r) => r.steps > steps)) };
}

function explorer(root, data) {
  let place = Object.keys(data)[0], split = "", steps = 4, chosen = 0;
  const voice = spoken(), body = make("div", { class: "beside" });
  const rows = () => data[place].filter((r) => split === "" || r.split === Number(split));

  function controls() {
    const values = data[place].map((r) => r.steps);
    const splits = [...new Set(data[place].map((r) => r.split))].sort((a, b) => a - b);
    const named = rows().map((r, i) => [i, `${r.unknown} (split ${r.split})`]);
    steps = Math.min(Math.max(steps, Math.min(...values)), Math.max(...values) - 1);
    const pick = (select, value) => { select.querySelector("select").value = value; return select; };
    return [
      pick(choice("Division into known and unknown", [["", "all"], ...splits.map((s) => [s, `split ${s}`])], (value) => { [split, chosen] = [value, 0]; build(); focusOn(0); }), split),
      slider("Near: at most so many steps", { min: Math.min(...values), max: Math.max(...values) - 1, step: 1, value: steps, text: (x) => `${x}` }, (value) => { steps = value; show(); }),
      pick(choice("An unknown class", named, (value) => { chosen = Number(value); show(); }), chosen),
    ];
  }

  const panel = make("div"), picture = make("div"), found = make("div"), one = make("p");
  const focusOn = (i) => panel.querySelectorAll("select")[i].focus();

  function build() {
    panel.replaceChildren(...controls());
    show();
  }

  function show() {
    const all = rows(), values = data[place].map((r) => r.steps), { near, far } = sides(all, steps);
    const range = [Math.min(...values) - 1, Math.max(...values) + 1];
    const low = Math.floor(Math.min(...data[place].map((r) => r.auroc)) * 10) / 10;
    const ticks = Array.from({ length: range[1] - range[0] + 1 }, (_, i) => range[0] + i).filter((v) => v % 2 === 0);
    const graph = plot({
      x: { range, ticks, label: "steps in WordNet to the closest known class" },
      y: { range: [low, 1], ticks: Array.from({ length: Math.round((1 - low) * 10) + 1 }, (_, i) => Number((low + i / 10).toFixed(1))), label: "AUROC (MLS)" },
      width: 460, height: 340, title: `AUROC of unknown classes over steps, ${place}`,
    });
    const [edge] = graph.at([steps + 0.5, low]);
    graph.marks.append(make("svg:line", { x1: edge, x2: edge, y1: 12, y2: 298, style: "stroke:#111;stroke-width:2;stroke-dasharray:6 4" }));
    all.forEach((r, i) => {
      const [cx, cy] = graph.at([r.steps, r.auroc]), isNear = r.steps <= steps;
      graph.marks.append(make("svg:circle", {
        cx, cy, r: i === chosen ? 8 : 4, style: `fill:${isNear ? "#a3320b" : "#0b5cad"};opacity:${i === chosen ? 1 : 0.55};stroke:#111;stroke-width:${i === chosen ? 2 : 0};cursor:pointer`,
        click: () => { chosen = i; panel.querySelectorAll("select")[1].value = i; show(); },
      }, make("svg:title", {}, `${r.unknown}: ${r.steps} steps to ${r.closest}, AUROC ${number(r.auroc)}`)));
    });
    for (const [part, from, to, colour] of [[near, range[0], steps + 0.5, "#a3320b"], [far, steps + 0.5, range[1], "#0b5cad"]]) {
      if (part.classes) graph.marks.append(make("svg:path", { d: graph.path([[from, part.auroc], [to, part.auroc]]), style: `stroke:${colour};stroke-width:3` }));
    }
    picture.replaceChildren(graph.node);
    const rho = spearman(all.map((r) => r.steps), centred(all));
    found.replaceChildren(table("Mean AUROC of the classes", [["", "classes", "AUROC"],
      ["near", `${near.classes}`, number(near.auroc)], ["far", `${far.classes}`, number(far.auroc)], ["far less near", "", number(far.auroc - near.auroc)],
      ["rank correlation", `${all.length}`, number(rho)]]));
    const r = all[chosen];
    one.textContent = `${r.unknown}: ${r.steps} steps to ${r.closest}, the closest known class; AUROC ${number(r.auroc)}.`;
    voice.say(`Near ${near.classes} classes, AUROC ${number(near.auroc)}; far ${far.classes} classes, AUROC ${number(far.auroc)}. ${one.textContent}`);
  }

  body.append(make("div", {}, picture), make("div", {}, panel, one, found, voice.node));
  root.append(
    make("p", {}, "A point is an unknown class. Is it easier to tell from the known ones the further it is from them in meaning? Move the border between near and far, and look at single classes."),
    choice("Drawings of", Object.keys(data).map((name) => [name, name]), (value) => { [place, split, chosen] = [value, "", 0]; build(); }),
    body,
    make("p", { class: "note" }, "AUROC of each class against all known test drawings, by the largest logit, from the committed table of notebook 24. The horizontal lines are the means of near and far. A few classes in a bin differ by chance: notebook 24 says by how much."));
  build();
}
