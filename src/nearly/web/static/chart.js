// A picture of an answer, chosen from its shape: numbers with a gauge, bars with error bars, or lines with bands over time.
import { h, number, s, short } from "./dom.js";
import { keysOf } from "./table.js";

const MOST_BARS = 40, MOST_LINES = 6, HEIGHT = 300;
const isTime = (column) => /^(date|timestamp)/.test(column.type);
const isWhole = (column) => /^(tiny|small|big)?int/.test(column.type);

export class Chart {
  constructor(home) { this.home = home; this.first = new Map(); this.measure = null; new ResizeObserver(() => this.again()).observe(home); }

  reset() { this.first.clear(); this.answer = null; }

  again() {
    if (this.answer && Math.abs((this.width ?? 0) - this.home.clientWidth) > 8) this.draw(this.answer, this.trail);
  }

  draw(answer, trail) {
    this.answer = answer;
    this.trail = trail;
    this.width = this.home.clientWidth;
    const shape = shapeOf(answer, trail);
    this.home.hidden = !shape;
    if (!shape) return;
    const measure = shape.measures.find((each) => each.name === this.measure) ?? shape.measures[0];
    const picture = shape.kind === "numbers" ? this.numbers(answer, shape) : shape.kind === "bars" ? this.bars(answer, shape, measure) : this.lines(answer, shape, measure);
    const choice = shape.kind !== "numbers" && shape.measures.length > 1 ? this.choice(shape.measures, measure) : null;
    this.home.replaceChildren(...[choice, picture].filter(Boolean));
  }

  choice(measures, chosen) {
    const select = h("select", { "aria-label": "Column that the chart shows", onchange: (event) => { this.measure = event.target.value; this.draw(this.answer, this.trail); } },
      measures.map((each) => h("option", { value: each.name, selected: each === chosen }, each.name)));
    return h("p", { class: "choice" }, select);
  }

  // The interval that a value had at first: it stays faintly, so that one sees how it narrowed.
  began(key, point) {
    if (!this.first.has(key) && Number.isFinite(point.low) && Number.isFinite(point.high)) this.first.set(key, point);
    return this.first.get(key) ?? point;
  }

  numbers(answer, shape) {
    const cards = shape.measures.map((column) => {
      const point = pointOf(column, 0), began = this.began(column.name, point);
      const ends = [began.low, began.high, point.low, point.high, point.value].filter(Number.isFinite);
      const least = Math.min(...ends), span = Math.max(...ends) - least;
      const x = (value) => 4 + (span ? (value - least) / span : 0.5) * 192;
      const gauge = s("svg", { viewBox: "0 0 200 20", class: "gauge", "aria-hidden": "true", preserveAspectRatio: "none" },
        s("line", { x1: 4, x2: 196, y1: 10, y2: 10, class: "rail" }),
        column.uncertain && Number.isFinite(point.low) && Number.isFinite(point.high) ? s("rect", { x: x(point.low), width: Math.max(2, x(point.high) - x(point.low)), y: 5, height: 10, rx: 3, class: "band" }) : null,
        s("rect", { x: x(point.value) - 1.5, width: 3, y: 2, height: 16, rx: 1.5, class: "dot" }));
      return h("div", { class: "card" }, h("div", { class: "label" }, column.name), h("div", { class: "big" }, column.texts[0]),
        h("div", { class: "interval" }, column.intervals[0] || (answer.exact ? "exact" : "\u00a0")), gauge);
    });
    return h("div", { class: "cards" }, cards);
  }

  bars(answer, shape, column) {
    const keys = keysOf(answer, this.trail.evolving);
    const bars = keys.map((key, row) => ({ label: shape.label(row), key: `${column.name}${key}`, tentative: answer.tentative?.[row], ...pointOf(column, row) })).filter((each) => Number.isFinite(each.value));
    if (!bars.length) return h("p", { class: "note" }, "nothing to draw yet");
    const longest = Math.max(...bars.map((each) => each.label.length));
    const flat = this.width < 560 || longest * 7 > (this.width - 80) / bars.length;
    return (flat ? this.flatBars : this.tallBars).call(this, bars, column);
  }

  tallBars(bars, column) {
    const width = Math.max(this.width, 280), left = 56, bottom = 28, top = 12;
    const scale = scaleOf(bars, this, true);
    const y = (value) => top + (1 - (value - scale.least) / (scale.most - scale.least)) * (HEIGHT - top - bottom);
    const step = (width - left - 8) / bars.length, bar = Math.min(64, step * 0.62);
    const parts = axis(scale, y, left, width);
    bars.forEach((each, place) => {
      const middle = left + step * (place + 0.5);
      parts.push(s("rect", { class: each.tentative ? "bar tentative" : "bar", x: middle - bar / 2, width: bar, y: Math.min(y(each.value), y(0)), height: Math.max(1, Math.abs(y(each.value) - y(0))), rx: 3 },
        s("title", null, titleOf(each))), ...whisker(each, this.began(each.key, each), (value) => y(value), middle, false));
      parts.push(s("text", { x: middle, y: HEIGHT - 8, class: "tick", "text-anchor": "middle" }, each.label));
    });
    return picture(width, HEIGHT, parts, bars, column);
  }

