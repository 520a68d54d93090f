"use strict";
// Drawing for page.js: elements, the system's graph, curves. All data is inserted as text.

const $ = (id) => document.getElementById(id);

function element(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

function svg(name, attributes, ...inside) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

const drawn = {};
function draw(id, key, make) {
  // Redraw a part only if its data changed, to keep focus and scrolling.
  const said = JSON.stringify(key);
  if (drawn[id] === said) return false;
  drawn[id] = said;
  $(id).replaceChildren(...make());
  return true;
}

function badge(kind) {
  return element("span", { class: `badge ${kind}` }, kind);
}

function button(says, act, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, ...[says].flat());
  made.onclick = act;
  return made;
}

function counted(number, one, several = `${one}s`) {
  return `${many(number)} ${number === 1 ? one : several}`;
}

function many(number) {
  return number === null || number === undefined ? "?" : number.toLocaleString("en");
}

function secondsOf(time) {
  // A time is a number of seconds, an ISO text, or a text of microseconds (`12us`).
  if (typeof time === "number") return time;
  return time.endsWith("us") ? parseInt(time, 10) / 1e6 : Date.parse(time) / 1000;
}

function moment(time) {
  if (time === null || time === undefined) return "";
  if (typeof time === "string" && time.startsWith("0001-01-01")) return "before all times"; // where documents with dates start
  if (typeof time === "string" && !time.endsWith("us")) return time.replace("T", " ").slice(0, 19);
  const seconds = secondsOf(time);
  if (seconds > 1e8) return new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19);
  const day = Math.floor(seconds / 86400);
  const clock = new Date((seconds - day * 86400) * 1000).toISOString().slice(11, 19);
  return day ? `day ${day}, ${clock}` : clock;
}

function span(seconds) {
  const minutes = Math.round(Math.abs(seconds) / 60);
  const parts = minutes >= 2880 ? [Math.round(minutes / 1440), "d"] : minutes >= 120 ? [Math.round(minutes / 60), "h"] : minutes >= 2 ? [minutes, "min"] : [Math.round(Math.abs(seconds)), "s"];
  return seconds < 0 ? `${parts.join(" ")} ago` : `in ${parts.join(" ")}`;
}

function short(text) {
  // Namespaces are long and of little use on a page.
  return text.replace(/Q?\{[^}]*\}/g, "");
}

// The system: a row for each document, its streams on the left, its views on the right. ------------------

function graph(state, act) {
  // `act` has what a click on a stream, a document and a view does.
  const { sources, wires, sinks } = state.system;
  return state.documents.map((w) => {
    const streams = w.streams.map((s) => {
      const from = sources.filter((one) => one.document === w.name && (one.stream === s.name || one.stream === null)).map((one) => one.says);
      const fed = wires.filter((one) => one.to === w.name && one.stream === s.name).map((one) => `${one.from}.${one.view}`);
      return button([element("span", { class: `dot ${s.state}` }), element("strong", { dir: "auto" }, s.name),
        element("span", { class: "soft", dir: "auto" }, [...from, ...fed].join(", ")), element("span", { class: "n" }, s.state === "ended" || s.state === "unsubscribed" ? s.state : `${s.rate}/s`)],
        () => act.stream(w.name, s.name), { class: "port", "data-port": `${w.name}<${s.name}`, title: `Stream ${s.name}: ${s.state}, ${counted(s.messages, "message")}` });
    });
    const views = w.views.map((v) => {
      const to = sinks.filter((one) => one.views.some(([owner, view]) => owner === w.name && view === v.name)).map((one) => one.says);
      return button([element("strong", { dir: "auto" }, v.name),
        element("span", { class: "soft", dir: "auto" }, to.length ? `→ ${to.join(", ")}` : ""), ...(v.never ? [element("span", { class: "n never" }, `${many(v.never)} never`)] : []), element("span", { class: "n" }, many(v.count))],
        () => act.view(w.name, v.name), { class: "port", "data-port": `${w.name}>${v.name}`, "data-good": v.good || "", title: `View ${v.name}: ${counted(v.count, "row")}` });
    });
    const hub = button([element("strong", { dir: "auto" }, w.name),
      element("span", { class: "soft" }, w.nodes === null ? "in buckets" : counted(w.nodes, "node")), element("span", { class: "soft" }, `${many(w.state)} ${w.unit}`)],
      () => act.document(w.name), { class: "hub", "data-port": w.name, title: `Document ${w.name}` });
    return element("div", { class: "node" }, element("div", { class: "ports" }, ...streams), hub, element("div", { class: "ports" }, ...views));
  });
}

