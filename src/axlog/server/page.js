"use strict";
// The page polls its state once a second and redraws what changed. Its address is a link to what it shows.

const PARAMETERS = ["document", "view", "truth", "find", "row"];
const chosen = { document: null, view: null, truth: "", find: "", row: null, show: 100, start: 0 };
let state = null;
let asking = null;
let asked = 0;
let failures = 0;
let answered = null; // when the server last answered

async function ask(path, parameters = {}) {
  return read(await fetch(`${path}?${new URLSearchParams(parameters)}`));
}

async function send(method, path, body) {
  return read(await fetch(path, { method, headers: { "Content-Type": "application/json" }, body: body === undefined ? undefined : JSON.stringify(body) }));
}

async function read(answer) {
  if (answer.status === 401) askToken("");
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).detail || answer.statusText);
  return answer.status === 204 ? null : answer.json();
}

function announce(says) {
  // For screen readers: what changed without a click is not read aloud otherwise.
  $("announce").textContent = says;
}

// Signing in: the token becomes a cookie that scripts cannot read, and is stored nowhere else. ----------

async function signIn(token) {
  const answer = await fetch("/session", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) });
  if (!answer.ok) return askToken((await answer.json()).detail || answer.statusText);
  $("sign-in").close();
  return showWho(await answer.json());
}

function askToken(fault) {
  $("sign-in-fault").textContent = fault;
  $("sign-out").hidden = true;
  if (!$("sign-in").open) $("sign-in").showModal();
}

function showWho(said) {
  $("sign-out").hidden = said.name === "anyone";
  $("sign-out").textContent = `sign out ${said.name}`;
}

async function signInByLink() {
  // Browsers do not send the part after #; remove it from the address bar and the history too.
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given !== null) {
    history.replaceState(null, "", location.pathname + location.search);
    await signIn(given);
  } else {
    const answer = await fetch("/session");
    if (answer.ok) showWho(await answer.json());
  }
}

async function signOut() {
  await fetch("/session", { method: "DELETE" });
  location.reload();
}

// The address ----------------------------------------------------------------------------------------------

function readAddress() {
  const given = new URLSearchParams(location.search);
  for (const name of PARAMETERS) chosen[name] = given.get(name) || (name === "truth" || name === "find" ? "" : null);
  if (!["", "true", "possible", "never"].includes(chosen.truth)) chosen.truth = "";
  Object.assign(chosen, { show: 100, start: 0 });
  $("find").value = chosen.find;
  seen = new Set();
}

function address() {
  const given = new URLSearchParams();
  for (const name of PARAMETERS) if (chosen[name]) given.set(name, chosen[name]);
  return `${location.pathname}${given.size ? `?${given}` : ""}`;
}

function keepAddress() {
  if (address() !== location.pathname + location.search) history.replaceState(null, "", address());
}

async function openLinkedRow() {
  if (chosen.row === null || !chosen.view || $("why").open) return;
  let row = null;
  try { row = JSON.parse(chosen.row); } catch { /* not a row */ }
  if (row && typeof row === "object" && !Array.isArray(row)) await openRow(chosen.document, chosen.view, row, null);
  else { chosen.row = null; keepAddress(); }
}

// The state ------------------------------------------------------------------------------------------------

async function refresh() {
  clearTimeout(asking);
  const number = ++asked;
  const selection = Object.fromEntries(["document", "view", "truth", "find", "show", "start"].map((name) => [name, chosen[name] ?? ""]));
  let said = null;
  try { said = await ask("/live/state", selection); } catch (error) { if (number === asked) isAway(error); }
  if (number !== asked) return undefined; // the selection has changed since
  asking = setTimeout(refresh, failures ? Math.min(10, 2 ** failures) * 1000 : 1000);
  if (said === null) return undefined;
  state = said;
  if (settle()) return refresh();
  isHere();
  return show();
}

function isHere() {
  if (failures) announce("the server answers again");
  failures = 0;
  answered = new Date();
  document.body.classList.remove("stale");
  $("stale").hidden = true;
}

