// The page: asks the server, shows answers as they come, and steers the query.
import { $, CLIENT, call, duration, h, percent, show } from "./dom.js";
import { Chart } from "./chart.js";
import { Editor } from "./editor.js";
import { Gaps } from "./gaps.js";
import { drawPlan } from "./plan.js";
import { Side } from "./side.js";
import { Trail, drawTable } from "./table.js";

const GOALS = [null, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2];
const TOLD_EVERY = 3000;

const state = { id: null, answer: null, running: false, paused: false, began: 0, abort: null, trail: null, said: 0, number: 0 };
const editor = new Editor(() => {});
const chart = new Chart($("chart"));
const side = new Side(editor, () => run("early"));
const gaps = new Gaps($("gaps"), editor);

const goal = () => GOALS[Number($("goal").value)];

function controls() {
  $("stop").disabled = !state.running;
  $("pause").disabled = !state.running;
  $("pause").textContent = state.paused ? "Go on" : "Pause";
  $("run").disabled = false;
  $("export").disabled = !state.answer || state.running;
  document.body.classList.toggle("running", state.running);
}

async function run(mode) {
  const sql = editor.text.trim();
  if (!sql) { editor.area.focus(); return; }
  state.abort?.abort();
  const abort = new AbortController(), mine = ++state.number;
  Object.assign(state, { id: null, answer: null, running: true, paused: false, began: performance.now(), abort, trail: new Trail(), said: 0 });
  editor.close();
  chart.reset();
  location.hash = `q=${encodeURIComponent(sql)}`;
  for (const each of ["trouble", "chart", "answer", "plan", "lacks"]) show($(each), false);
  progress(0, "early");
  tell("waiting");
  controls();
  tick(mine);
  const wish = { sql, mode };
  if (mode === "early" && goal() !== null) wish.error = goal();
  try {
    const response = await fetch("/api/stream", { method: "POST", body: JSON.stringify(wish), signal: abort.signal, headers: { "Content-Type": "application/json", "X-Nearly-Client": CLIENT } });
    if (!response.ok) throw new Error((await response.json()).error?.message ?? response.statusText);
    for await (const [name, content] of events(response.body)) if (mine === state.number) take(name, content, sql);
  } catch (trouble) {
    if (mine === state.number && trouble.name !== "AbortError") failed(trouble.message, sql);
  }
  if (mine === state.number && state.running) { state.running = false; controls(); }
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const parts = rest.split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const name = /^event: (.*)$/m.exec(part)?.[1], data = /^data: (.*)$/m.exec(part)?.[1];
      if (name && data) yield [name, JSON.parse(data)];
    }
  }
}

function take(name, content, sql) {
  if (name === "began") state.id = content.id;
  else if (name === "state") { state.paused = content.state === "paused"; if (!state.answer) tell(content.state === "running" ? "reading" : content.state); controls(); }
  else if (name === "answer") { state.answer = content; state.trail.add(content); draw(); }
  else if (name === "over") over(content, sql);
}

function draw() {
  const answer = state.answer;
  progress(answer.progress, answer.exact ? "exact" : "early");
  tell(answer.exact ? "exact" : brief(answer));
  show($("lacks"), Boolean(answer.lacks));
  $("lacks").textContent = answer.lacks ? `Still open: ${answer.lacks}.` : "";
  chart.draw(answer, state.trail);
  show($("answer"), true);
  drawTable($("answer"), answer, state.trail);
  const now = performance.now();
  if (now - state.said > TOLD_EVERY) { state.said = now; $("live").textContent = answer.state; }
}

// How good an answer is; what may be missing has a line of its own.
const brief = (answer) => (answer.lacks ? answer.state.replace(`, ${answer.lacks}`, "") : answer.state);

function over(content, sql) {
  state.running = false;
  controls();
  if (content.error && !state.answer) { failed(content.error.message, sql); return; }
  const answer = state.answer;
  const why = answer.exact ? "" : content.ended ? `${content.ended}: ` : "";
  tell(answer.exact ? "exact" : `${why}${brief(answer)}`);
  $("clock").textContent = duration(content.seconds);
  $("live").textContent = `${answer.rows} rows, ${answer.state}`;
  side.remember({ sql, time: Date.now(), seconds: content.seconds, told: answer.exact ? "exact" : `error ${percent(answer.error)}` });
}

