// The browser of tables, views, synopses and standing queries, and the history of queries.
import { $, call, count, duration, h } from "./dom.js";

const KEPT = 100, STORE = "nearly.history";

export class Side {
  constructor(editor, ask) {
    this.editor = editor;
    this.ask = ask;
    const tabs = [["tab-catalog", "catalog"], ["tab-history", "history"]];
    tabs.forEach(([tab], place) => {
      $(tab).addEventListener("click", () => this.open(tabs, place));
      $(tab).addEventListener("keydown", (event) => {
        if (["ArrowLeft", "ArrowRight"].includes(event.key)) { this.open(tabs, 1 - place); $(tabs[1 - place][0]).focus(); }
      });
    });
    $("menu").addEventListener("click", () => this.toggle());
    this.drawHistory();
  }

  toggle(open = !document.body.classList.contains("side")) {
    document.body.classList.toggle("side", open);
    $("menu").setAttribute("aria-expanded", String(open));
  }

  open(tabs, chosen) {
    tabs.forEach(([tab, panel], place) => {
      $(tab).setAttribute("aria-selected", String(place === chosen));
      $(tab).tabIndex = place === chosen ? 0 : -1;
      $(panel).hidden = place !== chosen;
    });
  }

  async load() {
    const found = await call("/api/catalog");
    this.editor.catalog = found;
    this.editor.draw();
    const groups = [["Tables", "tables", found.tables], ["Views", "views", found.views], ["Synopses", "synopses", found.synopses], ["Standing queries", "standing", found.standing]];
    const drawn = groups.filter(([, , things]) => things.length).map(([title, kind, things]) => h("section", null, h("h2", null, title), things.map((thing) => this.thing(kind, thing))));
    $("catalog").replaceChildren(...(drawn.length ? drawn : [h("p", { class: "note" }, "There is no table yet.")]));
  }

  thing(kind, thing) {
    const stale = kind === "views" ? Object.keys(thing.stale ?? {}).length > 0 : false;
    const about = thing.trouble ? "cannot be read" : kind === "views" ? (stale ? `${behind(thing.stale)} behind` : "fresh") : kind === "synopses" ? `of ${thing.table}` : thing.rows === undefined ? "" : `${count(thing.rows)} rows`;
    const columns = (thing.columns ?? []).map((each) => h("li", null, h("button", { class: "column", title: `insert ${each.name}`, onclick: () => this.editor.insert(quoted(each.name)) }, h("span", null, each.name), h("small", null, each.type ?? ""))));
    const summary = h("summary", null, h("span", { class: "name" }, thing.name), h("small", { class: stale ? "stale" : null }, about));
    const more = h("button", { class: "more", onclick: () => this.detail(kind, thing.name) }, "Details");
    const look = kind === "tables" || kind === "views" ? h("button", { class: "more", onclick: () => { this.editor.text = `select *\nfrom ${quoted(thing.name)}\nlimit 100`; this.ask(); this.toggle(false); } }, "First rows") : null;
    return h("details", { class: "thing" }, summary, h("ul", null, columns), h("p", { class: "actions" }, look, more));
  }

  async detail(kind, name) {
    const box = $("detail");
    let content;
    try { content = facts(await call(`/api/${kind}/${encodeURIComponent(name)}`)); }
    catch (trouble) { content = [h("p", { class: "note" }, trouble.message)]; }
    box.replaceChildren(h("header", null, h("h2", null, name), h("button", { class: "quiet icon", "aria-label": "Close", onclick: () => box.close() }, "✕")), ...content);
    box.showModal();
  }

  remember(entry) {
    const known = history().filter((each) => each.sql !== entry.sql);
    try { localStorage.setItem(STORE, JSON.stringify([entry, ...known].slice(0, KEPT))); } catch { /* a full store keeps what it has */ }
    this.drawHistory();
  }

  drawHistory() {
    const known = history();
    const list = known.map((each) => h("li", null, h("button", { class: "past", onclick: () => { this.editor.text = each.sql; this.toggle(false); $("sql").focus(); } },
      h("code", null, each.sql.length > 160 ? `${each.sql.slice(0, 160)}…` : each.sql), h("small", null, `${new Date(each.time).toLocaleString()} · ${each.told}${each.seconds === undefined ? "" : ` · ${duration(each.seconds)}`}`))));
    const clear = h("button", { class: "more", onclick: () => { localStorage.removeItem(STORE); this.drawHistory(); } }, "Forget all");
    $("history").replaceChildren(...(known.length ? [h("ul", { class: "pasts" }, list), clear] : [h("p", { class: "note" }, "Queries that you run are kept here, in this browser.")]));
  }
}

function history() {
  try { return JSON.parse(localStorage.getItem(STORE)) ?? []; } catch { return []; }
}

export const quoted = (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : `\`${name.replaceAll("`", "``")}\``);
const behind = (stale) => `${count(Object.values(stale).reduce((sum, each) => sum + each, 0))} rows`;

function rows(names, list) {
  return h("div", { class: "scroll" }, h("table", { class: "exact" }, h("thead", null, h("tr", null, names.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", null, list.map((each) => h("tr", null, names.map((name) => h("td", { class: typeof each[name] === "number" ? "num" : null }, told(each[name]))))))));
}

const told = (value) => (value === null || value === undefined ? "" : value === true ? "yes" : value === false ? "no" : typeof value === "number" ? count(value) : /^\d{4}-\d\d-\d\dT/.test(value) ? new Date(value).toLocaleString() : String(value));

function facts(thing) {
  const simple = Object.entries(thing).filter(([name, value]) => !["name", "columns", "text"].includes(name) && (typeof value !== "object" || value === null));
  const parts = [h("dl", { class: "facts" }, simple.filter(([, value]) => value !== null && value !== "").flatMap(([name, value]) => [h("dt", null, name), h("dd", null, told(value))]))];
  if (thing.text) parts.push(h("h3", null, "Query"), h("pre", { class: "plain" }, thing.text));
  for (const [name, value] of Object.entries(thing)) {
    if (Array.isArray(value) && value.length) parts.push(h("h3", null, name), typeof value[0] === "object" ? rows(Object.keys(value[0]), value) : h("p", null, value.join(", ")));
    else if (value && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length) parts.push(h("h3", null, name), h("dl", { class: "facts" }, Object.entries(value).flatMap(([key, each]) => [h("dt", null, key), h("dd", null, told(each))])));
  }
  return parts;
}
