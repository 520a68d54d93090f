"use strict";
// The page asks for its state once a second and draws what changed. Everything is put in as text.

const $ = (id) => document.getElementById(id);
const chosen = { widget: null, view: null };
let state = null;
let drawn = {};

function element(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

function draw(id, key, make) {
  // Draw a part again only if what it shows is different: focus and scrolling stay.
  const said = JSON.stringify(key);
  if (drawn[id] === said) return;
  drawn[id] = said;
  $(id).replaceChildren(...make());
}

function moment(us) {
  if (us === null || us === undefined) return "";
  const seconds = us / 1e6;
  if (seconds > 1e8) return new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19);
  const day = Math.floor(seconds / 86400);
  const clock = new Date((seconds % 86400) * 1000).toISOString().slice(11, 19);
  return `day ${day}, ${clock}`;
}

function words(row) {
  return Object.entries(row).map(([k, v]) => `${k} ${cell(k, v)}`).join(", ");
}

function short(text) {
  // Namespaces are long and say little on a page.
  return text.replace(/Q?\{[^}]*\}/g, "");
}

function badge(kind) {
  return element("span", { class: `badge ${kind}` }, kind);
}

async function ask(path, parameters = {}) {
  const answer = await fetch(`${path}?${new URLSearchParams(parameters)}`);
  if (!answer.ok) throw new Error((await answer.json()).detail || answer.statusText);
  return answer.json();
}

async function refresh() {
  try {
    state = await ask("/live/state");
    if (!state.widgets.some((w) => w.name === chosen.widget)) {
      chosen.widget = state.widgets.length ? state.widgets[0].name : null;
      chosen.view = null;
    }
    show();
  } catch (error) {
    $("status").textContent = `no answer: ${error.message}`;
    $("status").className = "error";
  }
  setTimeout(refresh, 1000);
}

function widget() {
  return state.widgets.find((w) => w.name === chosen.widget);
}

function show() {
  const here = widget();
  if (!here) return;
  if (!here.views.some((v) => v.name === chosen.view)) chosen.view = here.views.length ? here.views[0].name : null;
  $("status").className = "";
  $("status").textContent = `clock ${moment(here.clock)} · ${state.changed} changes`;
  draw("widgets", [state.widgets.map((w) => w.name), chosen.widget], () => state.widgets.map((w) => {
    const button = element("button", { "aria-current": String(w.name === chosen.widget) }, w.name);
    button.onclick = () => { chosen.widget = w.name; chosen.view = null; outlook(); tree(); show(); };
    return button;
  }));
  draw("graph", state.widgets.map((w) => [w.name, w.streams.map((s) => [s.name, s.state]), w.views.map((v) => [v.name, v.count])]), () => [graph(state.widgets)]);
  showViews(here);
  draw("changes", state.changes.length ? state.changes[0].number : 0, () => state.changes.map((c) =>
    element("li", {}, badge(c.op), element("strong", {}, c.view || ""), " ", words(c.row), element("span", { class: "soft" }, `  ${moment(c.time)}`))));
  showStreams(here);
  draw("state", here.sizes, () => [sizes(here)]);
  draw("errors", [here.letters, here.refused], () => here.letters.length
    ? here.letters.map((l) => element("li", {}, element("span", { class: "badge error" }, l.code), `message ${l.number} of ${l.stream}: ${l.error}`))
    : [element("li", { class: "soft" }, here.refused ? `${here.refused} messages were refused` : "none")]);
}

function showViews(here) {
  draw("views", [here.name, here.views.map((v) => [v.name, v.count]), chosen.view], () => here.views.map((v) => {
    const button = element("button", { role: "tab", "aria-selected": String(v.name === chosen.view) }, `${v.name} ${v.count}`);
    button.onclick = () => { chosen.view = v.name; outlook(); show(); };
    return button;
  }));
  const view = here.views.find((v) => v.name === chosen.view);
  if (!view) return;
  draw("query", [view.query], () => [view.query]);
  draw("rows", [here.name, view.name, view.rows, view.count], () => {
    const head = element("tr", {}, ...view.columns.map((c) => element("th", { scope: "col" }, c)));
    const body = view.rows.map((row) => {
      const line = element("tr", { tabindex: "0", title: "Why is this row here?" },
        ...view.columns.map((c) => element("td", {}, cell(c, row[c]))));
      line.onclick = () => why(here.name, view.name, row);
      line.onkeydown = (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); line.click(); } };
      return line;
    });
    const more = view.count > view.rows.length
      ? [element("tr", {}, element("td", { class: "soft", colspan: String(view.columns.length || 1) }, `and ${view.count - view.rows.length} more`))] : [];
    return [element("thead", {}, head), element("tbody", {}, ...body, ...more)];
  });
}

function cell(column, value) {
  if (value === null || value === undefined) return "?";
  return typeof value === "number" && value > 1e6 ? moment(value) : String(value);
}

async function outlook() {
  const [name, view] = [chosen.widget, chosen.view];
  if (!name || !view) return;
  let said;
  try { said = await ask("/live/outlook", { widget: name, view }); } catch (error) { said = { reason: error.message }; }
  if (name !== chosen.widget || view !== chosen.view) return;
  if (said.reason) {
    $("outlook").replaceChildren(element("span", { class: "soft" }, `not decided: ${said.reason}`));
    $("possible").replaceChildren();
    return;
  }
  $("outlook").replaceChildren(badge(said.truth), said.possible ? `${said.possible} rows may still come` : "nothing more can come");
  $("possible").replaceChildren(...(said.rows.length ? [element("details", {}, element("summary", {}, "rows that may still come"),
    element("ul", { class: "scroll" }, ...said.rows.map((p) => element("li", {}, badge("possible"), words(p.row) || "a row", " needs ",
      p.needs.map((n) => `${short(n.pattern)} from ${n.stream}`).join(", "),
      p.deadline === undefined ? "" : element("strong", {}, ` until ${moment(p.deadline)}`)))))] : []));
}

