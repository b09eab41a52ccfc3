// A pad: what is drawn on it goes through the networks of `data` while the line grows.
//
// A drawing is a list of strokes, a stroke a list of points [x, y], x to the right and y down.

const METHODS = ["softmax", "background", "entropic"]; // in the order in which they are shown
const SIDE = 32; // of the images, in pixels
const FINE = 4; // they are drawn so many times larger, and then averaged
const PEN = 6; // width of the pen there
const POINT = [[2, 3], [1, 4], [0, 5], [0, 5], [1, 4], [2, 3]]; // columns, from and to, of its rows

// As Quick, Draw! simplifies: moved to the corner, scaled to 255, a point for each pixel of way,
// Ramer-Douglas-Peucker with an epsilon of 2, whole numbers.
function simplified(strokes) {
  const points = strokes.flat();
  const low = [0, 1].map((i) => points.reduce((least, p) => Math.min(least, p[i]), Infinity));
  const size = points.reduce((most, p) => Math.max(most, p[0] - low[0], p[1] - low[1]), 0);
  const scale = size > 0 ? 255 / size : 1;
  return strokes.map((stroke) => {
    const way = resampled(stroke.map((p) => p.map((v, i) => (v - low[i]) * scale)));
    return fewer(way, 2).map((p) => p.map(Math.round));
  });
}

// Points one pixel apart along the way of the pen, and its last point.
function resampled(way) {
  const points = [way[0]];
  let left = 1; // to go until the next point
  for (let i = 1; i < way.length; i++) {
    const [[ax, ay], [bx, by]] = [way[i - 1], way[i]];
    const length = Math.hypot(bx - ax, by - ay);
    for (; left <= length; left += 1) {
      points.push([ax + ((bx - ax) * left) / length, ay + ((by - ay) * left) / length]);
    }
    left -= length;
  }
  return way.length > 1 ? [...points, way[way.length - 1]] : points;
}

// Ramer-Douglas-Peucker: points nearer than epsilon to the straight line through the ends go.
function fewer(points, epsilon) {
  const [a, b] = [points[0], points[points.length - 1]];
  const length = Math.hypot(b[0] - a[0], b[1] - a[1]);
  let [most, place] = [epsilon, 0];
  for (let i = 1; i < points.length - 1; i++) {
    const [x, y] = [points[i][0] - a[0], points[i][1] - a[1]];
    const off = length
      ? Math.abs(x * (b[1] - a[1]) - y * (b[0] - a[0])) / length
      : Math.hypot(x, y);
    if (off > most) [most, place] = [off, i];
  }
  if (!place) return points.length > 1 ? [a, b] : [a];
  return [...fewer(points.slice(0, place + 1), epsilon).slice(0, -1), ...fewer(points.slice(place), epsilon)];
}

// The SIDE x SIDE grey levels of a drawing in [0, 255], as osnb/datasets/quickdraw.py renders it.
function pixels(strokes) {
  const page = FINE * SIDE, sheet = new Uint8Array(page * page), points = strokes.flat();
  const middle = [0, 1].map((i) => {
    const all = points.map((p) => p[i]);
    return Math.min(...all) + Math.max(...all);
  });
  const place = (p) => p.map((v, i) => Math.floor((page * 255 + (2 * v - middle[i]) * (page - 2 * PEN) + 255) / 510));
  for (const stroke of strokes) {
    const way = stroke.map(place);
    way.slice(1).forEach((p, i) => line(sheet, page, way[i], p));
    for (const [x, y] of way) POINT.forEach(([a, b], row) => across(sheet, page, y - PEN / 2 + row, x - PEN / 2 + a, x - PEN / 2 + b));
  }
  const image = new Uint8Array(SIDE * SIDE);
  for (let i = 0; i < image.length; i++) {
    let sum = 0;
    const first = Math.floor(i / SIDE) * FINE * page + (i % SIDE) * FINE;
    for (let row = 0; row < FINE; row++) for (let x = 0; x < FINE; x++) sum += sheet[first + row * page + x];
    image[i] = Math.round((255 * sum) / FINE ** 2);
  }
  return image;
}

