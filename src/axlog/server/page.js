"use strict";
// The page polls its state once a second and redraws what changed.

const chosen = { document: null, view: null, truth: "", find: "", show: 100 };
let state = null;
let seen = new Set(); // rows of the previous poll
let asking = null;
let asked = 0;

async function ask(path, parameters = {}) {
  const answer = await fetch(`${path}?${new URLSearchParams(parameters)}`);
  if (answer.status === 401) askToken("");
  if (!answer.ok) throw new Error((await answer.json()).detail || answer.statusText);
  return answer.json();
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

async function refresh() {
  clearTimeout(asking);
  const number = ++asked;
  try {
    const said = await ask("/live/state", { ...chosen, document: chosen.document || "", view: chosen.view || "" });
    if (number !== asked) return; // the selection has changed since
    state = said;
    if (settle()) return refresh();
    show();
  } catch (error) {
    $("status").replaceChildren(element("span", { class: "dot lost" }), `no answer: ${error.message}`);
  }
  clearTimeout(asking);
  asking = setTimeout(refresh, 1000);
}

function settle() {
  // Select a document and a view if none is selected, or the selected one is gone; return whether that changed.
  const before = JSON.stringify(chosen);
  if (!state.documents.some((w) => w.name === chosen.document)) choose(state.documents.length ? state.documents[0].name : null, null);
  const here = current();
  if (here && !here.views.some((v) => v.name === chosen.view)) choose(here.name, here.views.length ? here.views[0].name : null);
  return JSON.stringify(chosen) !== before;
}

function choose(name, view) {
  Object.assign(chosen, { document: name, view, truth: "", find: "", show: 100 });
  $("find").value = "";
  seen = new Set();
}

function pick(change) {
  Object.assign(chosen, change);
  refresh();
}

function current() {
  return state.documents.find((w) => w.name === chosen.document);
}

function show() {
  const here = current();
  $("engine").textContent = state.engine;
  if (!here) return void $("status").replaceChildren(element("span", { class: "dot waiting" }), state.says || "nothing runs yet");
  const messages = state.documents.flatMap((w) => w.streams).reduce((sum, s) => sum + s.messages, 0);
  $("status").replaceChildren(element("span", { class: `dot ${state.says ? "waiting" : "live"}` }),
    state.says || `${here.clock ? moment(here.clock) + " · " : ""}${many(messages)} messages · ${many(state.changed)} changes, ${state.rate}/s`);
  draw("documents", [state.documents.map((w) => w.name), chosen.document], () => state.documents.map((w) => {
    const button = element("button", { "aria-current": String(w.name === chosen.document) }, w.name);
    button.onclick = () => { choose(w.name, null); refresh().then(tree); };
    return button;
  }));
  if (draw("graph", state.documents.map((w) => [w.name, w.nodes, w.state, w.streams.map((s) => [s.name, s.state, s.rate]), w.views]), () => graph(state))) wiring(state);
  showViews(here);
  showChanges();
  showStreams(here);
  draw("state", [here.sizes, here.unit], () => [curve(here.sizes, `${many(here.state)} ${here.unit}`)]);
  showErrors();
}

function showViews(here) {
  const had = document.activeElement && document.activeElement.parentNode === $("views");
  draw("views", [here.name, here.views, chosen.view], () => here.views.map((v) => {
    const is = v.name === chosen.view;
    const button = element("button", { role: "tab", id: `tab-${v.name}`, "aria-selected": String(is), "aria-controls": "panel", tabindex: is ? "0" : "-1" },
      v.name, element("span", { class: "n" }, many(v.count)), ...(v.never ? [element("span", { class: "n bad", title: "never" }, many(v.never))] : []));
    button.onclick = () => { choose(chosen.document, v.name); refresh(); };
    return button;
  }));
  if (had) $("views").querySelector('[aria-selected="true"]').focus();
  const shown = state.shown;
  if (!shown || shown.view !== chosen.view) return;
  $("query").querySelector("pre").textContent = shown.query;
  const total = Object.values(shown.counts).reduce((a, b) => a + b, 0);
  draw("truths", [shown.counts, chosen.truth], () => [["", "all", total], ...["true", "possible", "never"].map((t) => [t, t, shown.counts[t]])].map(([truth, says, count]) => {
    const button = element("button", { "aria-pressed": String(truth === chosen.truth), "data-truth": truth || "all" }, says, element("span", { class: "n" }, many(count)));
    button.onclick = () => pick({ truth, show: 100 });
    return button;
  }));
  draw("outlook", [shown.truth, shown.reason, shown.counts.possible, shown.note], () => outlook(shown));
  showRows(here, shown);
}

function outlook(shown) {
  const says = shown.reason ? `possible rows are undecided: ${shown.reason}`
    : shown.counts.possible ? "more rows may come" : shown.truth === "never" ? "there is no row, and none can come" : "no more rows can come";
  return [...(shown.truth ? [badge(shown.truth)] : []), shown.note ? `${says}; ${shown.note}` : says];
}

function showRows(here, shown) {
  const known = shown.key.length && shown.key.every((c) => shown.columns.includes(c));
  const key = (line) => line.truth + JSON.stringify(known ? shown.key.map((c) => line.row[c]) : line.row);
  const whole = (line) => line.truth + JSON.stringify(line.row);
  // A view of values alone has no identifiers: its column of them is left out.
  const columns = shown.columns.map((name, at) => ({ name, type: shown.types[at] })).filter((c) => c.type !== "id" || !shown.lines.length || shown.lines.some((line) => line.row[c.name] !== null));
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.key : undefined;
  const timed = shown.lines.some((line) => line.deadline !== undefined);
  const minute = timed ? Math.floor(secondsOf(here.clock) / 60) : 0;
  const changed = draw("rows", [here.name, shown.view, shown.lines, shown.columns, minute], () => {
    const last = timed ? [element("th", { scope: "col" }, "until")] : [];
    const head = element("tr", {}, element("th", { scope: "col" }, "truth"), ...columns.map((c) => element("th", { scope: "col", class: isNumber(c.type) ? "number" : "" }, c.name)), ...last);
    const body = shown.lines.map((line) => {
      const made = element("tr", { tabindex: "0", "data-key": key(line), title: line.truth === "true" ? "Why is this row here?" : "What does this row need?" },
        element("td", {}, badge(line.truth)), ...columns.map((c) => element("td", isNumber(c.type) ? { class: "number", title: String(line.row[c.name] ?? "") } : {}, cell(line.row[c.name], c.type, line.truth))),
        ...(timed ? [element("td", { class: "soft" }, line.deadline === undefined ? "" : `${moment(line.deadline)} (${span(secondsOf(line.deadline) - secondsOf(here.clock))})`)] : []));
      if (seen.size && !seen.has(whole(line))) made.className = "new";
      made.onclick = () => why(here.name, shown.view, line);
      return made;
    });
    if (!body.length) body.push(element("tr", {}, element("td", { class: "soft", colspan: String(columns.length + 2) }, chosen.find || chosen.truth ? "no such row" : "no row yet")));
    return [element("thead", {}, head), element("tbody", {}, ...body)];
  });
  if (!changed) return;
  seen = new Set(shown.lines.map(whole));
  const again = focused && [...document.querySelectorAll("#rows tr")].find((row) => row.dataset.key === focused);
  if (again) again.focus();
  const counted = chosen.truth ? shown.counts[chosen.truth] : Object.values(shown.counts).reduce((a, b) => a + b, 0);
  $("more").hidden = shown.lines.length >= counted || chosen.show >= 1000 || shown.lines.length < chosen.show;
  $("more").textContent = `show more (${many(counted - shown.lines.length)} are not shown)`;
}

function isNumber(type) {
  return type === "integer" || type === "decimal" || type === "double";
}

function cell(value, type, truth) {
  // Null is unknown in a row that may come, and a missing value in one that is there.
  if (value === null || value === undefined) return truth === "true" ? "–" : "?";
  if (type === "time") return value ? moment(value) : String(value);
  if (Array.isArray(value)) return value.map((each) => cell(each, "any", truth)).join(", ");
  if (isNumber(type) && typeof value === "string") return shortened(value);
  return typeof value === "number" ? shortened(value.toLocaleString("en", { maximumFractionDigits: 20 })) : String(value);
}

function shortened(number) {
  // A quotient may have thirty decimals; the title of its cell has all of them.
  const point = number.indexOf(".");
  return point < 0 || number.length - point <= 9 ? number : `${number.slice(0, point + 7)}…`;
}

function words(row, types, truth) {
  return Object.entries(row).filter(([k, v]) => v !== null || types[k] !== "id").map(([k, v]) => `${k} ${cell(v, types[k], truth)}`).join(", ");
}

function typesOf(name, view) {
  const here = state.documents.find((d) => d.name === name);
  const found = here && here.views.find((v) => v.name === view);
  return (found && found.types) || {};
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
  draw("changes", newest, () => state.changes.length ? state.changes.map((c) =>
    element("li", c.number > before ? { class: "new" } : {}, badge(c.op), element("strong", {}, c.view || ""), " ", changeWords(c), " ", element("span", { class: "soft" }, moment(c.time))))
    : [element("li", { class: "soft" }, "none yet")]);
  $("changes").dataset.newest = String(newest);
}

function showStreams(here) {
  draw("streams", here.streams, () => {
    const names = [["stream"], ["call"], ["rate", 1], ["messages", 1], ["kept", 1], ["dropped", 1], ["by filters"], ["refused", 1], ["wanted"]];
    const head = element("tr", {}, ...names.map(([h, n]) => element("th", { scope: "col", class: n ? "number" : "" }, h)));
    const body = here.streams.map((s) => {
      const bar = element("span", { class: "share", title: `${s.dropped} of ${s.messages} dropped` }, element("i", {}));
      bar.firstChild.style.width = `${s.messages ? Math.round(100 * s.dropped / s.messages) : 0}%`;
      const number = (value) => element("td", { class: "number" }, many(value));
      return element("tr", {}, element("td", {}, s.name), element("td", {}, badge(s.state)), element("td", { class: "number" }, `${s.rate}/s`), number(s.messages), number(s.kept),
        number(s.dropped), element("td", {}, bar), number(s.refused), element("td", { class: "code", title: s.wanted.map(short).join("\n") }, s.wanted.map(short).join("  ") || "–"));
    });
    return [element("thead", {}, head), element("tbody", {}, ...body)];
  });
}

function showErrors() {
  draw("errors", [state.letters, state.refused, state.lagging], () => {
    const lagging = state.lagging.map((l) => element("li", {}, badge("lagging"), `${l.name} for ${Math.round(l.seconds)} s (${l.tries} tries): ${l.error}`));
    const letters = state.letters.map((l) => element("li", { title: l.error }, element("span", { class: "badge error" }, l.code), element("strong", {}, l.stream), ` ${l.origin}: ${l.error.split("\n")[0]}`));
    const more = state.refused > state.letters.length ? [element("li", { class: "soft" }, `${many(state.refused)} in all`)] : [];
    return lagging.length + letters.length ? [...lagging, ...letters, ...more] : [element("li", { class: "soft" }, "none")];
  });
}

async function why(name, view, line) {
  const says = words(line.row, typesOf(name, view), line.truth) || "this row";
  $("why-head").textContent = line.truth === "true" ? `Why ${says}?` : line.truth === "possible" ? `What may still bring ${says}?` : `Why never ${says}?`;
  if (line.truth === "true") $("why-said").replaceChildren("asking");
  else $("why-said").replaceChildren(...(line.truth === "possible" ? needs(line) : [element("p", {}, `Certain since ${moment(line.time)}: no data of any stream can produce this row.`)]));
  $("why").showModal();
  if (line.truth !== "true") return;
  let said;
  try { said = await ask("/live/why", { document: name, view, row: JSON.stringify(line.row) }); } catch (error) { said = { reason: error.message }; }
  $("why-said").replaceChildren(...(said.reason !== undefined ? [element("p", {}, said.reason)] : said.derivations.length ? [...(said.derivations.length > 1 ? [element("p", { class: "soft" }, `made of ${many(said.derivations.length + (said.more || 0))} matches`)] : []), ...said.derivations.map(derivation), ...(said.more ? [element("p", { class: "soft" }, `and ${many(said.more)} more`)] : [])] : [element("p", {}, "the row no longer exists")]));
}

function needs(line) {
  const list = element("ul", {}, ...line.needs.map((n) => element("li", {}, element("span", { class: "code" }, short(n.pattern)), " from ", element("strong", {}, n.stream))));
  return [element("p", {}, line.deadline === undefined ? "It needs, at any time:" : `It needs, by ${moment(line.deadline)}:`), list];
}

function derivation(matched) {
  const rows = matched.map((m) => element("tr", { class: m.origin ? (m.pattern.includes("$") ? "bound" : "") : "soft" }, element("td", { class: "code", title: m.pattern }, short(m.pattern)), element("td", { class: "code", title: m.path }, short(m.path)), element("td", {}, m.time ? moment(m.time) : ""), element("td", {}, m.origin || "the document")));
  const head = element("tr", {}, ...["pattern", "matched", "since", "message"].map((h) => element("th", { scope: "col" }, h)));
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}

async function tree() {
  if (!chosen.document || !state) return;
  const open = new Map([...document.querySelectorAll("#tree details")].map((d) => [d.dataset.path, d.open]));
  let said;
  try { said = await ask("/live/tree", { document: chosen.document }); } catch { return; }
  draw("tree", [chosen.document, said, current() && current().streams], () => [node(said.root, "", open, 0), ...(said.cut ? [element("p", { class: "soft" }, "and more")] : [])]);
}

function node(said, path, open, depth) {
  if (!said) return "";
  if (said.text !== undefined) return element("div", { class: "leaf" }, said.text);
  if (said.call !== undefined) {
    const stream = current() && current().streams.find((s) => s.name === said.call);
    const kind = stream ? stream.state : "ended";
    return element("div", { class: `leaf call ${kind}` }, element("span", { class: `dot ${kind}` }), `↳ ${said.call} `,
      element("span", { class: "soft" }, stream ? `${kind}, ${many(stream.messages)} messages, ${stream.rate}/s` : kind));
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
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); document.activeElement.click(); } else step(event, [...document.querySelectorAll("#rows tr[tabindex]")], "ArrowUp", "ArrowDown");
};
document.onkeydown = (event) => {
  if (event.key === "/" && document.activeElement !== $("find") && !$("why").open && !$("sign-in").open) { event.preventDefault(); $("find").focus(); }
};
$("find").oninput = () => pick({ find: $("find").value, show: 100 });
$("more").onclick = () => pick({ show: Math.min(1000, chosen.show + 300) });
$("why-close").onclick = () => $("why").close();
addEventListener("resize", () => state && wiring(state));
$("sign-in-form").onsubmit = (event) => {
  event.preventDefault();
  const given = $("token").value.trim();
  $("token").value = "";
  signIn(given).then(refresh).then(tree);
};
$("sign-out").onclick = signOut;
addEventListener("hashchange", () => signInByLink().then(refresh));
signInByLink().then(refresh).then(tree);
setInterval(tree, 3000);