async function why(name, view, row) {
  $("why-head").textContent = `Why ${words(row)}?`;
  $("why-said").replaceChildren("asking");
  $("why").showModal();
  let said;
  try { said = await ask("/live/why", { widget: name, view, row: JSON.stringify(row) }); } catch (error) { said = { reason: error.message }; }
  $("why-said").replaceChildren(...(said.reason ? [element("p", {}, said.reason)] : said.derivations.map((d) => {
    const rows = d.map((m) => element("tr", {}, element("td", { title: m.pattern }, short(m.pattern)), element("td", { title: m.path }, short(m.path)), element("td", {}, moment(m.time)), element("td", {}, m.origin || "")));
    const head = element("tr", {}, ...["pattern", "matched", "since", "came with"].map((h) => element("th", { scope: "col" }, h)));
    return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
  })));
}

function showStreams(here) {
  draw("streams", here.streams, () => {
    const head = element("tr", {}, ...["stream", "", "messages", "kept", "dropped", "refused", "wanted"].map((h) => element("th", { scope: "col" }, h)));
    return [element("thead", {}, head), element("tbody", {}, ...here.streams.map((s) => element("tr", {},
      element("td", {}, s.name), element("td", {}, badge(s.state)), element("td", {}, String(s.messages)), element("td", {}, String(s.kept)),
      element("td", {}, String(s.dropped)), element("td", {}, String(s.refused)), element("td", { title: s.wanted.join("\n") }, s.wanted.map(short).join("  ") || "–"))))];
  });
}

function svg(name, attributes, ...inside) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

function graph(widgets) {
  const line = 26, left = [], middle = [], right = [], edges = [];
  let y = 20;
  for (const w of widgets) {
    const height = Math.max(w.streams.length, w.views.length, 1) * line;
    const centre = y + height / 2;
    middle.push([w.name, centre]);
    w.streams.forEach((s, i) => { const at = y + (i + 0.5) * height / w.streams.length; left.push([s.name, at, s.state]); edges.push([200, at, 290, centre]); });
    w.views.forEach((v, i) => { const at = y + (i + 0.5) * height / w.views.length; right.push([`${v.name} ${v.count}`, at]); edges.push([430, centre, 520, at]); });
    y += height + 24;
  }
  const made = svg("svg", { viewBox: `0 0 720 ${y}`, role: "img", "aria-label": "streams, widgets and views" });
  for (const [x1, y1, x2, y2] of edges) made.append(svg("path", { class: "line", d: `M${x1} ${y1} C${x1 + 50} ${y1} ${x2 - 50} ${y2} ${x2} ${y2}` }));
  for (const [name, at, kind] of left) made.append(svg("text", { x: 192, y: at + 4, "text-anchor": "end", class: kind === "open" ? "" : "soft" }, kind === "open" ? name : `${name} (${kind})`));
  for (const [name, at] of middle) made.append(svg("rect", { class: "box", x: 290, y: at - 16, width: 140, height: 32, rx: 8 }), svg("text", { x: 360, y: at + 5, "text-anchor": "middle" }, name));
  for (const [name, at] of right) made.append(svg("text", { x: 528, y: at + 4 }, name));
  return made;
}

function sizes(here) {
  const points = here.sizes, width = 600, height = 130;
  const most = Math.max(1, ...points.map((p) => p[1])), last = points[points.length - 1], first = points[0];
  const span = Math.max(1, last[0] - first[0]);
  const path = points.map((p, i) => `${i ? "L" : "M"}${10 + (p[0] - first[0]) / span * (width - 20)} ${height - 25 - p[1] / most * (height - 45)}`).join(" ");
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "rows kept over time" },
    svg("path", { class: "curve", d: path }),
    svg("text", { x: 10, y: height - 6 }, `${here.state} rows kept, ${here.nodes} nodes; most ${most}`));
}

async function tree() {
  if (!chosen.widget) return;
  const open = new Set([...document.querySelectorAll("#tree details[open]")].map((d) => d.dataset.path));
  let said;
  try { said = await ask("/live/tree", { widget: chosen.widget }); } catch { return; }
  $("tree").replaceChildren(node(said.root, "", open, 0), ...(said.cut ? [element("p", { class: "soft" }, "and more")] : []));
}

function node(said, path, open, depth) {
  if (!said) return "";
  if (said.text !== undefined) return element("div", { class: "leaf" }, said.text);
  if (said.call !== undefined) {
    const stream = widget() && widget().streams.find((s) => s.name === said.call);
    return element("div", { class: `leaf ${stream ? stream.state : "ended"}` }, `↳ ${said.call}`, stream ? ` (${stream.state}, ${stream.messages} messages)` : "");
  }
  const title = `${said.name}${said.attributes.map(([k, v]) => ` ${k}="${v}"`).join("")}`;
  if (!said.below.length) return element("div", { class: "leaf" }, title);
  const here = `${path}/${title}`;
  const made = element("details", { "data-path": here }, element("summary", {}, title),
    ...said.below.map((b, i) => node(b, `${here}[${i}]`, open, depth + 1)), ...(said.more ? [element("div", { class: "leaf soft" }, "…")] : []));
  if (depth < 2 || open.has(here)) made.open = true;
  return made;
}

$("why-close").onclick = () => $("why").close();
refresh().then(() => { outlook(); tree(); });
setInterval(outlook, 3000);
setInterval(tree, 5000);