function isAway(error) {
  failures += 1;
  const since = answered ? `The server has not answered since ${answered.toLocaleTimeString("en-GB")}: what you see is the state at that time.` : "The server does not answer.";
  const says = `${since} (${error.message})`;
  if ($("stale").textContent !== says) $("stale").textContent = says;
  $("stale").hidden = false;
  if (state) document.body.classList.add("stale");
  $("status").replaceChildren(element("span", { class: "dot lost" }), "no answer");
}

function settle() {
  // Select a document and a view if none is selected, or the selected one is gone; return whether that changed.
  const before = JSON.stringify(chosen);
  if (!state.documents.some((w) => w.name === chosen.document)) choose(state.documents.length ? state.documents[0].name : null, null);
  const here = current();
  const isMember = state.shown && state.shown.view === chosen.view && here && here.views.some((v) => v.members !== undefined);
  if (here && !isMember && !here.views.some((v) => v.name === chosen.view)) choose(here.name, here.views.length ? here.views[0].name : null);
  return JSON.stringify(chosen) !== before;
}

function choose(name, view) {
  Object.assign(chosen, { document: name, view, truth: "", find: "", row: null, show: 100, start: 0 });
  $("find").value = "";
  seen = new Set();
}

function pick(change) {
  Object.assign(chosen, change);
  keepAddress();
  linkExports();
  return refresh();
}

async function go(to) {
  // To a document or a view: a step in the history of the browser.
  const other = to.document !== chosen.document;
  choose(to.document, to.view || null);
  if (address() !== location.pathname + location.search) history.pushState(null, "", address());
  await refresh();
  if (other) { await tree(); checkSoon(); }
}

function current() {
  return state.documents.find((w) => w.name === chosen.document);
}

const ACTS = {
  document: (name) => go({ document: name }),
  view: (name, view) => go({ document: name, view }).then(() => $("panel").scrollIntoView({ block: "nearest" })),
  stream: async (name, stream) => {
    if (name !== chosen.document) await go({ document: name });
    const row = [...document.querySelectorAll("#streams tr")].find((one) => one.dataset.stream === stream);
    if (row) { row.scrollIntoView({ block: "center" }); row.focus(); }
  },
};

function show() {
  const here = current();
  $("engine").textContent = state.engine;
  if (!here) return void $("status").replaceChildren(element("span", { class: "dot waiting" }), state.says || "nothing runs yet");
  keepAddress();
  document.title = `${chosen.view ? `${chosen.view} · ` : ""}${here.name} · axlog`;
  const messages = state.documents.flatMap((w) => w.streams).reduce((sum, s) => sum + s.messages, 0);
  const held = state.pressure.reduce((sum, one) => sum + one.waiting, 0);
  $("status").replaceChildren(element("span", { class: `dot ${state.says ? "waiting" : "live"}` }),
    state.says || `${here.clock ? moment(here.clock) + " · " : ""}${counted(messages, "message")}${held ? `, ${many(held)} waiting` : ""} · ${counted(state.changed, "change")}, ${state.rate}/s`);
  draw("documents", [state.documents.map((w) => w.name), chosen.document], () => state.documents.map((w) => button(element("span", { dir: "auto" }, w.name), () => go({ document: w.name }), { "aria-current": String(w.name === chosen.document) })));
  $("documents").hidden = state.documents.length < 2;
  if (draw("graph", state.documents.map((w) => [w.name, w.nodes, w.state, w.streams.map((s) => [s.name, s.state, s.rate]), w.views]), () => graph(state, ACTS))) wiring(state);
  $("ask-document").textContent = here.name;
  showViews(here);
  showChanges();
  showStreams(here);
  draw("state", [here.sizes, here.unit], () => [curve(here.sizes, `${many(here.state)} ${here.unit}`)]);
  showErrors();
  allowWatch();
}

function changeWords(change) {
  const types = typesOf(change.document, change.view);
  if (change.op !== "update" || !change.before) return words(change.row, types, change.op === "never" ? "never" : "true");
  return Object.entries(change.row).filter(([k, v]) => v !== null || types[k] !== "id").map(([k, v]) => {
    const was = change.before[k];
    const now = cell(v, types[k], "true");
    return JSON.stringify(was) === JSON.stringify(v) ? `${k} ${now}` : `${k} ${cell(was, types[k], "true")} → ${now}`;
  }).join(", ");
}