  flatBars(bars, column) {
    const width = Math.max(this.width, 260), row = 30, top = 8, left = Math.min(width * 0.36, 12 + 7.2 * Math.max(...bars.map((each) => each.label.length)));
    const height = top + row * bars.length + 24, scale = scaleOf(bars, this, true);
    const x = (value) => left + (value - scale.least) / (scale.most - scale.least) * (width - left - 16);
    const parts = scale.ticks.flatMap((tick) => [s("line", { x1: x(tick), x2: x(tick), y1: top, y2: height - 22, class: "grid" }), s("text", { x: x(tick), y: height - 6, class: "tick", "text-anchor": "middle" }, short(tick))]);
    bars.forEach((each, place) => {
      const middle = top + row * (place + 0.5);
      parts.push(s("rect", { class: each.tentative ? "bar tentative" : "bar", y: middle - 9, height: 18, x: Math.min(x(0), x(each.value)), width: Math.max(1, Math.abs(x(each.value) - x(0))), rx: 3 }, s("title", null, titleOf(each))),
        ...whisker(each, this.began(each.key, each), x, middle, true));
      const room = Math.floor((left - 12) / 7);
      parts.push(s("text", { x: left - 8, y: middle + 4, class: "tick", "text-anchor": "end" }, each.label.length > room ? `${each.label.slice(0, room - 1)}…` : each.label));
    });
    return picture(width, height, parts, bars, column);
  }

  lines(answer, shape, column) {
    const series = new Map();
    for (let row = 0; row < answer.shown; row++) {
      const at = shape.x(row), point = pointOf(column, row);
      if (!Number.isFinite(at) || !Number.isFinite(point.value)) continue;
      const name = shape.series(row);
      if (!series.has(name)) series.set(name, []);
      series.get(name).push({ at, ...point, text: shape.text(row) });
    }
    const all = [...series.values()].flat();
    if (all.length < 2) return h("p", { class: "note" }, "nothing to draw yet");
    for (const points of series.values()) points.sort((a, b) => a.at - b.at);
    const width = Math.max(this.width, 280), left = 56, bottom = 28, top = 12, right = series.size > 1 ? 96 : 16;
    const scale = scaleOf(all, this, false), from = Math.min(...all.map((each) => each.at)), to = Math.max(...all.map((each) => each.at));
    const y = (value) => top + (1 - (value - scale.least) / (scale.most - scale.least)) * (HEIGHT - top - bottom);
    const x = (value) => left + (to > from ? (value - from) / (to - from) : 0.5) * (width - left - right);
    const parts = axis(scale, y, left, width);
    [...series].forEach(([name, points], place) => {
      const colour = `c${place % 6}`, bounded = points.filter((each) => Number.isFinite(each.low) && Number.isFinite(each.high));
      if (bounded.some((each) => each.low !== each.high)) parts.push(s("polygon", { class: `area ${colour}`, points: [...bounded.map((each) => `${x(each.at)},${y(each.high)}`), ...bounded.map((each) => `${x(each.at)},${y(each.low)}`).reverse()].join(" ") }));
      parts.push(s("polyline", { class: `line ${colour}`, points: points.map((each) => `${x(each.at)},${y(each.value)}`).join(" ") }));
      if (points.length <= 60) parts.push(...points.map((each) => s("circle", { class: `point ${colour}`, cx: x(each.at), cy: y(each.value), r: 2.5 }, s("title", null, `${each.text}: ${titleOf(each)}`))));
      if (series.size > 1) parts.push(s("text", { x: x(points.at(-1).at) + 6, y: y(points.at(-1).value) + 4, class: `tick ${colour}` }, name));
    });
    const moments = [...new Map(all.map((each) => [each.at, each.text]))].sort((a, b) => a[0] - b[0]);
    const wide = 16 + 7 * Math.max(...moments.map(([, text]) => text.length)), step = Math.ceil(moments.length / Math.max(2, Math.min(6, Math.floor((width - left) / wide))));
    let free = -Infinity;
    moments.forEach(([at, text], place) => {
      const middle = Math.max(left + wide / 2 - 8, Math.min(width - wide / 2, x(at)));
      if (place % step || middle - wide / 2 < free) return;
      free = middle + wide / 2 - 8;
      parts.push(s("text", { x: middle, y: HEIGHT - 8, class: "tick", "text-anchor": "middle" }, text));
    });
    return picture(width, HEIGHT, parts, all, column);
  }
}