// A straight line as Pillow draws a wide one: a filled quadrilateral whose corners are whole numbers.
function line(sheet, page, [x0, y0], [x1, y1]) {
  const [dx, dy] = [x1 - x0, y1 - y0], length = Math.hypot(dx, dy);
  if (!length) return;
  const off = (share, d) => down((share / length) * d); // pixels on one side and on the other
  const corners = [
    [x0 - off(PEN / 2 - 1, dy), y0 + off(PEN / 2, dx)],
    [x1 - off(PEN / 2 - 1, dy), y1 + off(PEN / 2, dx)],
    [x1 + off(PEN / 2, dy), y1 - off(PEN / 2 - 1, dx)],
    [x0 + off(PEN / 2, dy), y0 - off(PEN / 2 - 1, dx)],
  ];
  const heights = corners.map((c) => c[1]);
  for (let y = Math.min(...heights); y <= Math.max(...heights); y++) {
    const ends = corners.flatMap((a, i) => {
      const b = corners[(i + 1) % 4];
      if (y < Math.min(a[1], b[1]) || y > Math.max(a[1], b[1])) return [];
      if (a[1] === b[1]) return [a[0], b[0]];
      return [Math.fround(Math.fround((y - a[1]) * Math.fround((b[0] - a[0]) / (b[1] - a[1]))) + a[0])];
    });
    across(sheet, page, y, Math.round(Math.min(...ends)), down(Math.max(...ends)));
  }
}

// To the nearest whole number, halves towards 0.
const down = (x) => Math.sign(x) * Math.ceil(Math.abs(x) - 0.5);

// Ink on a row, from one column to another.
function across(sheet, page, y, from, to) {
  if (y >= 0 && y < page) for (let x = Math.max(0, from); x <= Math.min(page - 1, to); x++) sheet[y * page + x] = 1;
}

// 16-bit floats, as text in base 64, to numbers.
function halves(text) {
  const bytes = Uint8Array.from(atob(text), (x) => x.charCodeAt(0));
  return Float32Array.from(new Uint16Array(bytes.buffer), (bits) => {
    const [exponent, rest] = [(bits >> 10) & 31, bits & 1023];
    const size = exponent ? 2 ** (exponent - 15) * (1 + rest / 1024) : (2 ** -14 * rest) / 1024;
    return bits & 0x8000 ? -size : size;
  });
}

// A network of `data`: its weights cut into layers, inputs before outputs.
function network({ layers, weights }) {
  const all = halves(weights);
  let from = 0;
  const next = (count) => all.subarray(from, (from += count));
  return layers.map(({ inputs, outputs, stride }) => ({
    inputs, outputs, stride,
    weights: next(inputs * outputs * (stride ? 9 : 1)),
    bias: next(outputs),
  }));
}

// A convolution 3 x 3 and ReLU; numbers lie by row, column and channel.
function convolved(input, side, { inputs, outputs, stride, weights, bias }) {
  const edge = side / stride, result = new Float32Array(edge * edge * outputs);
  const sum = new Float64Array(outputs);
  for (let place = 0; place < edge * edge; place++) {
    const [top, left] = [Math.floor(place / edge) * stride - 1, (place % edge) * stride - 1];
    sum.set(bias);
    for (let k = 0; k < 9; k++) {
      const [row, column] = [top + Math.floor(k / 3), left + (k % 3)];
      if (row < 0 || column < 0 || row >= side || column >= side) continue;
      for (let i = 0; i < inputs; i++) {
        const value = input[(row * side + column) * inputs + i];
        if (!value) continue; // white paper, and what ReLU has set to 0
        const first = (k * inputs + i) * outputs;
        for (let o = 0; o < outputs; o++) sum[o] += value * weights[first + o];
      }
    }
    for (let o = 0; o < outputs; o++) result[place * outputs + o] = Math.max(0, sum[o]);
  }
  return result;
}