function showChanges() {
  const newest = state.changes.length ? state.changes[0].number : 0;
  const before = Number($("changes").dataset.newest || newest);
  draw("changes", newest, () => state.changes.length ? state.changes.map((c) => {
    const link = button(element("strong", { dir: "auto" }, c.view || ""), () => go({ document: c.document, view: c.view }).then(() => openRow(c.document, c.view, c.name, null)), { class: "plain", title: "Open this row" });
    return element("li", { "data-good": viewOf(c.document, c.view).good || "", ...(c.number > before ? { class: "new" } : {}) }, badge(c.op), link, " ", element("span", { dir: "auto" }, changeWords(c)), " ", element("span", { class: "soft" }, moment(c.time)));
  }) : [element("li", { class: "soft" }, "none since this run started")]);
  $("changes").dataset.newest = String(newest);
}

function showStreams(here) {
  draw("pressure", state.pressure, () => state.pressure.map((one) => {
    const waits = one.for && one.for.length ? `for ${one.for.join(", ")}` : "for their batch";
    return element("li", {}, badge(one.full ? "full" : "waiting"), element("span", { dir: "auto" }, `${one.source}: ${counted(one.waiting, "update")} ${one.waiting === 1 ? "waits" : "wait"} ${waits}${one.full ? "; reading pauses" : ""}`));
  }));
  draw("streams", [here.name, here.streams], () => {
    const names = [["stream"], ["state"], ["rate", 1], ["messages", 1], ["kept", 1], ["dropped", 1], ["by filters"], ["rejected", 1], ["wanted"]];
    const head = element("tr", {}, ...names.map(([h, n]) => element("th", { scope: "col", class: n ? "number" : "" }, h)));
    const body = here.streams.map((s) => {
      const bar = element("span", { class: "share", role: "img", "aria-label": `${s.dropped} of ${s.messages} dropped`, title: `${s.dropped} of ${s.messages} dropped` }, element("i", {}));
      bar.firstChild.style.width = `${s.messages ? Math.round(100 * s.dropped / s.messages) : 0}%`;
      const number = (value) => element("td", { class: "number" }, many(value));
      return element("tr", { tabindex: "-1", "data-stream": s.name }, element("th", { scope: "row", dir: "auto" }, s.name), element("td", {}, badge(s.state)), element("td", { class: "number" }, `${s.rate}/s`), number(s.messages), number(s.kept),
        number(s.dropped), element("td", {}, bar), number(s.refused), element("td", { class: "code", title: s.wanted.map(short).join("\n") }, s.wanted.map(short).join("  ") || "–"));
    });
    return [element("caption", { class: "hidden" }, `Streams of ${here.name}`), element("thead", {}, head), element("tbody", {}, ...body)];
  });
}

function showErrors() {
  $("letters-open").hidden = !state.can_replay; // letters of earlier runs, too
  draw("errors", [state.letters, state.refused, state.lagging], () => {
    const lagging = state.lagging.map((l) => element("li", {}, badge("lagging"), `${l.name} for ${Math.round(l.seconds)} s (${counted(l.tries, "try", "tries")}): ${l.error}`));
    const letters = state.letters.map((l) => element("li", { title: l.error }, element("span", { class: "badge error" }, l.code), element("strong", { dir: "auto" }, l.stream), ` ${l.origin}: ${l.error.split("\n")[0]}`));
    const more = state.refused > state.letters.length ? [element("li", { class: "soft" }, `${many(state.refused)} in all`)] : [];
    return lagging.length + letters.length ? [...lagging, ...letters, ...more] : [element("li", { class: "soft" }, "none in this run")];
  });
}

// The document ---------------------------------------------------------------------------------------------

async function tree() {
  if (!chosen.document || !state) return;
  const open = new Map([...document.querySelectorAll("#tree details")].map((d) => [d.dataset.path, d.open]));
  let said;
  try { said = await ask("/live/tree", { document: chosen.document }); } catch { return; }
  draw("tree", [chosen.document, said, current() && current().streams], () => [node(said.root, "", open, 0), ...(said.cut ? [element("p", { class: "soft" }, "and more")] : [])]);
}

