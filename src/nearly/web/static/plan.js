// The plan as a picture: rows flow from the tables at the bottom to the answer at the top.
import { h, s } from "./dom.js";

const WIDE = 216, HIGH = 58, GAP = 22, DOWN = 34;

export function drawPlan(home, told) {
  const facts = Object.entries({ Kernel: told.facts.kernel, Because: told.facts.why, Reads: told.facts.reads, Where: told.facts.sites }).filter(([, value]) => value);
  home.replaceChildren(
    h("h2", null, "Plan"),
    h("dl", { class: "facts" }, facts.flatMap(([name, value]) => [h("dt", null, name), h("dd", null, value)])),
    ...told.remarks.map((each) => h("p", { class: "remark" }, each)),
    ...told.stages.map((stage) => drawStage(stage, told.facts.kernel)),
    h("details", null, h("summary", null, "As text"), h("pre", { class: "plain" }, told.text)));
}

function drawStage(stage, kernel) {
  const title = h("h3", null, stage.name === "driver" ? "At the end" : stage.name.replace("_", " "), h("small", null, stage.where));
  if (!stage.nodes.length) return h("div", { class: "stage" }, title);
  const roots = treeOf(stage.nodes);
  let leaf = 0, depth = 0;
  const place = (node, level) => {
    depth = Math.max(depth, level);
    node.level = level;
    node.children.forEach((child) => place(child, level + 1));
    node.at = node.children.length ? (node.children[0].at + node.children.at(-1).at) / 2 : leaf++;
  };
  roots.forEach((root) => place(root, 0));
  const width = leaf * (WIDE + GAP) - GAP + 4, height = (depth + 1) * (HIGH + DOWN) - DOWN + 4, parts = [];
  const x = (node) => node.at * (WIDE + GAP) + 2, y = (node) => node.level * (HIGH + DOWN) + 2;
  const draw = (node) => {
    for (const child of node.children) {
      const a = x(child) + WIDE / 2, b = y(child), c = x(node) + WIDE / 2, d = y(node) + HIGH;
      parts.push(s("path", { class: "flow", d: `M${a} ${b} C${a} ${b - 18} ${c} ${d + 18} ${c} ${d}` }));
      draw(child);
    }
    parts.push(s("g", { class: `node ${node.operator.toLowerCase()}` }, s("title", null, [node.operator, node.detail, node.note].filter(Boolean).join("\n")),
      s("rect", { x: x(node), y: y(node), width: WIDE, height: HIGH, rx: 8 }),
      s("text", { x: x(node) + 12, y: y(node) + 19, class: "operator" }, name(node)),
      s("text", { x: x(node) + 12, y: y(node) + 35, class: "detail" }, cut(node.operator === "Scan" ? columns(node.detail) : node.detail, 29)),
      s("text", { x: x(node) + 12, y: y(node) + 50, class: "about" }, cut(node.note, 33))));
  };
  roots.forEach(draw);
  const said = `${stage.nodes.length} steps by the ${kernel ?? ""} kernel: ${stage.nodes.map((each) => name(each)).join(", ")}`;
  return h("div", { class: "stage" }, title, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Picture of the plan" }, s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": said }, ...parts)));
}

const name = (node) => (node.operator === "Scan" ? `Read ${node.detail.split(" [")[0]}` : node.operator);
const columns = (detail) => detail.replace(/^\S+ \[/, "").replace(/\]$/, "");
const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function treeOf(nodes) {
  const roots = [], open = [];
  for (const each of nodes) {
    const node = { ...each, children: [] };
    open.length = Math.max(0, each.depth);
    const parent = open.filter(Boolean).at(-1);
    (parent ? parent.children : roots).push(node);
    open[each.depth] = node;
  }
  return roots;
}