// The logits of a network for the grey levels of an image.
function logits(layers, image) {
  let values = Float32Array.from(image, (v) => v / 255), side = SIDE;
  for (const layer of layers.slice(0, -1)) {
    values = convolved(values, side, layer);
    side /= layer.stride;
  }
  const { inputs, outputs, weights, bias } = layers[layers.length - 1], result = Array.from(bias);
  for (let i = 0; i < inputs; i++) {
    let mean = 0;
    for (let at = i; at < values.length; at += inputs) mean += values[at];
    mean /= side * side;
    for (let o = 0; o < outputs; o++) result[o] += mean * weights[i * outputs + o];
  }
  return result;
}

// Class, MSP and MLS of logits, of which the first `known` are classes that were taught.
function scored(values, known) {
  const first = values.slice(0, known), mls = Math.max(...first), most = Math.max(...values);
  const sum = values.reduce((total, z) => total + Math.exp(z - most), 0);
  return { class: first.indexOf(mls), msp: Math.exp(mls - most) / sum, mls };
}

// The places of a packed drawing, in base 64: of each stroke its length in two bytes, all x, all y.
function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (x) => x.charCodeAt(0)), strokes = [];
  for (let at = 0; at < bytes.length; ) {
    const count = bytes[at] + 256 * bytes[at + 1];
    const [x, y] = [bytes.subarray(at + 2, at + 2 + count), bytes.subarray(at + 2 + count, at + 2 + 2 * count)];
    strokes.push(Array.from(x, (v, i) => [v, y[i]]));
    at += 2 + 2 * count;
  }
  return strokes;
}

// What has to be said of the networks of `data`.
function notes({ classes, networks, tpr }) {
  const each = (what) => METHODS.map((name) => `${name} ${number(networks[name][what], 2)}`).join(", ");
  return [
    `A threshold is chosen on held-out drawings of the known classes, as by osnb threshold --tpr ${tpr}: with 95 % confidence it accepts at least ${100 * tpr} % of further such drawings. It is compared with MSP, the largest probability of a known class.`,
    `Each network was trained on 100 drawings of each of ${classes.length} classes. Accuracy on held-out drawings: ${each("accuracy")}. Held-out drawings of negative classes that are accepted: ${each("fpr")}. Background and entropic were shown other drawings of these classes, as drawings of no known class.`,
    "The drawings are from Quick, Draw!, made available by Google, Inc. under CC BY 4.0. Nothing that you draw leaves this page.",
  ];
}