function shapeOf(answer, trail) {
  const numeric = answer.columns.filter((column) => column.numeric);
  if (!answer.shown || !numeric.length) return null;
  if (answer.rows === 1) return numeric.length <= 8 ? { kind: "numbers", measures: numeric } : null;
  const keys = answer.columns.filter((column, place) => !trail.evolving.has(place) && (!column.numeric || isWhole(column)));
  let dimensions = keys.filter((column) => !column.numeric);
  if (!dimensions.length) dimensions = keys.filter((column) => new Set(column.values).size === answer.shown).slice(0, 1);
  const measures = numeric.filter((column) => !dimensions.includes(column));
  if (!dimensions.length || !measures.length || dimensions.length > 2) return null;
  measures.sort((a, b) => trail.evolving.has(answer.columns.indexOf(b)) - trail.evolving.has(answer.columns.indexOf(a)));
  const along = dimensions.find(isTime) ?? dimensions.find((column) => column.numeric && answer.shown > 7);
  const others = dimensions.filter((column) => column !== along);
  if (along && answer.shown > 2) {
    const names = new Set(Array.from({ length: answer.shown }, (_, row) => others.map((column) => column.values[row]).join()));
    if (names.size <= MOST_LINES) return { kind: "lines", measures, x: (row) => (isTime(along) ? Date.parse(along.values[row]) : number(along.values[row])),
      text: labels(along), series: (row) => others.map((column) => String(column.values[row])).join() };
  }
  if (answer.shown > MOST_BARS) return null;
  const parts = dimensions.map(labels);
  return { kind: "bars", measures, label: (row) => parts.map((label) => label(row)).join(" · ") };
}

// Values as labels; of moments what tells them apart: the day, the time of one day, or both.
function labels(column) {
  const texts = column.values.map((value) => (value === null ? "NULL" : String(value)));
  if (!isTime(column)) return (row) => texts[row];
  const told = texts.filter((text) => text !== "NULL"), whole = told.every((text) => /^(00:00:00)?$/.test(text.slice(11, 19)));
  const [from, to] = whole ? [0, 10] : new Set(told.map((text) => text.slice(0, 10))).size === 1 ? [11, 19] : [0, 16];
  return (row) => (texts[row] === "NULL" ? "NULL" : texts[row].slice(from, to));
}

function pointOf(column, row) {
  const value = number(column.values[row]);
  return { value, low: column.low ? number(column.low[row]) : value, high: column.high ? number(column.high[row]) : value, told: `${column.texts?.[row] ?? value} ${column.intervals?.[row] ?? ""}`.trim() };
}

const titleOf = (each) => (each.label ? `${each.label}: ${each.told}` : each.told);

function whisker(point, began, place, middle, flat) {
  const line = (a, b, c, d, kind) => s("line", flat ? { x1: a, x2: b, y1: c, y2: d, class: kind } : { x1: c, x2: d, y1: a, y2: b, class: kind });
  const parts = [];
  if (Number.isFinite(began.low) && began.low !== began.high) parts.push(line(place(began.low), place(began.high), middle, middle, "ghost"));
  if (!Number.isFinite(point.low) || !Number.isFinite(point.high) || point.low === point.high) return parts;
  const low = place(point.low), high = place(point.high);
  return [...parts, line(low, high, middle, middle, "whisker"), line(low, low, middle - 5, middle + 5, "whisker"), line(high, high, middle - 5, middle + 5, "whisker")];
}

function scaleOf(points, chart, zero) {
  const ends = points.flatMap((each) => [each.value, each.low, each.high, ...(each.key ? [chart.first.get(each.key)?.low, chart.first.get(each.key)?.high] : [])]).filter(Number.isFinite);
  let least = Math.min(...ends, ...(zero ? [0] : [])), most = Math.max(...ends, ...(zero ? [0] : []));
  if (least === most) { least -= zero && least >= 0 ? 0 : 1; most += 1; }
  const rough = (most - least) / 5, size = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 2.5, 5, 10].find((each) => each * size >= rough) * size;
  least = Math.floor(least / step) * step;
  most = Math.ceil(most / step) * step;
  return { least, most, ticks: Array.from({ length: Math.round((most - least) / step) + 1 }, (_, place) => least + place * step) };
}

const axis = (scale, y, left, width) => scale.ticks.flatMap((tick) => [s("line", { x1: left, x2: width - 8, y1: y(tick), y2: y(tick), class: tick === 0 ? "grid zero" : "grid" }), s("text", { x: left - 8, y: y(tick) + 4, class: "tick", "text-anchor": "end" }, short(tick))]);

function picture(width, height, parts, points, column) {
  const values = points.map((each) => each.value);
  const told = `${column.name}: ${points.length} values from ${short(Math.min(...values))} to ${short(Math.max(...values))}; the table below has them with their intervals`;
  return s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": told }, ...parts);
}
