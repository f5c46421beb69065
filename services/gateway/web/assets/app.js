// The page of the notebook. It reads the API that everybody reads.
import { Gone, all, api, ask, follow, followTrail, newest, ready } from "./api.js";
import { copy, el, fill, inert, save, setText, tick, weblink, when } from "./dom.js";

const main = document.getElementById("main");
const lookAgain = 2000;   // ms between two looks at a thread whose stages are worked on
const wide = matchMedia("(min-width: 79rem)"); // there is room for the contents beside the page; as in style.css
const looksIdle = 15000;  // ms between two looks at the state of the system

let view = 0;             // counts views, so that a late answer does not write into the next one
let watch = null;         // the stream of the view that is shown
let trails = new Map();   // by run: the streams of what providers say
let looking = null;       // the timer of the next look
let heard = "";           // the status that was read out last
let away = false;         // the gateway does not answer
let toldAway = false;     // and a person who pressed a button was told so
let unread = 0;           // messages that nobody could read or apply, at the last look
let dealt = "";           // what became of the one that a person has just dealt with
let lined = "";           // the question that a person has just put in line

// ---- what is shown ----

// show shows what the address names; anew when it is the same view again.
async function show(anew) {
  const mine = ++view;
  const [, kind, id, , place] = location.hash.split("/");
  const thread = kind === "threads" && /^[a-z0-9_-]+$/.test(id || "") ? id : null;
  clearTimeout(looking);
  if (!anew) {
    stopWatching();
    heard = "";
    tell("");
    dealt = lined = "";
    fill(main, el("p", { class: "soft" }, "Reading…"));
  }
  if (!watch && !document.hidden && kind !== "settings" && kind !== "trouble") watch = follow(api + "/events" + (thread ? "?thread=" + encodeURIComponent(thread) : ""), () => show(true));
  try {
    const [title, content] = thread ? await threadView(thread) : kind === "settings" ? await settingsView() :
      kind === "trouble" ? await troubleView() : await threadsView(kind === "archived");
    if (mine !== view) return;
    document.title = inert(title) + " · Factstream";
    fill(main, content);
    if (!anew) { main.focus({ preventScroll: true }); scrollTo(0, 0); }
    if (!anew && place) toPlace();
    if (toldAway) tell("");
    if (away) { away = false; showState(); }
  } catch (e) {
    if (mine !== view) return;
    if (e instanceof Gone) { away = true; showState(); }
    if (anew && (e instanceof Gone || e.status >= 500)) return; // what is shown and typed stays, and the line on top says what is wrong
    stopWatching();
    document.title = "Not shown · Factstream";
    fill(main, el("h1", {}, e.status === 404 || e.status === 410 ? "There is no such thread" : "This cannot be shown"), el("p", {}, e.message),
      el("p", {}, el("a", { href: "#/" }, "All threads")),
      e.status === undefined && actionButton("again", "Try again", () => show(false)));
  }
}

function stopWatching() {
  if (watch) watch.close();
  watch = null;
  for (const stream of trails.values()) stream.close();
  trails = new Map();
}

function tell(problem, gone = false) {
  toldAway = gone;
  setText(document.getElementById("problem-text"), problem);
  document.getElementById("problem").hidden = !problem;
}

// say has a change of status read out.
function say(text) {
  if (text === heard) return;
  if (heard) setText(document.getElementById("said"), text);
  heard = text;
}

// done tells that something was done.
function done(text) { setText(document.getElementById("said"), text); }

// act does what a button stands for, once at a time, and tells what went wrong.
function act(button, doing) {
  return async event => {
    event.preventDefault();
    if (button.getAttribute("aria-disabled")) return;
    button.setAttribute("aria-disabled", "true");
    tell("");
    lined = "";
    document.getElementById("lined")?.remove();
    try { await doing(); } catch (e) { tell(e.message, e instanceof Gone); } finally { button.removeAttribute("aria-disabled"); }
  };
}

function actionButton(id, text, doing, kind = "quiet") {
  const button = el("button", { id, type: "button", class: kind }, text);
  button.addEventListener("click", act(button, doing));
  return button;
}

// bar keeps a button from being pressed where it would only be refused: what stands in the way is said beside it, and leads to where that is changed.
function bar(button, note, refused, words) {
  if (refused) {
    button.setAttribute("aria-disabled", "true");
    button.setAttribute("aria-describedby", note.id);
  } else {
    button.removeAttribute("aria-disabled");
    button.removeAttribute("aria-describedby");
  }
  note.hidden = !refused;
  fill(note, refused && words);
}

function form(attributes, button, doing, ...children) {
  return el("form", { ...attributes, onsubmit: act(button, doing) }, ...children);
}

// ---- the state of the system ----

async function showState() {
  const line = document.getElementById("state");
  try {
    const r = await ready();
    const parts = [
      r.provider.mode === "live" && "Live: runs ask " + r.provider.name + " and cost credits.",
      r.provider.mode === "replay" && "Replay: runs play a recording, whatever is asked; nothing is bought.",
      r.model.engine === "ollama" && "A local language model reads the reports.",
      r.model.engine === "extractive" && "No language model: facts are extracted by rules.",
      r.model.hint && "For a model: " + r.model.hint + ".",
      ...r.reasons.map(reason => "Trouble: " + reason + "."),
    ];
    line.className = r.ready ? "" : "error";
    setText(line, parts.filter(Boolean).join(" "));
    showUnread(r);
    if (away) { away = false; show(true); }
  } catch {
    away = true;
    line.className = "error";
    setText(line, "The gateway does not answer. What is shown may be out of date; it is tried again by itself.");
  }
}

// showUnread leads to the messages that a person has to look at, while there are any.
function showUnread(r) {
  const waiting = Math.max(r.dead, r.bad_count); // a message that a worker could not read is, mostly, one that could not be applied either
  setText(document.getElementById("trouble-link"), count(waiting, "message") + " that nobody could read or apply");
  document.getElementById("trouble").hidden = waiting === 0;
  const changed = unread !== r.dead + r.bad_count;
  unread = r.dead + r.bad_count;
  if (changed && location.hash === "#/trouble") show(true);
}

// ---- words ----

const statusWords = { new: "New", running: "Running", paused: "Paused", idle: "Waits for you", complete: "Complete" };
const stageWords = { run: "research", distill: "facts", judge: "judging", questions: "questions", brief: "brief", coverage: "topics", digest: "digest" };
const costs = { fast: 250, balanced: 350 };