function wiring(state) {
  // Lines between parts: their ends are measured, so they are drawn after the parts, and again when these move.
  const box = $("graph").getBoundingClientRect();
  const at = (port, side) => {
    const found = $("graph").querySelector(`[data-port="${CSS.escape(port)}"]`);
    if (!found) return null;
    const r = found.getBoundingClientRect();
    return [(side === "left" ? r.left : r.right) - box.left, r.top + r.height / 2 - box.top];
  };
  const made = svg("svg", { "aria-hidden": "true" });
  const line = (from, to, kind) => {
    if (!from || !to) return;
    const bend = Math.max(24, Math.abs(to[0] - from[0]) / 2);
    made.append(svg("path", { class: kind, d: `M${from[0]} ${from[1]} C${from[0] + bend} ${from[1]} ${to[0] - bend} ${to[1]} ${to[0]} ${to[1]}` }));
  };
  for (const w of state.documents) {
    for (const s of w.streams) if (s.state !== "ended" && s.state !== "unsubscribed") line(at(`${w.name}<${s.name}`, "right"), at(w.name, "left"), "line");
    for (const v of w.views) line(at(w.name, "right"), at(`${w.name}>${v.name}`, "left"), "line");
  }
  for (const wire of state.system.wires) line(at(`${wire.from}>${wire.view}`, "right"), at(`${wire.to}<${wire.stream}`, "left"), "wire");
  const old = $("graph").querySelector(":scope > svg");
  if (old) old.remove();
  $("graph").append(made);
}

// A size over time. --------------------------------------------------------------------------------

function curve(points, says) {
  const width = 420, height = 170, left = 8, right = 8, top = 16, bottom = 22;
  const most = Math.max(1, ...points.map((p) => p[1])), first = points.length ? points[0][0] : 0, last = points.length ? points[points.length - 1][0] : 0;
  const long = Math.max(1, last - first);
  const x = (p) => (left + (p[0] - first) / long * (width - left - right)).toFixed(1);
  const y = (p) => (height - bottom - p[1] / most * (height - top - bottom)).toFixed(1);
  const path = points.map((p, i) => `${i ? "L" : "M"}${x(p)} ${y(p)}`).join("");
  const floor = height - bottom;
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": says },
    svg("path", { class: "axis", d: `M${left} ${floor}H${width - right}M${left} ${top}H${width - right}` }),
    svg("text", { x: left, y: top - 4 }, many(most)),
    svg("text", { x: width - right, y: height - 6, "text-anchor": "end" }, `${Math.round(long)} s`),
    svg("text", { x: left, y: height - 6 }, says),
    ...(points.length > 1 ? [svg("path", { class: "area", d: `${path}L${x(points[points.length - 1])} ${floor}L${x(points[0])} ${floor}Z` }), svg("path", { class: "curve", d: path })] : []));
}

// Numbers over time: a line for each row, with steps, and a legend that names the lines. --------------

function chart(rows, number, clock) {
  const width = 640, height = 240, left = 8, right = 8, top = 18, bottom = 22;
  const all = rows.flatMap((row) => row.points[number]).filter((p) => p[1] !== null);
  if (!all.length) return [element("p", { class: "soft" }, "no numbers yet")];
  const first = Math.min(...all.map((p) => p[0])), last = Math.max(clock, ...all.map((p) => p[0]));
  const low = Math.min(0, ...all.map((p) => p[1])), high = Math.max(0, ...all.map((p) => p[1])) || 1;
  const x = (at) => left + (at - first) / Math.max(1e-9, last - first) * (width - left - right);
  const y = (value) => height - bottom - (value - low) / (high - low) * (height - top - bottom);
  const lines = rows.map((row, at) => {
    let path = "", open = false;
    for (const [time, value] of row.points[number]) {
      if (open) path += `H${x(time).toFixed(1)}`;
      if (value !== null) path += open ? `V${y(value).toFixed(1)}` : `M${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
      open = value !== null;
    }
    return svg("path", { class: `line l${at}`, d: open ? `${path}H${x(last).toFixed(1)}` : path });
  });
  const says = (row) => Object.values(row.name).map((v) => String(v ?? "–")).join(", ") || number;
  const newest = (row) => row.points[number][row.points[number].length - 1][1];
  const legend = element("ul", { class: "legend" }, ...rows.map((row, at) => element("li", {}, element("i", { class: `l${at}` }), element("span", { dir: "auto" }, says(row)), element("strong", {}, newest(row) === null ? "gone" : newest(row).toLocaleString("en")))));
  const grid = [low, high].filter((v, i, each) => each.indexOf(v) === i);
  return [svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${number} over time` },
    ...grid.map((v) => svg("path", { class: "axis", d: `M${left} ${y(v)}H${width - right}` })),
    svg("text", { x: left, y: top - 5 }, high.toLocaleString("en")), ...(low < 0 ? [svg("text", { x: left, y: height - bottom - 4 }, low.toLocaleString("en"))] : []),
    svg("text", { x: left, y: height - 6 }, moment(first)), svg("text", { x: width - right, y: height - 6, "text-anchor": "end" }, moment(last)), ...lines), legend];
}
