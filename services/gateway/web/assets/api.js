// Asking the API that everybody asks, and watching it.

export const api = "/api/v1";

const answerWithin = 30000; // ms; a write is tried for 10 s by the server

// Gone is the error of a server that does not answer.
export class Gone extends Error {}

// keys of writes whose outcome is not known: the same write, sent again, carries the same key and is done once.
const keys = new Map();

export async function ask(path, method = "GET", body = undefined) {
  const options = { method, headers: { Accept: "application/json" }, signal: AbortSignal.timeout(answerWithin) };
  const same = method + " " + path + " " + JSON.stringify(body);
  if (method !== "GET") {
    if (!keys.has(same)) keys.set(same, Array.from(crypto.getRandomValues(new Uint32Array(4)), n => n.toString(36)).join("-"));
    options.headers["Idempotency-Key"] = keys.get(same);
    if (body !== undefined) {
      options.headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(body);
    }
  }
  let answer;
  try { answer = await fetch(path, options); } catch { throw new Gone("The gateway does not answer. Is Factstream running? It is safe to try again."); }
  if (answer.status === 401) location.assign("/login");
  const value = await answer.json().catch(() => null);
  if (answer.status !== 503) keys.delete(same);
  if (answer.ok) return value;
  const unknown = value && value.type === "urn:factstream:problem:outcome-unknown";
  const error = new Error(unknown ? "It is not known whether that was done: the bus did not confirm it in time. Press the button again; it is then done once." :
    value && value.detail ? value.detail : "The gateway answered " + answer.status + ".");
  error.status = answer.status;
  throw error;
}

const mostPages = 10;

// all reads a list to its end, or as far as a page can sensibly show. more says that there is more.
export async function all(path) {
  const items = [];
  let next = null;
  for (let i = 0; i < mostPages; i++) {
    const page = await ask(path + (path.includes("?") ? "&" : "?") + "limit=500" + (next ? "&cursor=" + encodeURIComponent(next) : ""));
    items.push(...page.items);
    next = page.next;
    if (!next) break;
  }
  return { items, more: next !== null };
}

// newest reads the newest of a list that is kept with its history; null when there is none yet.
export async function newest(path) {
  return (await ask(path + "?history=true&limit=1")).items[0] || null;
}

// ready asks what works. It is answered with 503 when something does not, in the same form.
export async function ready() {
  let answer;
  try { answer = await fetch("/readyz", { signal: AbortSignal.timeout(5000) }); } catch { throw new Gone("The gateway does not answer."); }
  if (answer.status === 401) location.assign("/login");
  return answer.json();
}

const events = ["thread.created", "thread.configured", "thread.started", "thread.paused", "thread.parked", "thread.archived", "thread.deleted", "thread.settled",
  "question.asked", "question.moved", "question.dismissed", "questions.proposed", "run.requested", "attempt.started", "attempt.failed", "run.completed",
  "run.failed", "run.deleted", "facts.distilled", "contradictions.found", "brief.written", "coverage.mapped", "stage.failed", "stage.retried"];

// follow calls changed a moment after something happened, once for many events. A browser gives up on a stream that is refused; it is opened again.
export function follow(path, changed) {
  let stream, timer = null, again = null, closed = false;
  const later = () => { if (timer === null) timer = setTimeout(() => { timer = null; if (!closed) changed(); }, 300); };
  const open = () => {
    stream = new EventSource(path);
    for (const name of events) stream.addEventListener("factstream." + name + ".v1", later);
    stream.addEventListener("gap", later);
    stream.addEventListener("error", () => {
      if (stream.readyState === EventSource.CLOSED && !closed) again = setTimeout(() => { open(); later(); }, 3000);
    });
  };
  open();
  return { close() { closed = true; clearTimeout(timer); clearTimeout(again); stream.close(); } };
}

// followTrail tells the provider's own word for what it is doing, as it comes.
export function followTrail(run, said) {
  const stream = new EventSource(api + "/runs/" + encodeURIComponent(run) + "/trail");
  stream.addEventListener("trail", event => said(JSON.parse(event.data).name));
  stream.addEventListener("end", () => stream.close());
  return stream;
}