function count(n, one, many = one + "s") { return n + " " + (n === 1 ? one : many); }

function credits(n) { return count(n, "credit"); }

function text(words) { return el("bdi", {}, words); }

function statusLine(thread, reason = thread.reason.text) {
  return el("p", { class: "statusline" }, el("span", { class: "status " + thread.status }, statusWords[thread.status] || thread.status), " ",
    el("span", { dir: "auto" }, reason));
}

// withoutStart is a reason without its advice to press Start, for where there is no such button.
function withoutStart(reason) {
  return reason.replace(/(, or|[;,] then) press Start[a-z ]*\.$/, ".").replace(/ ?Press Start[a-z ]*\.$/, "");
}

function figures(...pairs) {
  return el("dl", { class: "figures" }, pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function modeSelect(id, chosen) {
  return el("select", { id }, Object.entries(costs).map(([mode, cost]) => el("option", { value: mode, selected: mode === chosen }, mode + " (" + credits(cost) + ")")));
}

function field(label, input, hint) {
  return el("p", {}, el("label", { for: input.id }, label), input, hint && (hint instanceof Node ? hint : el("small", {}, hint)));
}

function numberField(id, label, value, attributes) {
  return field(label, el("input", { id, type: "number", inputmode: "numeric", required: true, value, ...attributes }));
}

// typed is what a person has put into a field that is about to be made anew, and fallback where nothing was: dom.js keeps it.
function typed(id, fallback) {
  const e = document.getElementById(id);
  if (!e) return fallback;
  if (e.tagName === "SELECT") return e.selectedOptions[0]?.defaultSelected ? fallback : e.value;
  return e.value === e.defaultValue ? fallback : e.value;
}

// budgetField warns beside it when the budget has no room for a run of the mode that is chosen. gone is what is spent and reserved already.
function budgetField(id, budget, modes, mode, gone) {
  const hint = el("small", { id: id + "-hint", class: "warn", role: "status" });
  const input = el("input", { id, type: "number", inputmode: "numeric", required: true, value: budget, min: 0, max: 1000000000, "aria-describedby": hint.id });
  const look = (credits, chosen) => setText(hint, noRoom(Number(credits) - gone, chosen, gone > 0));
  for (const e of [input, modes]) e.addEventListener("input", () => look(input.value, modes.value));
  look(typed(id, budget), typed(modes.id, mode));
  return field("Budget (credits)", input, hint);
}

// noRoom says what of a budget has no room in what is left of it.
function noRoom(left, mode, begun) {
  if (left >= costs[mode]) return "";
  const [other] = Object.entries(costs).find(([, cost]) => cost <= left) || [];
  if (other) return "A " + mode + " run costs " + credits(costs[mode]) + " and does not fit; a run of the mode " + other + " does.";
  return (begun ? "No further run fits: " : "Not one run fits: ") + "the cheapest costs " + credits(Math.min(...Object.values(costs))) + ". Nothing is asked until the budget is raised.";
}

// changed are the values that differ: what a person has not touched is not written down as chosen.
function changed(was, is) {
  return Object.fromEntries(Object.entries(is).filter(([name, v]) => JSON.stringify(v) !== JSON.stringify(was[name])));
}

function value(id) { return document.getElementById(id).value; }

// ---- the list of threads ----

async function threadsView(archived) {
  const [list, settings] = await Promise.all([all(api + "/threads?archived=" + archived), archived ? null : ask(api + "/settings")]);
  const running = list.items.filter(t => t.status === "running").length;
  const none = archived ? "Nothing is in the archive." : "No thread yet. A thread is a question that you keep, with everything that comes of it. Opening one spends nothing.";
  return [running > 0 ? running + " running" : archived ? "Archive" : "Threads", [
    el("h1", {}, archived ? "Archive" : "Threads"),
    settings && newThread(settings),
    list.items.length === 0 ? el("p", { class: "note" }, none) : el("ul", { class: "list" }, list.items.map(threadItem)),
    list.more && el("p", { class: "soft" }, "Older ones are left out here; the API lists them all."),
    el("p", {}, archived ? el("a", { href: "#/" }, "All threads") : el("a", { href: "#/archived" }, "Archive")),
  ]];
}

function threadItem(t) {
  return el("li", { id: "thread-" + t.id },
    el("h2", {}, el("a", { href: "#/threads/" + t.id }, text(t.title))),
    statusLine(t, withoutStart(t.reason.text)),
    el("p", { class: "soft" }, [count(t.counts.facts, "fact"), count(t.counts.sources, "source"), count(t.counts.runs, "run"),
      t.counts.contradictions > 0 && count(t.counts.contradictions, "contradiction"),
      t.ledger.spent + " of " + credits(t.ledger.budget) + " spent"].filter(Boolean).join(" · "), " · ", when(t.updated_at)),
    t.tags.length > 0 && tags(t.tags));
}

function newThread(settings) {
  const send = el("button", { id: "open-thread", type: "submit" }, "Open a thread");
  const modes = modeSelect("mode", settings.mode);
  return form({ id: "new-thread", class: "card" }, send, async () => {
    const thread = await ask(api + "/threads", "POST", {
      question: value("question"), mode: value("mode"), budget: Number(value("budget")), auto: document.getElementById("auto").checked,
    });
    document.getElementById("new-thread").reset();
    location.hash = "#/threads/" + thread.id;
  },
    field("A new question", el("textarea", { id: "question", rows: 3, required: true, maxlength: 20000, dir: "auto" })),
    el("div", { class: "row" },
      field("Mode", modes), budgetField("budget", settings.budget, modes, settings.mode, 0)),
    el("p", {}, el("label", { class: "check", for: "auto" }, el("input", { id: "auto", type: "checkbox" }), "Autopilot: go on with follow-up questions while the budget allows")),
    el("div", { class: "actions" }, send, el("small", {}, "This spends nothing yet.")));
}

function tags(list) { return el("p", { class: "tags" }, list.map(t => el("span", {}, text(t)))); }

// ---- messages that nobody could read ----

// workers say what each of them makes of a message, and what putting one back leads to.
const workers = {
  "runs-tabstack": ["research", "asks for the research again. If its run came to nothing, another is requested and its credits are reserved; a report that is kept is not bought again."],
  "distil": ["facts", "has the facts read from the report again. The report is kept; nothing that was bought is bought again."],
  "judge": ["judging", "has the facts judged again. Nothing is bought."],
  "brief": ["the end of a cycle", "has done what the end of the cycle lacks: questions, brief and topics. Nothing is bought."],
  "autopilot": ["autopilot", "lets autopilot decide again what comes next, within the budget."],
};

const passing = "takes it off this list and changes nothing else: it stays in the stream, and what it stood for is not done.";

async function troubleView() {
  const [letters, r] = await Promise.all([all(api + "/dead"), ready()]);
  const told = new Set(letters.items.filter(l => l.stream === "NOTEBOOK").map(l => l.seq));
  const events = r.bad_events.filter(e => !told.has(e.seq)); // the others are dealt with together with their letters
  const waiting = letters.items.length + events.length;
  return [waiting > 0 ? waiting + " to look at" : "Messages", [
    el("p", {}, el("a", { href: "#/" }, "All threads")),
    el("h1", {}, "Messages that nobody could read"),
    dealt && el("p", { id: "dealt", class: "note", role: "status" }, text(dealt)),
    waiting === 0 ? el("p", { class: "soft" }, "There is none. Everything in the stream was read and applied.") :
      el("p", { class: "soft" }, "Everything else goes on. Each of these waits for you: put back what it stood for, or pass it."),
    letters.items.length > 0 && el("ul", { class: "list" }, letters.items.map(letterItem)),
    letters.more && el("p", { class: "soft" }, "The others are in the API: /api/v1/dead."),
    events.length > 0 && part("/trouble", "events", "Events that could not be applied", el("ul", { class: "list" }, events.map(eventItem))),
    r.bad_count > r.bad_events.length && el("p", { class: "soft" }, "The first " + r.bad_events.length + " of " + r.bad_count + " events are looked at here."),
  ]];
}

function letterItem(l) {
  const [step, putBack] = workers[l.worker] || [l.worker, "asks again for the step that it stood for, if it names one."];
  return el("li", { id: "letter-" + l.id },
    el("h2", {}, "A message for " + step),
    el("p", { class: "error" }, text(l.reason)),
    el("p", { class: "soft" }, "Worker " + l.worker + " · ", text(l.subject), " · message " + l.seq + " of " + l.stream + " · ", when(l.at), threadLink(l.subject)),
    l.data && el("details", { id: "data-" + l.id }, el("summary", {}, "What it holds"), el("pre", { dir: "auto" }, l.data.length > 4000 ? l.data.slice(0, 4000) + "…" : l.data)),
    el("dl", { class: "does" }, el("dt", {}, "Put back"), el("dd", {}, putBack), el("dt", {}, "Pass"), el("dd", {}, passing)),
    el("div", { class: "actions" },
      actionButton("put-back-" + l.id, "Put back", dealing(async () => {
        const put = await ask(api + "/dead/" + l.id + "/retry", "POST");
        const again = { ...stageWords, close: "the end of the cycle", autopilot: "autopilot's decision" }[put.stage] || put.stage;
        return "Put back: " + again + " was asked for again" + (put.run ? ", by a run that was requested anew; its credits are reserved." : ".");
      })),
      actionButton("pass-" + l.id, "Pass", dealing(async () => passed(await ask(api + "/dead/" + l.id + "/pass", "POST"))))));
}

function eventItem(e) {
  return el("li", { id: "event-" + e.seq },
    el("p", { class: "error" }, text(e.error)),
    el("p", { class: "soft" }, text(e.subject), " · message " + e.seq + " of NOTEBOOK · ", when(e.at), threadLink(e.subject)),
    el("dl", { class: "does" }, el("dt", {}, "Pass"), el("dd", {}, passing)),
    el("div", { class: "actions" }, actionButton("pass-event-" + e.seq, "Pass", dealing(async () => passed(await ask(api + "/bad-events/" + e.seq + "/pass", "POST"))))));
}

function passed(p) { return "Passed: message " + p.seq + (p.letters > 1 ? ", for " + p.letters + " workers," : "") + " is off the list. It stays in the stream."; }

// dealing does what a button of a message stands for, tells what the server answered, and looks again: also after a refusal, since somebody else may have
// dealt with the message.
function dealing(doing) {
  return async () => {
    try { dealt = await doing(); } catch (e) { dealt = ""; throw e; } finally { await show(true); showState(); }
  };
}

function threadLink(subject) {
  const thread = subject.split(".")[2];
  return thread && thread !== "_" && /^[a-z0-9_-]+$/.test(thread) && [" · ", el("a", { href: "#/threads/" + thread }, "the thread")];
}

// ---- one thread ----

async function threadView(id) {
  const at = api + "/threads/" + id;
  const [thread, runs, facts, sources, questions, contradictions, brief, coverage, settings] = await Promise.all([
    ask(at), all(at + "/runs"), all(at + "/facts"), all(at + "/sources"), all(at + "/questions"), all(at + "/contradictions"),
    newest(at + "/brief"), newest(at + "/coverage"), ask(api + "/settings")]);
  const open = runs.items.filter(isOpen), ended = runs.items.filter(r => !isOpen(r)).reverse();
  const numbers = new Map(facts.items.map((f, i) => [f.id, i + 1]));
  const ref = f => numbers.has(f) && el("a", { href: "#/threads/" + id + "/facts/" + f, "aria-label": "fact " + numbers.get(f) }, "[" + numbers.get(f) + "]");
  watchRuns(open);
  say((statusWords[thread.status] || thread.status) + ": " + thread.reason.text);
  const asked = runs.items.length > 0;
  const reports = new Set(runs.items.filter(r => r.status === "completed" && !r.deleted).map(r => r.id));
  const parts = threadParts({ thread, reports, open, ended, facts, sources, questions, contradictions, brief, coverage, asked, ref, numbers, token: settings.token_required }).filter(p => p.shown);
  const section = p => part("/threads/" + id, p.name, p.title, p.shown);
  return [(statusWords[thread.status] || thread.status) + ": " + thread.title, [
    el("p", {}, el("a", { href: "#/" }, "All threads")),
    contents(id, parts),
    el("h1", { id: "/threads/" + id + "/parts/question", tabindex: -1, dir: "auto" }, thread.title),
    thread.title !== thread.question && el("p", { class: "asked", dir: "auto" }, thread.question),
    thread.tags.length > 0 && tags(thread.tags),
    statusLine(thread),
    thread.knowledge_error && el("p", { class: "error" }, "The stage " + thread.knowledge_error.stage + " failed ", when(thread.knowledge_error.since), ": ",
      text(thread.knowledge_error.reason), (thread.knowledge_error.stage === "distill" ? " The report" : " What was found") + " is kept; retry the stage under the ended runs."),
    thread.replay && el("p", { class: "note" }, "Replay: the runs of this thread play a recording, whatever is asked. Credits are counted, but nothing is bought."),
    parts.filter(p => p.name === "now").map(section),
    figures(["Facts", thread.counts.facts], ["Sources", thread.counts.sources], ["Contradictions", thread.counts.contradictions], ["Budget", credits(thread.ledger.budget)],
      ["Spent", thread.ledger.spent], ["Reserved", thread.ledger.reserved], ["Left", thread.ledger.budget - thread.ledger.spent - thread.ledger.reserved]),
    threadActions(thread, asked, settings),
    (asked || thread.start_refused?.code === "no_questions") && followUp(thread, questions.items, settings),
    parts.filter(p => p.name !== "now").map(section),
  ]];
}

// threadParts are the parts of a thread's page in their order: what each shows, if anything, with its title, and how the contents name and count it.
function threadParts({ thread, reports, open, ended, facts, sources, questions, contradictions, brief, coverage, asked, ref, numbers, token }) {
  const some = list => list.items.length > 0;
  return [
    { name: "now", label: "Under way", n: open.length, title: open.length === 1 ? "Under way" : "Under way: " + count(open.length, "run"),
      shown: open.length > 0 && el("ul", { class: "list" }, open.map(openRun)) },
    { name: "brief", label: brief ? "Findings" : "Brief", n: brief && brief.findings.length, title: "Brief", shown: asked && briefPart(thread, brief, contradictions.items, ref) },
    { name: "contradictions", label: "Disputed", n: contradictions.items.length, title: "Disputed: " + count(contradictions.items.length, "contradiction"),
      shown: some(contradictions) && el("ul", { class: "list" }, contradictions.items.map(c => contradictionItem(c, ref))) },
    { name: "facts", label: "Facts", n: facts.items.length, title: count(facts.items.length, "fact"), shown: asked && (!some(facts) ? el("p", { class: "soft" }, "Facts appear when a report has been read.") :
      [facts.items.some(f => f.stale) && el("p", { class: "soft" }, el("span", { class: "warn" }, "stale"), ": " + staleWords),
        el("ol", { class: "list" }, facts.items.map(f => factItem(f, numbers.get(f.id), ref, reports))), facts.more && el("p", { class: "soft" }, "The others are in the API.")]) },
    { name: "sources", label: "Sources", n: sources.items.length, title: count(sources.items.length, "source"),
      shown: some(sources) && el("ul", { class: "list" }, sources.items.map(sourceItem)) },
    { name: "questions", label: "Questions", n: questions.items.length, title: count(questions.items.length, "question"), shown: el("ul", { class: "list" }, questions.items.map(questionItem)) },
    { name: "coverage", label: "Topics", n: coverage && coverage.topics.length, title: "Topics", shown: coverage && el("ul", {}, coverage.topics.map(t => el("li", {}, text(t.name), ": " + count(t.facts, "fact"),
      t.thin && el("span", { class: "warn" }, " (thin)")))) },
    { name: "runs", label: "Ended runs", n: ended.length, title: count(ended.length, "ended run"), shown: ended.length > 0 && el("ul", { class: "list" }, ended.map(endedRun)) },
    { name: "settings", label: "Settings", title: "Settings of this thread", shown: threadSettings(thread) },
    { name: "terminal", label: "Terminal", title: "Go on from a terminal", shown: terminal(thread, token) },
  ];
}

// contents lead to the parts of a thread's page. A part's address is the thread's with the part behind it, and its heading has that as its id: so the
// browser goes there by itself, and the address of a part can be kept.
function contents(id, parts) {
  const entry = (name, label, n) => el("li", {}, el("a", { href: "#/threads/" + id + "/parts/" + name }, label), Number.isFinite(n) && [" ", el("span", {}, n)]);
  return el("nav", { id: "contents", "aria-label": "On this page" }, el("details", { open: wide.matches }, el("summary", {}, "On this page"),
    el("ol", {}, entry("question", "Question"), parts.map(p => entry(p.name, p.label, p.n)))));
}

function part(at, name, title, ...children) {
  const heading = at + "/parts/" + name;
  return el("section", { id: "part-" + name, "aria-labelledby": heading }, el("h2", { id: heading, tabindex: -1 }, title), ...children);
}

function threadActions(thread, asked, settings) {
  const at = api + "/threads/" + thread.id;
  const left = thread.ledger.budget - thread.ledger.spent - thread.ledger.reserved;
  const refused = thread.autopilot ? null : startRefused(thread, settings);
  const barred = runRefused(thread, settings, thread.settings.mode);
  const both = refused && barred && refused.code === barred.code;
  const once = actionButton("ask-once", (asked ? "Ask again" : "Ask now") + " (" + credits(costs[thread.settings.mode] || 0) + ")",
    async () => { await ask(at + "/runs", "POST", {}); await show(true); }, asked ? "quiet" : "main");
  const waits = el("p", { id: "ask-waits", class: "soft" });
  bar(once, waits, barred, barred && [barred.text + " The question can be asked" + (asked ? " again" : "") + (both ? ", and autopilot started, " : " "), cure(thread, barred.code)]);
  return el("div", { id: "actions" }, el("div", { class: "actions" }, once,
    !thread.autopilot && !refused && actionButton("start", "Start", async () => { try { await startAutopilot(at, thread.settings.auto); } finally { await show(true); } }),
    thread.status === "running" && actionButton("pause", "Pause", async () => { await ask(at + "/pause", "POST"); await show(true); })),
    waits,
    !thread.autopilot && !both && el("p", { id: "pilot-waits", class: "soft" }, refused ? pilotWaits(thread, refused) : pilotWords(thread, left)),
    thread.status === "running" && el("p", { class: "soft" }, "Pause lets a call that is under way finish and keeps what it brings."));
}

// keyless is the reason of a thread that asks for real and has no key, nothing for any other. The API takes a key for given.
function keyless(thread, settings) {
  const is = thread.replay === false && thread.settings.provider === "tabstack" && !settings.tabstack_key_set;
  return is ? { code: "no_key", text: "There is no key for " + thread.settings.provider + "." } : null;
}

// startRefused says why autopilot would not go on, and runRefused why a run would not be asked for; null when it would.
function startRefused(thread, settings) { return thread.start_refused || keyless(thread, settings); }

function runRefused(thread, settings, mode) { return thread.run_refused[mode] || keyless(thread, settings); }

// cure ends a sentence with what has to be done before something goes on that is refused by a code, and a link to where it is done.
function cure(thread, code) {
  const control = (before, id, words) => [before + ": ", el("a", { href: "#/threads/" + thread.id + "/controls/" + id }, words), "."];
  switch (code) {
    case "budget": return control("after the budget is raised", "thread-budget", "set the budget");
    case "depth": return control("after the depth is raised", "thread-depth", "set the depth");
    case "archived": return control("once it is out of the archive", "archive", "take it out");
    case "no_questions": return control("when there is a question to ask", "follow-up", "put one");
    case "no_key": return ["after a key is saved: ", el("a", { href: "#/settings" }, "save a key"), "."];
    case "answer_budget": return "after its limit of answers is raised, by the API (answer_budget).";
  }
  return control("after its settings are changed", "thread-mode", "change the settings");
}

// startAutopilot sets autopilot on and starts it: both or, where Start is refused after all, neither.
async function startAutopilot(at, on) {
  if (!on) await ask(at, "PATCH", { auto: true });
  try { await ask(at + "/start", "POST"); } catch (e) {
    if (!on && e.status === 409) await ask(at, "PATCH", { auto: false });
    throw e;
  }
}

// pilotWaits says what has to be done before autopilot can be started, and why if the status does not say it already.
function pilotWaits(thread, refused) {
  return [!thread.reason.text.includes(refused.text) && refused.text + " ", "Autopilot can be started ", cure(thread, refused.code)];
}

// pilotWords say how far autopilot would go. A budget may be below what was spent: then nothing is left, however it is counted.
function pilotWords(thread, left) {
  const cost = costs[thread.settings.mode] || 0;
  if (left < cost) return "Autopilot asks nothing now: a run costs " + credits(cost) + ", and " + (left > 0 ? "only " + left : "nothing") + " of the budget is left.";
  const asks = thread.settings.depth === 0 ? "what you put in line by itself, and no follow-ups (depth 0)" :
    "follow-up questions by itself, " + (thread.settings.depth < 0 ? "however deep they go" : "down to depth " + thread.settings.depth);
  return "Start sets autopilot on. It asks " + asks + ", until the budget allows no further run (" + credits(left) + " left) or nothing is left to ask.";
}

function followUp(thread, questions, settings) {
  const at = api + "/threads/" + thread.id;
  const now = el("button", { id: "ask-now", type: "submit" }, "Ask now");
  const modes = modeSelect("follow-up-mode", thread.settings.mode);
  const waits = el("p", { id: "follow-up-waits", class: "soft" });
  const look = mode => {
    const refused = runRefused(thread, settings, mode);
    bar(now, waits, refused, refused && [refused.text + " A question can be asked ", cure(thread, refused.code)]);
  };
  modes.addEventListener("input", () => look(modes.value));
  look(typed(modes.id, thread.settings.mode));
  const sent = async () => { document.getElementById("follow-up").value = ""; await show(true); };
  const later = actionButton("put-first", "Put first in line", async () => {
    if (!document.getElementById("follow-up").reportValidity()) return;
    let question = await ask(at + "/questions", "POST", { text: value("follow-up") });
    lined = question.id;
    if (question.position > 0) question = await ask(api + "/questions/" + question.id, "PATCH", { position: 0 }); // another of a person's was there
    done(inLine(question, await ask(at), settings));
    await sent();
  });
  const put = questions.find(q => q.id === lined && q.status === "pending");
  // What the buttons were made by is a part of the form: one that was made by something else is another.
  return form({ id: "follow-up-form", class: "card", "data-made-by": JSON.stringify([thread.run_refused, settings.tabstack_key_set]) }, now, async () => {
    await ask(at + "/runs", "POST", { question: value("follow-up"), mode: value("follow-up-mode") });
    await sent();
  },
    el("div", { class: "row" },
      el("div", { class: "wide" }, field("A follow-up question", el("textarea", { id: "follow-up", rows: 2, required: true, maxlength: 20000, dir: "auto" }))),
      field("Mode", modes)),
    el("div", { class: "actions" }, now, later), waits,
    put && el("p", { id: "lined", class: "note" }, text(inLine(put, thread, settings))));
}

// inLine says what becomes of a question that was put in line, as the thread is now. What came to nothing before stays ahead of it.
function inLine(question, thread, settings) {
  const place = question.position === 0 ? "The question is first in line." : "The question is in line, at place " + (question.position + 1) + ".";
  const refused = thread.autopilot ? runRefused(thread, settings, thread.settings.mode) : startRefused(thread, settings);
  if (refused) return place + " Nothing asks it now. " + refused.text;
  if (thread.autopilot) return place + (question.position === 0 ? " Autopilot asks it next." : " Autopilot asks it in its turn.");
  return place + " Autopilot is not at work: Start has it asked.";
}

// ---- runs ----

const worked = new Set(["pending", "waiting", "running"]);

function isOpen(run) {
  return run.status === "requested" || run.status === "running" || run.status === "completed" && run.stages.some(s => worked.has(s.state));
}

// watchRuns follows what providers say, one stream a call under way, and looks again at what tells no events: a stage that is worked on, and what is waited for.
function watchRuns(open) {
  if (open.some(r => r.status !== "running") && !document.hidden) looking = setTimeout(() => show(true), lookAgain);
  const calls = new Set(open.filter(r => r.status === "running").map(r => r.id));
  for (const [id, stream] of trails) if (!calls.has(id)) { stream.close(); trails.delete(id); }
  for (const id of calls) {
    if (trails.has(id) || document.hidden) continue;
    trails.set(id, followTrail(id, phase => {
      const shown = document.getElementById("phase-" + id);
      if (shown) setText(shown, phaseWords(phase));
    }));
  }
}

function openRun(run) {
  const call = { name: "run", state: run.status === "requested" ? "waiting" : run.status === "running" ? "running" : "done", text: "", engine: "", error: "" };
  const phase = document.getElementById("phase-" + run.id);
  return el("li", { id: "run-" + run.id },
    el("p", {}, el("strong", { dir: "auto" }, run.question)),
    el("p", { class: "soft" }, runFacts(run), " · asked ", when(run.requested_at)),
    run.waiting && el("p", { class: "warn" }, "Waits for ", text(run.waiting.for), run.waiting.until && [", goes on ", when(run.waiting.until)], "."),
    el("ol", { class: "steps" }, [call, ...run.stages].map(s => el("li", { class: s.state, "aria-current": s.state === "running" && "step" },
      stageWords[s.name] || s.name, el("small", {}, s.state, s.text && [": ", text(s.text)])))),
    run.status === "running" && el("p", { class: "soft" }, "The provider reports: ", el("span", { id: "phase-" + run.id }, run.phase ? phaseWords(run.phase) : phase && phase.textContent || "nothing yet")),
    (run.status === "requested" || run.status === "running") && el("div", { class: "actions" }, trailLink(run),
      actionButton("cancel-" + run.id, "Cancel", async () => {
        if (run.status === "running" && !confirm("Cancel this run? Its credits are released here, but the provider may still bill them.")) return;
        await ask(api + "/runs/" + run.id + "/cancel", "POST");
        await show(true);
      })));
}

const phases = {
  start: "it has begun", planning: "planning", outlining: "making an outline", searching: "searching", following: "following links", analyzing: "reading what was found",
  evaluating: "judging what was found", iteration: "a round of searching", writing: "writing the report", complete: "the report is there",
};

// phaseWords quote the provider, and say what that means where it is known.
function phaseWords(name) {
  const [what, edge] = name.split(":");
  return "“" + name + "”" + (Object.hasOwn(phases, what) ? " (" + phases[what] + (edge === "end" ? ", done" : "") + ")" : "");
}

// trailLink leads to all that the provider said, if it was asked and that is still there.
function trailLink(run) {
  return run.attempts.length > 0 && !run.deleted && el("a", { class: "button", href: api + "/runs/" + encodeURIComponent(run.id) + "/trail" }, "The trail (JSON)");
}

function runFacts(run) {
  return [run.mode, run.replayed && "replayed", credits(run.cost), run.pages > 0 && count(run.pages, "cited page"), run.attempts.length > 1 && "attempt " + run.attempts.length]
    .filter(Boolean).join(" · ");
}

function endedRun(run) {
  const failed = run.stages.some(s => s.state === "failed");
  const at = api + "/runs/" + run.id;
  const did = run.stages.filter(s => s.state === "done").length;
  return el("li", { id: "run-" + run.id },
    el("p", {}, el("strong", { dir: "auto" }, run.question)),
    el("p", {}, el("span", { class: "status " + run.status }, run.status), " · ", runFacts(run), " · ", when(run.finished_at || run.requested_at)),
    run.failure && el("p", { class: "error" }, run.failure.code + ": ", text(run.failure.detail)),
    run.deleted && el("p", { class: "soft" }, "Its receipt was deleted: the report and the trail are gone, the facts are kept."),
    run.warnings.map(w => el("p", { class: "warn" }, text(w))),
    run.unresolved_markers > 0 && el("p", { class: "soft" }, count(run.unresolved_markers, "citation marker") + " could not be traced to a page."),
    run.facts_left_out > 0 && el("p", { class: "soft" }, count(run.facts_left_out, "fact") + " beyond the limit of a run were left out."),
    run.status === "completed" && el("details", { open: failed }, el("summary", {}, failed ? "A stage failed" : count(did, "stage") + " done"),
      el("ul", {}, run.stages.map(s => el("li", {}, (stageWords[s.name] || s.name) + ": " + s.state, s.seconds !== null && " in " + seconds(s.seconds), s.engine && " (" + s.engine + ")",
        s.error && el("span", { class: "error" }, " ", text(s.error)), " ",
        s.state === "failed" && actionButton("retry-" + s.name + "-" + run.id, "Retry", async () => { await ask(at + "/stages/" + s.name + "/retry", "POST"); await show(true); }))))),
    run.attempts.length > 0 && !run.deleted && el("div", { class: "actions" },
      run.status === "completed" && el("a", { class: "button", href: "/reports/" + encodeURIComponent(run.id) }, "Read the report"),
      trailLink(run),
      run.status === "completed" && actionButton("delete-" + run.id, "Delete the receipt", async () => {
        if (!confirm("Delete the report and the trail of this run? Its facts and what it cost stay. This cannot be undone.")) return;
        await ask(at, "DELETE");
        done("The receipt is deleted. The facts are kept.");
        await show(true);
      })));
}

function seconds(s) { return s < 10 ? s.toFixed(1) + " s" : s < 120 ? Math.round(s) + " s" : Math.round(s / 60) + " min"; }

// ---- what came of it ----

function briefPart(thread, brief, contradictions, ref) {
  if (!brief) return el("p", { class: "soft" }, "The brief is written when the first run has been read.");
  const cited = s => el("li", { dir: "auto" }, s.text, " ", el("span", { class: "refs" }, s.facts.map(ref)));
  const sides = new Map(contradictions.map(c => [c.id, [c.a.id, c.b.id]]));
  const list = (title, items, item) => items.length > 0 && [el("h3", {}, title), el("ul", {}, items.map(item))];
  return el("div", { class: "card" },
    list("Findings", brief.findings, cited), list("Disputed", brief.disputed, d => cited({ text: d.text, facts: sides.get(d.contradiction) || [] })),
    brief.withheld.length > 0 && el("p", { class: "soft" }, "Not among the findings, because they repeat a side of a dispute or rest on one: ",
      el("span", { class: "refs" }, brief.withheld.map(ref))),
    list("Relationships", brief.relationships, cited),
    list("Gaps", brief.gaps, g => el("li", { dir: "auto" }, g)),
    el("p", { class: "soft" }, "After " + count(brief.run_count, "run") + " · engine " + brief.engine + " · ", when(brief.created_at),
      brief.dropped_sentences > 0 && " · " + count(brief.dropped_sentences, "sentence") + " dropped"),
    el("div", { class: "actions" },
      actionButton("brief-download", "Download Markdown", async () => save("brief-" + thread.id + "-" + brief.cycle + ".md", brief.markdown)),
      copyButton("brief-copy", "Copy Markdown", "Copy Markdown", brief.markdown, "brief-markdown"),
      el("small", {}, "The file numbers its facts anew, in the order in which the brief cites them, and lists them with their pages.")),
    el("details", {}, el("summary", {}, "Show the Markdown"), el("pre", { id: "brief-markdown", dir: "auto" }, brief.markdown)));
}

const staleWords = "the newest page that a fact was found on is older than six months, by its date or, where it has none, by when it was read.";

// citedBy leads to the pages that a fact without one source is cited from: those of the marks in its excerpt, in the list of the report that they stand in.
function citedBy(f, reports) {
  const marks = [...new Set(((f.excerpt?.text || "").match(/\[\d+(?:\s*,\s*\d+)*\]/g) || []).flatMap(m => m.match(/\d+/g)))];
  if (marks.length === 0) return "no page is cited";
  const link = n => reports.has(f.run) ? el("a", { href: "/reports/" + encodeURIComponent(f.run) + "#page-" + n, "aria-label": "cited page " + n }, "[" + n + "]") : "[" + n + "]";
  return [marks.length > 1 ? "cited by several pages: " : "cited by a page that cannot be opened: ", el("span", { class: "refs" }, marks.map(link))];
}

function factItem(f, number, ref, reports) {
  return el("li", { id: "fact-" + f.id, tabindex: -1 },
    el("p", { dir: "auto" }, el("strong", {}, number + ". " + f.statement)),
    el("p", { class: "soft" }, f.source ? [weblink(f.source.url, f.source.title || f.source.url), " · " + site(f.source.url)] : citedBy(f, reports),
      f.source && f.source.published_at && " · " + f.source.published_at.slice(0, 10),
      f.support.pages > 1 && " · " + count(f.support.pages, "page") + " on " + count(f.support.sites, "site"), " · confidence " + Math.round(f.confidence * 100) + "%",
      f.disputed && [" · ", el("span", { class: "error" }, "disputed")], f.stale && [" · ", el("span", { class: "warn", title: "Stale: " + staleWords }, "stale since " + f.stale_since.slice(0, 10))], f.replayed && " · replayed",
      f.seen_elsewhere.length > 0 && " · seen in " + count(f.seen_elsewhere.length, "other thread"),
      f.related.length > 0 && [" · see also ", el("span", { class: "refs" }, f.related.map(ref))]),
    f.excerpt && el("blockquote", { dir: "auto" }, f.excerpt.text),
    f.tags.length > 0 && tags(f.tags));
}

function site(url) { try { return new URL(url).hostname.replace(/^www\./, ""); } catch { return url; } }

// toPlace goes to the fact, the part or the control that the address names, and opens what it is folded into.
function toPlace() {
  const [, , , kind, id] = location.hash.split("/");
  const e = document.getElementById(kind === "facts" ? "fact-" + id : kind === "controls" ? id : location.hash.slice(1));
  if (!e) return;
  const folded = e.closest("details");
  if (folded) folded.open = true;
  e.scrollIntoView({ block: kind === "controls" ? "center" : "start" });
  e.focus({ preventScroll: true });
}

function contradictionItem(c, ref) {
  const fact = f => el("p", { dir: "auto" }, el("span", { class: "refs" }, ref(f.id)), " ", f.statement);
  return el("li", { id: "pair-" + c.id }, fact(c.a), el("p", { class: "error" }, "against"), fact(c.b),
    el("p", { class: "soft" }, text(c.reason), " · engine " + c.engine + " · found ", when(c.found_at)));
}

function sourceItem(s) {
  return el("li", { id: "source-" + s.id },
    el("p", {}, weblink(s.url, s.title || s.url)),
    el("p", { class: "soft" }, [site(s.url), s.published_at ? s.published_at.slice(0, 10) : "no date", "cited by " + count(s.cited_count, "run")].join(" · ")),
    s.summary && el("p", { class: "soft", dir: "auto" }, s.summary));
}

const questionWords = { pending: "in line", admitted: "being asked", answered: "answered", dismissed: "dismissed" };

function questionItem(q) {
  const at = api + "/questions/" + q.id;
  return el("li", { id: "question-" + q.id }, el("p", { dir: "auto" }, q.text),
    el("p", { class: "soft" }, (questionWords[q.status] || q.status) + (q.position === null ? "" : ", place " + (q.position + 1)) + " · " +
      (q.origin === "human" ? "yours" : "proposed") + " · depth " + q.depth),
    q.status === "pending" && el("div", { class: "actions" },
      q.position > 0 && actionButton("first-" + q.id, "Put first", async () => { await ask(at, "PATCH", { position: 0 }); await show(true); }),
      actionButton("dismiss-" + q.id, "Dismiss", async () => { await ask(at, "DELETE"); done("The question is dismissed."); await show(true); })));
}

// ---- settings of a thread, and the end of it ----

function threadSettings(thread) {
  const at = api + "/threads/" + thread.id;
  const send = el("button", { id: "save-thread", type: "submit" }, "Save");
  const modes = modeSelect("thread-mode", thread.settings.mode);
  return el("details", {}, el("summary", {}, "Title, budget, depth, autopilot, archive, delete"),
    form({ id: "thread-settings", class: "card" }, send, async () => {
      await ask(at, "PATCH", changed({
        title: thread.title, tags: thread.tags, budget: thread.ledger.budget, depth: thread.settings.depth, mode: thread.settings.mode, auto: thread.settings.auto,
      }, {
        title: value("thread-title"), tags: value("thread-tags").split(",").map(t => t.trim()).filter(Boolean), budget: Number(value("thread-budget")),
        depth: Number(value("thread-depth")), mode: value("thread-mode"), auto: document.getElementById("thread-auto").checked,
      }));
      done("Saved.");
      await show(true);
    },
      field("Title", el("input", { id: "thread-title", required: true, value: thread.title, dir: "auto" })),
      field("Tags", el("input", { id: "thread-tags", value: thread.tags.join(", "), dir: "auto" }), "Separated by commas"),
      el("div", { class: "row" }, budgetField("thread-budget", thread.ledger.budget, modes, thread.settings.mode, thread.ledger.spent + thread.ledger.reserved),
        numberField("thread-depth", "Depth (-1: no limit)", thread.settings.depth, { min: -1, max: 100 }), field("Mode", modes)),
      el("p", {}, el("label", { class: "check", for: "thread-auto" }, el("input", { id: "thread-auto", type: "checkbox", checked: thread.settings.auto }), "Autopilot")),
      el("p", { class: "soft" }, "Provider " + thread.settings.provider + ", engine " + thread.settings.engine + "."),
      send),
    el("div", { class: "actions" },
      actionButton("archive", thread.archived ? "Take out of the archive" : "Archive", async () => { await ask(at, "PATCH", { archived: !thread.archived }); await show(true); }),
      actionButton("delete", "Delete the thread", async () => {
        if (!confirm("Delete “" + inert(thread.title) + "” with all its facts and reports? What it cost stays known. This cannot be undone.")) return;
        await ask(at, "DELETE");
        done("The thread is deleted.");
        location.hash = "#/";
      }, "danger")));
}

function terminal(thread, token) {
  const at = location.origin + api, key = token ? ' -H "Authorization: Bearer $FACTSTREAM_TOKEN"' : "";
  const lines = [
    ["Ask once, balanced", "curl -s" + key + " -X POST " + at + "/threads/" + thread.id + "/runs -H 'Content-Type: application/json' -d '{\"mode\": \"balanced\"}'"],
    ["Status, reason and money", "curl -s" + key + " " + at + "/threads/" + thread.id],
    ["Facts", "curl -s" + key + " " + at + "/threads/" + thread.id + "/facts"],
    ["Brief", "curl -s" + key + " " + at + "/threads/" + thread.id + "/brief"],
    ["Everything as it happens", "curl -sN" + key + " '" + at + "/events?thread=" + thread.id + "'"],
  ];
  return el("dl", { class: "lines" }, lines.map(([name, line], i) => {
    const code = el("code", { id: "line-" + i }, line);
    const button = copyButton("copy-" + i, "Copy", "Copy: " + name, line, "line-" + i);
    return el("div", {}, el("dt", {}, name), el("dd", {}, el("pre", {}, code), button));
  }));
}

// copyButton copies words, which the element of an id shows, for a browser that leaves the copying to the person.
function copyButton(id, label, name, words, shown) {
  const button = el("button", { id, type: "button", class: "quiet", "aria-label": name }, label);
  button.addEventListener("click", act(button, async () => {
    const e = document.getElementById(shown), folded = e.closest("details");
    const copied = await copy(words, e, () => { if (folded) folded.open = true; });
    done(copied ? "Copied." : "It is selected; copy it with your keyboard.");
    setText(button, copied ? "Copied" : "Selected");
    setTimeout(() => setText(button, label), 2000);
  }));
  return button;
}

// ---- settings ----

async function settingsView() {
  const s = await ask(api + "/settings");
  const send = el("button", { id: "save", type: "submit" }, "Save");
  const saved = async changes => {
    await ask(api + "/settings", "PUT", changes);
    done("Saved. It counts from the next run on.");
    showState();
    await show(true);
  };
  return ["Settings", [
    el("h1", {}, "Settings"),
    el("p", { class: "soft" }, "They count from the next run on, without a restart. An environment variable counts only where nothing is saved here."),
    form({ id: "settings", class: "card" }, send, async () => {
      const key = value("tabstack-key");
      await saved({
        ...(key ? { tabstack_key: key } : {}),
        ...changed(s, { mode: value("default-mode"), budget: Number(value("default-budget")), depth: Number(value("default-depth")), engine: value("engine") }),
        ollama: changed(s.ollama, { host: value("ollama-host"), chat_model: value("chat-model"), embed_model: value("embed-model"), num_ctx: Number(value("num-ctx")) }),
      });
      document.getElementById("tabstack-key").value = "";
    },
      el("h2", {}, "Research"),
      s.key_error && el("p", { class: "error" }, s.key_error),
      field("Tabstack key", el("input", { id: "tabstack-key", type: "password", autocomplete: "off", spellcheck: "false" }),
        s.tabstack_key_set ? "A key is set. It is never shown; type another to replace it." : "No key: runs play recordings. It is stored encrypted and never shown again."),
      s.tabstack_key_set && actionButton("forget", "Forget the saved key", async () => {
        if (confirm("Forget the saved Tabstack key? Live threads then wait until there is one again.")) await saved({ tabstack_key: null });
      }),
      el("h2", {}, "New threads"),
      el("div", { class: "row" }, field("Mode", modeSelect("default-mode", s.mode)), numberField("default-budget", "Budget (credits)", s.budget, { min: 0, max: 1000000000 }),
        numberField("default-depth", "Depth (-1: no limit)", s.depth, { min: -1, max: 100 })),
      field("Engine", el("select", { id: "engine" }, [["auto", "auto: Ollama if it answers, else rules"], ["ollama", "ollama: wait for the language model"], ["extractive", "extractive: rules, no language model"]]
        .map(([name, words]) => el("option", { value: name, selected: name === s.engine }, words)))),
      el("h2", {}, "Ollama"),
      field("Address", el("input", { id: "ollama-host", required: true, value: s.ollama.host })),
      el("div", { class: "row" }, field("Chat model", el("input", { id: "chat-model", required: true, value: s.ollama.chat_model })),
        field("Embedding model", el("input", { id: "embed-model", required: true, value: s.ollama.embed_model })),
        numberField("num-ctx", "Context (tokens)", s.ollama.num_ctx, { min: 1 })),
      send),
  ]];
}

// ---- go ----

document.getElementById("skip").addEventListener("click", event => { event.preventDefault(); main.focus(); main.scrollIntoView(); });
document.getElementById("problem-close").addEventListener("click", () => tell(""));

// A fact or a part of the thread that is shown is gone to, and back from; anything else is another view.
let shown = location.hash;
addEventListener("hashchange", () => {
  const [was, is] = [shown, location.hash].map(h => h.split("/").slice(0, 3).join("/"));
  shown = location.hash;
  if (was === is) toPlace(); else show(false);
});

main.addEventListener("click", event => { // the same place once more
  const link = event.target.closest("a[href^='#/']");
  if (link && link.hash === location.hash) toPlace();
});

// A browser says itself what is wrong with a field: one message at a time.
main.addEventListener("invalid", () => tell(""), true);

// Beside the page the contents are open, above it they are folded.
wide.addEventListener("change", () => {
  const e = document.querySelector("#contents details");
  if (e) e.open = wide.matches;
});

// A browser keeps six connections to a server, over all tabs: those that nobody looks at hold none, and look now and then.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) { stopWatching(); clearTimeout(looking); } else { showState(); show(true); }
});
setInterval(() => { tick(); showState(); if (document.hidden && location.hash !== "#/settings") show(true); }, looksIdle);

showState();
show(false);