function explorer(root, data) {
  const networks = Object.fromEntries(METHODS.map((name) => [name, network(data.networks[name])]));
  let strokes = [], fresh = true; // fresh: not a drawing of the test set as it was stored
  let said = "";

  const ink = make("svg:g", { class: "ink" });
  const paper = make("svg:svg", {
    viewBox: "-16 -16 288 288", class: "paper", role: "img", "aria-label": "Paper to draw on with mouse or finger",
    pointerdown: (event) => {
      event.preventDefault();
      if (!event.isPrimary || event.button) return; // a second finger, another button
      paper.setPointerCapture(event.pointerId);
      [strokes, fresh, said] = [[...strokes, [point(event)]], true, ""];
      picker.querySelector("select").value = "";
      show();
    },
    pointermove: (event) => {
      if (!paper.hasPointerCapture(event.pointerId)) return;
      strokes[strokes.length - 1].push(...(event.getCoalescedEvents?.() ?? []).concat(event).map(point));
      show();
    },
  }, ink);
  const point = (event) => {
    const box = paper.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * 288 - 16, ((event.clientY - box.top) / box.height) * 288 - 16];
  };

  const small = make("canvas", { width: SIDE, height: SIDE, role: "img", "aria-label": "The 32 by 32 pixels that the networks see" });
  const answers = make("div", { class: "answers" });
  const voice = spoken();
  const clear = () => {
    [strokes, said] = [[], ""];
    picker.querySelector("select").value = "";
    show();
  };
  const undo = () => {
    [strokes, fresh, said] = [strokes.slice(0, -1), true, ""];
    picker.querySelector("select").value = "";
    show();
  };
  const groups = ["known", "negative", "unknown"].map((role) => ({
    label: { known: "known: taught by name", negative: "negative: shown as 'none of these'", unknown: "unknown: never shown" }[role],
    options: data.drawings.flatMap((x, i) => (x.role === role ? [[i, x.name]] : [])),
  }));
  const picker = choice("or take a drawing from the test set", [["", "none"], ...groups], (value) => {
    if (value === "") return clear();
    const { name, role, strokes: packed } = data.drawings[value];
    [strokes, fresh, said] = [unpacked(packed), false, `Drawing of the test set: ${name}, ${role}. `];
    return show();
  });

  function answer() {
    const before = performance.now();
    const image = pixels(fresh ? simplified(strokes) : strokes);
    const rows = METHODS.map((name) => ({ name, ...scored(logits(networks[name], image), data.classes.length) }));
    root.dataset.milliseconds = performance.now() - before;
    return { image, rows };
  }

  function show() {
    ink.replaceChildren(...strokes.map((stroke) => make("svg:polyline", { points: [...stroke, stroke[stroke.length - 1]].join(" ") })));
    const none = !strokes.length;
    const { image, rows } = none ? { image: new Uint8Array(SIDE * SIDE), rows: METHODS.map((name) => ({ name })) } : answer();
    const context = small.getContext("2d"), levels = context.createImageData(SIDE, SIDE);
    image.forEach((level, i) => levels.data.set([level, level, level, 255], 4 * i));
    context.putImageData(levels, 0, 0);
    answers.replaceChildren(...rows.map((row) => card(row, none)));
    const sentence = rows.map((row) => `${row.name}: ${data.classes[row.class]}, MSP ${number(row.msp, 2)}, MLS ${number(row.mls, 1)}, ${verdict(row)}`);
    voice.say(none ? "Nothing is drawn yet." : `${said}${sentence.join("; ")}.`);
  }

  const verdict = (row) => (row.msp >= data.networks[row.name].threshold ? "accepted" : "rejected");

  function card(row, none) {
    const { threshold } = data.networks[row.name], accepted = !none && row.msp >= threshold;
    const percent = (x) => `${(100 * x).toFixed(1)}%`;
    return make("section", { class: `card ${none ? "none" : accepted ? "yes" : "no"}`, "data-network": row.name },
      make("h3", {}, row.name),
      make("p", { class: "class" }, none ? "–" : data.classes[row.class]),
      make("div", { class: "bar", "aria-hidden": "true" },
        make("i", { style: `width:${percent(none ? 0 : row.msp)}` }),
        make("b", { style: `left:${percent(threshold)}`, title: `threshold ${number(threshold)}` })),
      make("p", {}, none ? "MSP –, MLS –" : `MSP ${number(row.msp)}, MLS ${number(row.mls, 2)}`),
      make("p", { class: "verdict" }, none ? `threshold ${number(threshold)}` : `${accepted ? "✓ accepted" : "✗ rejected"} at ${number(threshold)}`));
  }

  root.append(
    make("p", {}, make("strong", {}, "Draw something that the networks were never taught, and make them sure of it.")),
    make("div", { class: "beside" },
      make("div", { class: "draw" }, paper,
        make("div", { class: "buttons" },
          make("button", { type: "button", click: undo }, "Undo a stroke"),
          make("button", { type: "button", click: clear }, "Clear"), small),
        picker),
      answers),
    voice.node,
    make("details", {}, make("summary", {}, `The ${data.classes.length} classes that they were taught`), make("p", {}, data.classes.join(", "))),
    ...notes(data).map((note) => make("p", { class: "note" }, note)));
  show();
}
