// The rows of an answer: values with no more digits than are known, their intervals, and how they have moved.
import { h, number, s, count } from "./dom.js";

const KEPT = 24;

// The past of each number, by the columns that never were uncertain.
export class Trail {
  constructor() { this.points = new Map(); this.evolving = new Set(); }

  add(answer) {
    answer.columns.forEach((column, place) => { if (column.uncertain && column.numeric) this.evolving.add(place); });
    this.keys = keysOf(answer, this.evolving);
    for (const place of this.evolving) {
      const column = answer.columns[place];
      this.keys.forEach((key, row) => {
        const name = `${place}\u0000${key}`, points = this.points.get(name) ?? [];
        const value = number(column.values[row]);
        if (!Number.isFinite(value)) return;
        points.push({ value, low: column.low ? number(column.low[row]) : value, high: column.high ? number(column.high[row]) : value });
        if (points.length > KEPT) points.splice(1, 1);
        this.points.set(name, points);
      });
    }
  }

  past(row, place) { return this.points.get(`${place}\u0000${this.keys[row]}`) ?? []; }
}

export function keysOf(answer, evolving) {
  const seen = new Map();
  return Array.from({ length: answer.shown }, (_, row) => {
    const text = JSON.stringify(answer.columns.filter((_, place) => !evolving.has(place)).map((column) => column.values[row]));
    const times = (seen.get(text) ?? 0) + 1;
    seen.set(text, times);
    return `${text}${times}`;
  });
}

export function drawTable(home, answer, trail, ranged = false) {
  const heads = answer.columns.map((column) => h("th", { scope: "col", class: column.numeric ? "num" : null }, column.name, h("small", null, column.type)));
  const rows = Array.from({ length: answer.shown }, (_, row) => h("tr", { class: answer.tentative?.[row] ? "tentative" : null },
    answer.columns.map((column, place) => cell(column, row, trail && trail.evolving.has(place) ? trail.past(row, place) : [], ranged))));
  const caption = h("caption", null, `${count(answer.rows)} ${answer.rows === 1 ? "row" : "rows"}, ${answer.state}, from ${answer.source}`);
  const table = h("table", { class: answer.exact ? "exact" : "early" }, caption, h("thead", null, h("tr", null, heads)), h("tbody", null, rows));
  const notes = [];
  if (answer.shown < answer.rows) notes.push(`The first ${count(answer.shown)} of ${count(answer.rows)} rows are shown; an export has them all.`);
  if (answer.tentative?.some(Boolean)) notes.push("Rows in italics may still go.");
  const before = home.querySelector(".scroll"), at = before ? [before.scrollLeft, before.scrollTop] : [0, 0];
  const scroll = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rows of the answer" }, table);
  home.replaceChildren(scroll, ...notes.map((note) => h("p", { class: "note" }, note)));
  [scroll.scrollLeft, scroll.scrollTop] = at;
}

function cell(column, row, past, ranged) {
  const value = column.values[row];
  if (value === null) return h("td", { class: column.numeric ? "num null" : "null" }, "NULL");
  const interval = column.intervals?.[row] ?? "";
  const parts = [h("span", { class: "value" }, column.texts?.[row] ?? String(value))];
  if (interval && !ranged) parts.push(h("span", { class: "interval", title: surely(column, row) }, interval));
  if (ranged && column.surely_low) parts.push(h("span", { class: "interval" }, `${text(column.surely_low[row], "−∞")} … ${text(column.surely_high[row], "∞")}`));
  if (past.length > 1) parts.push(spark(past, !interval));
  return h("td", { class: column.numeric ? "num" : /^(date|timestamp|boolean)/.test(column.type) ? "whole" : null }, parts);
}

const text = (value, open) => (value === null || value === undefined ? open : typeof value === "number" ? value.toLocaleString("en") : String(value));

function surely(column, row) {
  if (!column.surely_low || (column.surely_low[row] === null && column.surely_high[row] === null)) return null;
  return `surely between ${text(column.surely_low[row], "−∞")} and ${text(column.surely_high[row], "∞")}`;
}

// A small curve with the band of the intervals around it.
function spark(past, settled) {
  const width = 56, height = 16;
  const ends = past.flatMap((each) => [each.low, each.high, each.value]).filter(Number.isFinite);
  const least = Math.min(...ends), span = Math.max(...ends) - least || 1;
  const x = (place) => (past.length < 2 ? 0 : (place * (width - 2)) / (past.length - 1) + 1);
  const y = (value) => height - 1.5 - ((Number.isFinite(value) ? value : least) - least) / span * (height - 3);
  const band = [...past.map((each, place) => `${x(place)},${y(each.high)}`), ...past.map((each, place) => `${x(place)},${y(each.low)}`).reverse()].join(" ");
  return s("svg", { class: settled ? "spark settled" : "spark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
    s("polygon", { points: band }), s("polyline", { points: past.map((each, place) => `${x(place)},${y(each.value)}`).join(" ") }));
}
