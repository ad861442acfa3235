// Elements are made of text and attributes only: nothing that comes from the server is ever read as markup.
const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((each) => each !== null && each !== undefined));
  return element;
}

export const h = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);
export const $ = (id) => document.getElementById(id);

export function show(element, visible) {
  element.hidden = !visible;
}

export const number = (value) => (typeof value === "number" ? value : value === null || value === undefined ? NaN : Number(value));

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const small = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
export const short = (value) => (Math.abs(value) >= 10000 ? compact.format(value) : small.format(value));
export const count = (value) => new Intl.NumberFormat("en").format(value);

export function percent(share) {
  if (typeof share !== "number" || !Number.isFinite(share)) return "?";
  const value = 100 * share;
  if (value > 0 && value < 0.01) return "<0.01 %";
  return `${value.toFixed(value >= 10 || value === 0 ? 0 : value >= 1 ? 1 : 2)} %`;
}

export function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

export async function call(path, body, method = "POST") {
  const sent = body === undefined ? { method: "GET" } : { method, body: JSON.stringify(body), headers: { "Content-Type": "application/json", "X-Nearly-Client": CLIENT } };
  const response = await fetch(path, sent);
  const told = await response.json();
  if (!response.ok) throw new Error(told.error?.message ?? response.statusText);
  return told;
}

export const CLIENT = crypto.randomUUID();