function failed(message, sql) {
  state.running = false;
  controls();
  progress(0, "failed");
  tell("no answer");
  $("trouble").textContent = message;
  show($("trouble"), true);
  side.remember({ sql, time: Date.now(), told: "failed" });
}

function progress(share, kind) {
  const value = Math.round(100 * share);
  $("fill").style.width = `${100 * share}%`;
  $("track").dataset.kind = kind;
  $("track").setAttribute("aria-valuenow", String(value));
}

function tell(text) {
  $("told").textContent = text;
  $("line").dataset.kind = text === "exact" ? "exact" : "early";
}

function tick(mine) {
  if (mine !== state.number || !state.running) return;
  $("clock").textContent = duration((performance.now() - state.began) / 1000);
  setTimeout(() => tick(mine), 100);
}

async function steer(verb, body = {}) {
  if (!state.id) { if (verb === "stop") { state.abort?.abort(); state.running = false; tell("stopped before the first answer"); controls(); } return; }
  try { await call(`/api/queries/${state.id}/${verb}`, body); } catch (trouble) { failed(trouble.message, editor.text); }
}

async function explain() {
  if (!$("plan").hidden) { show($("plan"), false); return; }
  try { drawPlan($("plan"), await call("/api/explain", { sql: editor.text })); show($("plan"), true); show($("trouble"), false); $("plan").scrollIntoView({ block: "nearest" }); }
  catch (trouble) { $("trouble").textContent = trouble.message; show($("trouble"), true); }
}

async function share() {
  location.hash = `q=${encodeURIComponent(editor.text)}`;
  const button = $("share");
  try { await navigator.clipboard.writeText(location.href); button.textContent = "Copied"; } catch { button.textContent = "In the address"; }
  setTimeout(() => { button.textContent = "Link"; }, 1500);
}

function exported(event) {
  const format = event.target.value;
  event.target.value = "";
  if (!format || !state.id) return;
  const link = h("a", { href: `/api/queries/${state.id}/export?format=${format}`, download: `answer.${format}` });
  document.body.append(link);
  link.click();
  link.remove();
}

function theme(chosen) {
  const dark = chosen ?? (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  document.documentElement.dataset.theme = dark;
  try { localStorage.setItem("nearly.theme", dark); } catch { /* then it is for this visit */ }
}

$("run").addEventListener("click", () => run("early"));
$("exact").addEventListener("click", () => { if (state.running && state.id) { $("goal").value = 0; $("goaltext").value = "exact"; steer("goal", { error: null }); } else run("exact"); });
$("stop").addEventListener("click", () => steer("stop"));
$("pause").addEventListener("click", () => { state.paused = !state.paused; steer(state.paused ? "pause" : "resume"); controls(); });
$("goal").addEventListener("input", () => { $("goaltext").value = goal() === null ? "exact" : `± ${percent(goal())}`; });
$("goal").addEventListener("change", () => { if (state.running && state.id) steer("goal", { error: goal() }); });
$("explain").addEventListener("click", explain);
$("missing").addEventListener("click", () => gaps.open());
$("share").addEventListener("click", share);
$("export").addEventListener("change", exported);
$("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches) ? "light" : "dark"));
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter") { event.preventDefault(); run("early"); }
  else if (event.key === "Escape" && state.running && !editor.isOpen) steer("stop");
});
addEventListener("resize", () => editor.draw());

function fromLink() {
  const given = new URLSearchParams(location.hash.slice(1)).get("q");
  if (given !== null && given !== editor.text.trim()) editor.text = given;
}
addEventListener("hashchange", fromLink);

const chosen = localStorage.getItem("nearly.theme");
if (chosen === "dark" || chosen === "light") theme(chosen);
fromLink();
controls();
side.load().catch((trouble) => { $("trouble").textContent = trouble.message; show($("trouble"), true); });
