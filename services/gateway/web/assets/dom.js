// Making and changing elements. Everything that the page shows goes through nodes, so that nothing but text, numbers and elements can become visible,
// whatever an expression came to; and a link leads only to the web or into the page.

// inert shows the characters that turn the direction of what follows (embeddings, overrides, isolates) as their names: an address or a title from outside
// could otherwise read as another than it is. Marks that stand for a letter (U+200E, U+200F, U+061C) and joiners are part of many languages' writing and
// stay. The server does the same to the pages that it makes: inert in web.go.
export function inert(text) {
  return text.replace(/[\u202a-\u202e\u2066-\u2069]/g, c => "[U+" + c.codePointAt(0).toString(16).toUpperCase() + "]");
}

// el makes an element. Attributes that are null, undefined or false are left out; a function under "on..." listens.
export function el(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") e.addEventListener(name.slice(2), value);
    else e.setAttribute(name, value === true ? "" : String(value));
  }
  e.append(...nodes(children));
  return e;
}

// nodes are the children that are there: "condition && element" leaves false or null where there is none. What is neither text nor element is a fault
// of the caller and not shown.
function nodes(children) {
  const there = [];
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === "") continue;
    if (child instanceof Node) there.push(child);
    else if (typeof child === "string" || Number.isFinite(child)) there.push(document.createTextNode(inert(String(child))));
    else console.error("not shown:", child);
  }
  return there;
}

// weblink is a link to a page of the web, or its text where the address is none.
export function weblink(url, text) {
  const label = el("bdi", {}, text || url);
  let parsed;
  try { parsed = new URL(url); } catch { return label; }
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") return label;
  return el("a", { href: parsed.href, target: "_blank", rel: "noopener noreferrer nofollow" }, label);
}

// setText changes an element's text if it differs: a live region that is set to what it says already would be read out again.
export function setText(e, text) {
  const shown = inert(text);
  if (e.textContent !== shown) e.textContent = shown;
}

// fill makes root hold the children, changing only what differs: what a person has typed, selected, opened or focused stays as it is.
export function fill(root, ...children) {
  const focused = document.activeElement && document.activeElement.id;
  merge(root, nodes(children));
  if (focused && document.activeElement === document.body) {
    const e = document.getElementById(focused);
    if (e) e.focus({ preventScroll: true });
  }
}

function merge(parent, fresh) {
  const known = new Map();
  for (const child of parent.children) if (child.id) known.set(child.id, child);
  let at = parent.firstChild;
  for (const node of fresh) {
    const was = node.id ? known.get(node.id) : at && !at.id ? at : null;
    if (!was) {
      parent.insertBefore(node, at);
      continue;
    }
    const here = was === at;
    if (here) at = at.nextSibling;
    const now = update(was, node);
    if (!here) parent.insertBefore(now, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// whole elements hold listeners or what is typed: they are exchanged, not changed.
const whole = new Set(["FORM", "BUTTON", "A", "INPUT", "TEXTAREA", "SELECT"]);

function update(was, node) {
  if (was.isEqualNode(node)) return was;
  if (was.nodeType !== Node.ELEMENT_NODE || was.nodeName !== node.nodeName || whole.has(was.nodeName)) {
    if (was.nodeType === Node.ELEMENT_NODE) keepTyped(was, node);
    was.replaceWith(node);
    return node;
  }
  for (const name of was.getAttributeNames()) if (name !== "open" && !node.hasAttribute(name)) was.removeAttribute(name);
  for (const name of node.getAttributeNames()) if (was.getAttribute(name) !== node.getAttribute(name)) was.setAttribute(name, node.getAttribute(name));
  merge(was, [...node.childNodes]);
  return was;
}

function keepTyped(was, node) {
  if (!(node instanceof Element)) return;
  for (const field of node.querySelectorAll("textarea[id], input[id], select[id]")) {
    const typed = was.querySelector("#" + CSS.escape(field.id));
    if (!typed) continue;
    if (typed.type === "checkbox") {
      if (typed.checked !== typed.defaultChecked) field.checked = typed.checked;
    } else if (typed.tagName === "SELECT") {
      if (!typed.selectedOptions[0]?.defaultSelected) field.value = typed.value;
    } else if (typed.value !== typed.defaultValue) field.value = typed.value;
  }
}

// ---- times ----

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

export function ago(time) {
  const seconds = (new Date(time).getTime() - Date.now()) / 1000;
  if (Math.abs(seconds) < 10) return seconds > 0 ? "now" : "just now";
  for (const [unit, size] of [["year", 31557600], ["month", 2629800], ["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return relative.format(Math.trunc(seconds), "second");
}

// when is a time as a person thinks of it, with the exact one as its title.
export function when(time) {
  return time && el("time", { datetime: time, title: new Date(time).toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" }) }, ago(time));
}

// tick brings the times that are shown up to date.
export function tick() {
  for (const e of document.querySelectorAll("time[datetime]")) setText(e, ago(e.dateTime));
}

// ---- copying ----

// copy puts text on the clipboard. Browsers give it to pages of this machine and of https only; elsewhere the old way is tried, with the element whose
// text it is selected, so that a person can copy it by hand; unfold makes it visible. It says whether it was done.
export async function copy(text, shown, unfold) {
  if (navigator.clipboard) {
    try { await navigator.clipboard.writeText(text); return true; } catch { /* not allowed: the old way */ }
  }
  unfold();
  getSelection().selectAllChildren(shown);
  try { return document.execCommand("copy"); } catch { return false; }
}

// save has the browser keep text as a file of its own. The link leads to that text alone, and is never shown.
export function save(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/markdown;charset=utf-8" }));
  const link = el("a", { download: name });
  link.href = url;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}
