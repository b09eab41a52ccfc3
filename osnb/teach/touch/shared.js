// What the pad and the explorers share: elements, controls, a sentence that is read out, a plot.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

// An element of HTML, or of svg where its name begins with "svg:"; attributes, then what is in it.
function make(name, attributes = {}, ...inside) {
  const svg = name.startsWith("svg:");
  const node = svg ? document.createElementNS(SVG, name.slice(4)) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(key, value);
    else node.setAttribute(key, value);
  }
  node.append(...inside);
  return node;
}

const number = (x, digits = 3) => (Number.isFinite(x) ? x.toFixed(digits) : "–");

// A slider with its label and value; `moved` is called with the number at each change.
function slider(label, { min, max, step, value, text = (x) => number(x, 2) }, moved) {
  const readout = make("output", {}, text(value));
  const change = () => {
    readout.textContent = text(Number(input.value));
    input.setAttribute("aria-valuetext", readout.textContent);
    moved(Number(input.value));
  };
  const input = make("input", { type: "range", min, max, step, value, input: change });
  input.setAttribute("aria-valuetext", text(value));
  return make("label", { class: "slider" }, make("span", {}, label), input, readout);
}

// A choice with its label; options are [value, text] pairs, or groups {label, options}.
function choice(label, options, moved) {
  const option = ([value, text]) => make("option", { value }, text);
  const inside = options.map((x) =>
    x.label ? make("optgroup", { label: x.label }, ...x.options.map(option)) : option(x),
  );
  const select = make("select", { change: () => moved(select.value) }, ...inside);
  return make("label", { class: "choice" }, make("span", {}, label), select);
}

// A sentence that a screen reader reads out once nothing has changed for a while.
function spoken() {
  const node = make("p", { class: "spoken", role: "status", "aria-live": "polite" });
  let timer = 0;
  const say = (text, wait = 400) => {
    clearTimeout(timer);
    timer = setTimeout(() => (node.textContent = text), wait);
  };
  return { node, say };
}

// Rows of a table: the first row is its head, the first column heads of rows.
function table(caption, [head, ...rows]) {
  const line = (cells, all) =>
    make("tr", {}, ...cells.map((cell, i) => {
      const node = make(all || !i ? "th" : "td", all || !i ? { scope: all ? "col" : "row" } : {});
      node.append(cell);
      return node;
    }));
  return make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": caption }, make("table", {},
    make("caption", {}, caption),
    make("thead", {}, line(head, true)),
    make("tbody", {}, ...rows.map((row) => line(row, false)))));
}

// Axes with ticks; `at` turns a pair of numbers into pixels, `value` pixels into numbers.
function plot({ x, y, width = 360, height = 300, title }) {
  const [left, right, top, bottom] = [52, 12, 12, 42];
  const scale = ([low, high], from, to) => ({
    of: (v) => from + ((v - low) / (high - low)) * (to - from),
    back: (p) => low + ((p - from) / (to - from)) * (high - low),
  });
  const [sx, sy] = [scale(x.range, left, width - right), scale(y.range, height - bottom, top)];
  const at = ([a, b]) => [sx.of(a), sy.of(b)];
  const ticks = make("svg:g", { class: "ticks" });
  for (const tick of x.ticks) {
    ticks.append(
      make("svg:line", { x1: sx.of(tick), x2: sx.of(tick), y1: top, y2: height - bottom }),
      make("svg:text", { x: sx.of(tick), y: height - bottom + 16, "text-anchor": "middle" }, `${tick}`));
  }
  for (const tick of y.ticks) {
    ticks.append(
      make("svg:line", { x1: left, x2: width - right, y1: sy.of(tick), y2: sy.of(tick) }),
      make("svg:text", { x: left - 6, y: sy.of(tick) + 4, "text-anchor": "end" }, `${tick}`));
  }
  const middle = (top + height - bottom) / 2;
  const names = make("svg:g", { class: "names" },
    make("svg:text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, x.label),
    make("svg:text", {
      transform: `translate(12 ${middle}) rotate(-90)`, "text-anchor": "middle" }, y.label));
  const marks = make("svg:g");
  const node = make("svg:svg", {
    viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title, class: "plot",
  }, ticks, names, marks);
  const path = (points) => points.map((p, i) => `${i ? "L" : "M"}${at(p).map((v) => v.toFixed(2)).join(" ")}`).join("");
  const value = (event) => {
    const box = node.getBoundingClientRect();
    const [px, py] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    return [sx.back(px * width), sy.back(py * height)];
  };
  return { node, marks, at, path, value };
}