function node(said, path, open, depth) {
  if (!said) return "";
  if (said.text !== undefined) return element("div", { class: "leaf", dir: "auto" }, said.text);
  if (said.call !== undefined) {
    const stream = current() && current().streams.find((s) => s.name === said.call);
    const kind = stream ? stream.state : "ended";
    return element("div", { class: `leaf call ${kind}` }, element("span", { class: `dot ${kind}` }), `↳ ${said.call} `,
      element("span", { class: "soft" }, stream ? `${kind}, ${counted(stream.messages, "message")}, ${stream.rate}/s` : kind));
  }
  const title = `${said.name}${said.attributes.map(([k, v]) => ` ${k}="${v}"`).join("")}`;
  if (!said.below.length) return element("div", { class: "leaf" }, title);
  const here = `${path}/${title}`;
  const made = element("details", { "data-path": here }, element("summary", {}, title),
    ...said.below.map((b, i) => node(b, `${here}[${i}]`, open, depth + 1)), ...(said.more ? [element("div", { class: "leaf soft" }, "… and more")] : []));
  made.open = open.has(here) ? open.get(here) : depth < 2;
  return made;
}

// Keys: arrows select tabs and rows, Enter explains a row, / searches. --------------------------------------

function step(event, all, back, on) {
  const at = all.indexOf(document.activeElement);
  const to = event.key === on ? at + 1 : event.key === back ? at - 1 : event.key === "Home" ? 0 : event.key === "End" ? all.length - 1 : null;
  if (at < 0 || to === null || !all[to]) return null;
  event.preventDefault();
  all[to].focus();
  return all[to];
}

$("views").onkeydown = (event) => {
  const to = step(event, [...$("views").children], "ArrowLeft", "ArrowRight");
  if (to) to.click();
};
$("rows").onkeydown = (event) => {
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); document.activeElement.click(); return; }
  const all = [...document.querySelectorAll("#rows tr[tabindex]")];
  const to = step(event, all, "ArrowUp", "ArrowDown");
  if (!to) return;
  for (const row of all) row.tabIndex = row === to ? 0 : -1;
  currentRow = to.dataset.key;
};
document.onkeydown = (event) => {
  const typing = ["INPUT", "TEXTAREA", "SELECT"].includes(document.activeElement.tagName);
  if (event.key === "/" && !typing && !document.querySelector("dialog[open]")) { event.preventDefault(); $("find").focus(); }
};
$("find").oninput = () => pick({ find: $("find").value, show: 100, start: 0 });
$("more").onclick = () => pick({ show: Math.min(1000, chosen.show + 300) });
$("before").onclick = () => pick({ start: Math.max(0, chosen.start - chosen.show) });
$("after").onclick = () => pick({ start: chosen.start + chosen.show });
$("save").onclick = saveSearch;
$("drop").onclick = drop;
$("plot").ontoggle = plot;
$("plot-number").onchange = plot;
$("ask").oninput = checkSoon;
$("ask-language").onchange = checkSoon;
$("ask-name").oninput = allowWatch;
$("ask-form").onsubmit = (event) => { event.preventDefault(); if (!$("ask-watch").disabled) watch(); };
$("why-close").onclick = () => $("why").close();
$("why-link").onclick = copyLink;
$("why").onclose = closeRow;
$("letters-open").onclick = openLetters;
$("letters-close").onclick = () => $("letters").close();
addEventListener("resize", () => state && wiring(state));
$("sign-in-form").onsubmit = (event) => {
  event.preventDefault();
  const given = $("token").value.trim();
  $("token").value = "";
  signIn(given).then(refresh).then(tree).then(openLinkedRow);
};
$("sign-out").onclick = signOut;
addEventListener("hashchange", () => signInByLink().then(refresh));
addEventListener("popstate", () => { readAddress(); refresh().then(tree).then(openLinkedRow); });
readAddress();
signInByLink().then(refresh).then(tree).then(openLinkedRow);
setInterval(tree, 3000);
setInterval(plot, 2000);
