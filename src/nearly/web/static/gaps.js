// What is known of missing rows, stated by the user, and the range that an answer can take because of them.
import { call, h } from "./dom.js";
import { drawTable } from "./table.js";

export class Gaps {
  constructor(home, editor) { this.home = home; this.editor = editor; }

  open() {
    const tables = this.editor.catalog.tables ?? [];
    if (!this.form) {
      this.lines = h("div", { class: "statements" });
      this.out = h("div", { class: "out" });
      this.form = h("form", { onsubmit: (event) => { event.preventDefault(); this.ask(); } },
        h("h2", null, "If rows are missing"),
        h("p", { class: "note" }, "Say which rows may be missing, how many, and what values they can have. The answer is then a range that holds for sure."),
        this.lines,
        h("p", { class: "actions" }, h("button", { type: "button", onclick: () => this.add() }, "Another statement"), h("button", { class: "primary" }, "Range")), this.out);
      this.home.replaceChildren(this.form);
    }
    if (!this.lines.children.length && tables.length) this.add();
    this.home.hidden = !this.home.hidden;
    if (!this.home.hidden) this.home.scrollIntoView({ block: "nearest" });
  }

  add() {
    const tables = this.editor.catalog.tables;
    const table = h("select", { name: "table" }, tables.map((each) => h("option", { value: each.name }, each.name)));
    const column = h("select", { name: "column" });
    const columns = () => {
      const found = tables.find((each) => each.name === table.value)?.columns ?? [];
      column.replaceChildren(h("option", { value: "" }, "no column"), ...found.filter((each) => /int|double|float|decimal/.test(each.type)).map((each) => h("option", { value: each.name }, each.name)));
    };
    table.addEventListener("change", columns);
    columns();
    const input = (name, placeholder, size) => h("input", { name, placeholder, size, "aria-label": placeholder, autocomplete: "off" });
    const line = h("fieldset", null, h("legend", { class: "hidden" }, "A statement"),
      h("label", null, "In ", table), h("label", null, "where ", input("where", "any row, or a condition", 22)),
      h("label", null, "at least ", input("least", "0", 5)), h("label", null, "at most ", input("most", "no limit", 7), " rows"),
      h("label", null, "with ", column), h("label", null, "from ", input("low", "any", 7)), h("label", null, "to ", input("high", "any", 7)),
      h("button", { type: "button", class: "quiet icon", "aria-label": "Remove the statement", onclick: () => line.remove() }, "✕"));
    this.lines.append(line);
  }

  async ask() {
    const missing = {};
    const value = (text) => (text.trim() === "" ? null : Number(text));
    for (const line of this.lines.children) {
      const of = (name) => line.querySelector(`[name=${name}]`).value;
      const stated = { where: of("where").trim() || null, rows: [value(of("least")) ?? 0, value(of("most"))], values: {} };
      if (of("column")) stated.values[of("column")] = [value(of("low")), value(of("high"))];
      (missing[of("table")] ??= []).push(stated);
    }
    this.out.replaceChildren(h("p", { class: "note" }, "computing …"));
    try {
      const answer = await call("/api/range", { sql: this.editor.text, missing });
      this.out.replaceChildren();
      drawTable(this.out, answer, null, true);
    } catch (trouble) { this.out.replaceChildren(h("p", { class: "trouble" }, trouble.message)); }
  }
}
