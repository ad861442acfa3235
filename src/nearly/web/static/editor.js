// A plain text area over its own coloured text, with completion of tables, columns, functions and words.
import { $, h } from "./dom.js";

const WORDS = ("select from where group by order having limit join left right full inner outer cross on using as and or not in is null like between case when then else end " +
  "distinct union all intersect except with over partition rows asc desc nulls first last exists interval date timestamp cast true false within confidence seconds version of").split(" ");
const AFTER_TABLE = new Set(["from", "join", "into", "update", "table"]);
const TOKENS = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*'?)|("[^"]*"?|`[^`]*`?)|(\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b)|([A-Za-z_][\w]*)|([^\w\s])|(\s+)/gi;
const keywords = new Set(WORDS);

export class Editor {
  constructor(changed) {
    this.area = $("sql");
    this.paint = $("paint");
    this.list = $("offers");
    this.changed = changed;
    this.catalog = { tables: [], views: [], functions: [] };
    this.offers = [];
    this.chosen = 0;
    this.area.addEventListener("input", () => { this.draw(); this.complete(false); this.changed(); });
    this.area.addEventListener("scroll", () => { this.paint.scrollTop = this.area.scrollTop; });
    this.area.addEventListener("keydown", (event) => this.key(event));
    this.area.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    this.draw();
  }

  get text() { return this.area.value; }
  set text(value) { this.area.value = value; this.draw(); this.close(); this.changed(); }
  get isOpen() { return !this.list.hidden; }

  draw() {
    const parts = [];
    for (const [all, comment, string, quoted, digits, word] of this.text.matchAll(TOKENS)) {
      const kind = comment ? "comment" : string ? "string" : quoted ? "name" : digits ? "digits" : word && keywords.has(word.toLowerCase()) ? "word"
        : word && this.isKnown(word) ? "name" : null;
      parts.push(kind ? h("span", { class: `t-${kind}` }, all) : all);
    }
    this.paint.replaceChildren(...parts, "\n");
    this.area.style.height = "auto";
    this.area.style.height = `${Math.min(Math.max(this.area.scrollHeight, 96), innerHeight * 0.4)}px`;
    this.paint.scrollTop = this.area.scrollTop;
  }

  isKnown(word) {
    return [...this.catalog.tables, ...this.catalog.views].some((each) => each.name.toLowerCase() === word.toLowerCase());
  }

  insert(text) {
    const { selectionStart: from, selectionEnd: to } = this.area;
    this.area.setRangeText(text, from, to, "end");
    this.area.focus();
    this.draw();
    this.changed();
  }

  key(event) {
    if ((event.ctrlKey || event.metaKey) && event.key === " ") { event.preventDefault(); this.complete(true); return; }
    if (!this.isOpen) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); this.choose((this.chosen + step + this.offers.length) % this.offers.length); }
    else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey || event.key === "Tab") { event.preventDefault(); this.take(this.chosen); }
    else if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); this.close(); }
  }

  complete(asked) {
    const before = this.text.slice(0, this.area.selectionStart);
    const typed = /[\w]*$/.exec(before)[0];
    const dotted = /([\w]+)\.[\w]*$/.exec(before)?.[1];
    if ((!typed && !dotted && !asked) || /--[^\n]*$/.test(before) || (before.split("'").length - 1) % 2) { this.close(); return; }
    const wanted = typed.toLowerCase();
    const found = this.candidates(before.slice(0, before.length - typed.length), dotted)
      .filter((each) => each.name.toLowerCase().startsWith(wanted) && each.name.toLowerCase() !== wanted);
    const seen = new Set();
    this.offers = found.filter((each) => !seen.has(each.name) && seen.add(each.name)).slice(0, 12);
    this.typed = typed;
    if (!this.offers.length) { this.close(); return; }
    this.open(before);
  }

  candidates(before, dotted) {
    const things = [...this.catalog.tables, ...this.catalog.views];
    const columns = (thing) => (thing.columns ?? []).map((each) => ({ name: each.name, kind: each.type ?? "column" }));
    if (dotted) {
      const thing = this.named(dotted);
      return thing ? columns(thing) : [];
    }
    const tables = things.map((each) => ({ name: each.name, kind: each.kind }));
    const last = /([A-Za-z]+)\s*$/.exec(before)?.[1]?.toLowerCase();
    if (AFTER_TABLE.has(last) || /\bfrom\s+[\w\s,]*,\s*$/i.test(before)) return tables;
    const mentioned = things.filter((each) => new RegExp(`\\b${each.name.replace(/\W/g, "\\$&")}\\b`, "i").test(this.text));
    return [...(mentioned.length ? mentioned : things).flatMap(columns), ...WORDS.map((name) => ({ name, kind: "word" })),
      ...this.catalog.functions.map((name) => ({ name: `${name}(`, kind: "function" })), ...tables];
  }

  // The table or view that a name or an alias stands for.
  named(name) {
    const things = [...this.catalog.tables, ...this.catalog.views];
    const find = (wanted) => things.find((each) => each.name.toLowerCase() === wanted.toLowerCase());
    const alias = new RegExp(`\\b(\\w+)\\s+(?:as\\s+)?${name}\\b`, "i").exec(this.text)?.[1];
    return find(name) ?? (alias && find(alias));
  }

  open(before) {
    this.list.replaceChildren(...this.offers.map((each, place) => h("li", { id: `offer-${place}`, role: "option", "aria-selected": String(place === 0),
      onmousedown: (event) => { event.preventDefault(); this.take(place); } }, h("span", null, each.name), h("small", null, each.kind))));
    const mark = h("span", null, "\u200b");
    const shadow = this.paint.cloneNode(false);
    shadow.id = "";
    shadow.style.visibility = "hidden";
    shadow.append(before.slice(0, before.length - this.typed.length), mark);
    this.paint.parentElement.append(shadow);
    const box = mark.getBoundingClientRect(), home = this.paint.parentElement.getBoundingClientRect();
    shadow.remove();
    this.list.hidden = false;
    this.list.style.left = `${Math.max(0, Math.min(box.left - home.left, home.width - 240))}px`;
    this.list.style.top = `${box.bottom - home.top - this.area.scrollTop + 4}px`;
    this.choose(0);
  }

  choose(place) {
    this.chosen = place;
    [...this.list.children].forEach((each, at) => each.setAttribute("aria-selected", String(at === place)));
    this.list.children[place]?.scrollIntoView({ block: "nearest" });
    this.area.setAttribute("aria-activedescendant", `offer-${place}`);
  }

  take(place) {
    const end = this.area.selectionStart;
    this.area.setRangeText(this.offers[place].name, end - this.typed.length, end, "end");
    this.close();
    this.draw();
    this.changed();
  }

  close() {
    this.list.hidden = true;
    this.area.removeAttribute("aria-activedescendant");
  }
}
