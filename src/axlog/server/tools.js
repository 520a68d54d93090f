"use strict";
// The query box, and plots of computed numbers over time.

let typing = null;
let checked = 0;
let valid = false;

function checkSoon() {
  clearTimeout(typing);
  valid = false;
  allowWatch();
  typing = setTimeout(check, 300);
}

async function check() {
  const query = $("ask").value.trim(), number = ++checked;
  if (!query || !chosen.document) return void $("ask-said").replaceChildren();
  let said;
  try { said = await send("POST", "/live/explain", { document: chosen.document, query: $("ask").value, language: $("ask-language").value || null }); } catch (error) { said = { valid: false, message: error.message }; }
  if (number !== checked) return; // the text has changed since
  valid = said.valid;
  $("ask").setAttribute("aria-invalid", String(!valid));
  $("ask-said").replaceChildren(...(valid ? accepted(said) : faulty(said)));
  allowWatch();
}

function accepted(said) {
  const columns = said.columns.map((c) => `${c.name} (${c.type})`).join(", ");
  return [element("p", {}, badge("valid"), `${said.language}; columns: ${columns || "none: yes or no"}`),
    element("p", { class: "soft" }, `${said.incremental ? "maintained incrementally" : "evaluated again after every update"}, by ${said.maintainer}: ${said.reason}`),
    ...(said.pattern && said.pattern !== $("ask").value.trim() ? [element("p", { class: "code soft", dir: "auto" }, short(said.pattern))] : [])];
}

function faulty(said) {
  const line = said.line ? $("ask").value.split("\n")[said.line - 1] || "" : "";
  return [element("p", {}, badge("error"), said.message), ...(said.line ? [element("pre", {}, `${line}\n${" ".repeat(Math.max(0, said.column - 1))}^ line ${said.line}, column ${said.column}`)] : []),
    ...(said.expected ? [element("p", { class: "soft" }, `expected: ${said.expected}`)] : []), ...(said.advice ? [element("p", { class: "soft" }, said.advice)] : [])];
}

function allowWatch() {
  const here = state && (state.can_watch || []).includes(chosen.document);
  $("ask-watch").disabled = !valid || !here || !$("ask-name").value;
  $("ask-watch").title = here ? "" : "Views can be added to the documents of this process, with the grant watch.";
}

const MINE = "axlog.views";

function mine() {
  // The views that this browser added: it offers to remove them.
  try { return JSON.parse(sessionStorage.getItem(MINE)) || []; } catch { return []; }
}

async function watch() {
  const name = $("ask-name").value, here = chosen.document;
  try {
    await send("PUT", `/documents/${encodeURIComponent(here)}/views/${encodeURIComponent(name)}`, { query: $("ask").value, language: $("ask-language").value || null });
  } catch (error) { return void $("ask-said").replaceChildren(element("p", { role: "alert" }, badge("error"), error.message)); }
  sessionStorage.setItem(MINE, JSON.stringify([...mine(), `${here}/${name}`]));
  $("ask-name").value = "";
  allowWatch();
  announce(`watching ${name}`);
  await go({ document: here, view: name });
  $("panel").scrollIntoView({ block: "nearest" });
}

async function drop() {
  const name = `${chosen.document}/${chosen.view}`;
  try { await send("DELETE", `/documents/${encodeURIComponent(chosen.document)}/views/${encodeURIComponent(chosen.view)}`); } catch (error) { return announce(error.message); }
  sessionStorage.setItem(MINE, JSON.stringify(mine().filter((one) => one !== name)));
  await go({ document: chosen.document });
}

// Plots --------------------------------------------------------------------------------------------------

const MOST_LINES = 8;

async function plot() {
  if (!$("plot").open || $("plot").hidden || !state || !current()) return;
  const asked = { document: chosen.document, view: chosen.view };
  let said;
  try { said = await ask("/live/plot", asked); } catch { return; }
  if (asked.view !== chosen.view) return;
  const number = $("plot-number").value;
  const newest = (row) => { const points = row.points[number]; return points.length ? points[points.length - 1][1] : null; };
  const rows = said.rows.filter((row) => row.points[number]).sort((a, b) => Math.abs(newest(b) ?? 0) - Math.abs(newest(a) ?? 0));
  const left = said.more + Math.max(0, rows.length - MOST_LINES);
  draw("plot-said", [asked, number, said], () => [...chart(rows.slice(0, MOST_LINES), number, secondsOf(current().clock)), ...(left ? [element("p", { class: "soft" }, `${counted(left, "row")} more`)] : [])]);
}
