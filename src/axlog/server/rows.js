"use strict";
// The rows of the selected view: tabs, filters, searches, the table, pages, exports.

let seen = new Set(); // rows of the previous poll
let currentRow = ""; // the row that the Tab key reaches

function showViews(here) {
  const had = document.activeElement && document.activeElement.parentNode === $("views");
  draw("views", [here.name, here.views, chosen.view], () => here.views.map((v) => {
    const is = v.name === chosen.view;
    const says = [element("span", { dir: "auto" }, v.name), ...(v.members === undefined ? [] : [element("span", { class: "n", title: "members" }, `× ${many(v.members)}`)]), element("span", { class: "n", title: "rows" }, many(v.count)), ...(v.never ? [element("span", { class: "n never", title: "never" }, many(v.never))] : [])];
    return button(says, () => go({ document: chosen.document, view: v.name }), { role: "tab", id: `tab-${v.name}`, "data-good": v.good || "", "aria-selected": String(is), "aria-controls": "panel", tabindex: is ? "0" : "-1" });
  }));
  const selected = $("views").querySelector('[aria-selected="true"]');
  if (had && selected) selected.focus();
  const shown = state.shown;
  if (!shown || shown.view !== chosen.view) return;
  $("panel").dataset.good = shown.good || "";
  $("query").querySelector("pre").textContent = shown.query;
  showMembers(here, shown);
  showTruths(shown);
  draw("outlook", [shown.truth, shown.reason, shown.counts, shown.found, shown.note], () => outlook(shown));
  showRows(here, shown);
  showTools(shown);
}

function showMembers(here, shown) {
  // A family is one entry. Its members are found by the same search as the rows.
  const members = shown.members;
  const family = members ? null : here.views.find((v) => v.members !== undefined && shown.view.startsWith(v.name) && shown.view !== v.name);
  $("members").hidden = !members && !family;
  draw("members", [shown.view, members, family && family.name], () => {
    if (!members) return family ? [button(`all of ${family.name}`, () => go({ document: chosen.document, view: family.name }))] : [];
    const rest = members.found - members.names.length;
    const says = `${members.found === members.count ? "" : `${many(members.found)} of `}${counted(members.count, "member")}`;
    return [element("span", { class: "soft" }, says),
      ...members.names.map((name) => button(element("span", { dir: "auto" }, name.startsWith(shown.view) && name !== shown.view ? name.slice(shown.view.length) : name), () => go({ document: chosen.document, view: name }))),
      ...(rest > 0 ? [element("span", { class: "soft" }, `and ${many(rest)} more; a search narrows them`)] : [])];
  });
}

function showTruths(shown) {
  // The counts are those of the search, if there is one. Possible rows that are not decided have no count.
  const counts = { ...(shown.found || shown.counts) };
  if (shown.reason && !shown.counts.possible) counts.possible = null;
  const total = Object.values(counts).reduce((a, b) => a + (b || 0), 0);
  draw("truths", [counts, chosen.truth, Boolean(shown.found)], () => [["", "all", total], ...["true", "possible", "never"].map((t) => [t, t, counts[t]])].map(([truth, says, count]) => {
    const number = element("span", { class: "n" }, count === null ? "undecided" : many(count));
    return button([says, number], () => pick({ truth, show: 100, start: 0 }), { "aria-pressed": String(truth === chosen.truth), "data-truth": truth || "all" });
  }));
}

function outlook(shown) {
  const says = shown.reason ? `possible rows are undecided: ${shown.reason}`
    : shown.counts.possible ? "more rows may come" : shown.truth === "never" ? "there is no row, and none can come" : "no more rows can come";
  const meaning = { true: "in this view, true is good", never: "in this view, never is good" }[shown.good];
  const found = shown.found ? `${counted(Object.values(shown.found).reduce((a, b) => a + b, 0), "row")} found; ` : "";
  return [badge(shown.truth || (shown.counts.true ? "true" : "undecided")), [found + says, shown.note, meaning].filter(Boolean).join("; ")];
}

function nameOf(line, shown) {
  // The values that identify a row in links: those of its key if it shows them.
  const known = shown.key.length && shown.key.every((c) => shown.columns.includes(c));
  return known ? Object.fromEntries(shown.key.map((c) => [c, line.row[c]])) : line.row;
}

function showRows(here, shown) {
  const key = (line) => line.truth + JSON.stringify(nameOf(line, shown));
  const whole = (line) => line.truth + JSON.stringify(line.row);
  // A view of values alone has no identifiers: its column of them is left out.
  const columns = shown.columns.map((name, at) => ({ name, type: shown.types[at] })).filter((c) => c.type !== "id" || !shown.lines.length || shown.lines.some((line) => line.row[c.name] !== null));
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.key : undefined;
  const timed = shown.lines.some((line) => line.deadline !== undefined);
  const minute = timed ? Math.floor(secondsOf(here.clock) / 60) : 0;
  if (!shown.lines.some((line) => key(line) === currentRow)) currentRow = shown.lines.length ? key(shown.lines[0]) : "";
  const changed = draw("rows", [here.name, shown.view, shown.lines, shown.columns, minute, shown.good], () => {
    const last = timed ? [element("th", { scope: "col" }, "until")] : [];
    const head = element("tr", {}, element("th", { scope: "col" }, "truth"), ...columns.map((c) => element("th", { scope: "col", dir: "auto", class: isNumber(c.type) ? "number" : "" }, c.name)), ...last);
    const body = shown.lines.map((line) => {
      const cells = columns.map((c) => element("td", { dir: "auto", title: String(line.row[c.name] ?? ""), ...(isNumber(c.type) ? { class: "number" } : {}) }, cell(line.row[c.name], c.type, line.truth)));
      const made = element("tr", { tabindex: key(line) === currentRow ? "0" : "-1", "data-key": key(line), "data-name": JSON.stringify(nameOf(line, shown)), title: line.truth === "true" ? "Why is this row here?" : line.truth === "possible" ? "What does this row need?" : "Why can this row never come?" },
        element("td", {}, badge(line.truth)), ...cells,
        ...(timed ? [element("td", { class: "soft until" }, ...(line.deadline === undefined ? [] : [element("span", {}, moment(line.deadline)), " ", element("span", {}, `(${span(secondsOf(line.deadline) - secondsOf(here.clock))})`)]))] : []));
      if (seen.size && !seen.has(whole(line))) made.className = "new";
      made.onclick = () => { currentRow = key(line); openRow(here.name, shown.view, nameOf(line, shown), line); };
      return made;
    });
    if (!body.length) body.push(element("tr", {}, element("td", { class: "soft", colspan: String(columns.length + 2) }, chosen.find || chosen.truth ? "no such row" : "no row yet")));
    return [element("caption", { class: "hidden" }, `Rows of ${shown.view}. Arrow keys move, Enter explains a row.`), element("thead", {}, head), element("tbody", {}, ...body)];
  });
  showPager(shown);
  if (!changed) return;
  seen = new Set(shown.lines.map(whole));
  const again = focused && [...document.querySelectorAll("#rows tr")].find((row) => row.dataset.key === focused);
  if (again) again.focus();
}

function showPager(shown) {
  const counts = shown.found || shown.counts;
  const total = chosen.truth ? counts[chosen.truth] || 0 : Object.values(counts).reduce((a, b) => a + b, 0);
  const last = shown.start + shown.lines.length;
  $("before").hidden = !chosen.truth || shown.start === 0;
  $("after").hidden = !chosen.truth || last >= total || !shown.lines.length;
  $("range").textContent = shown.lines.length && (last < total || shown.start) ? chosen.truth ? `rows ${many(shown.start + 1)} to ${many(last)} of ${many(total)}` : `${many(total - shown.lines.length)} rows are not shown; choose true, possible or never to page through all` : "";
  $("more").hidden = Boolean(chosen.truth) || last >= total || chosen.show >= 1000 || shown.lines.length < chosen.show;
}

function linkExports() {
  const asked = new URLSearchParams({ document: chosen.document, view: chosen.view, truth: chosen.truth, find: chosen.find });
  for (const format of ["csv", "json"]) $(`export-${format}`).href = `/live/export?${asked}&format=${format}`;
}

function showTools(shown) {
  linkExports();
  $("drop").hidden = !mine().includes(`${shown.document}/${shown.view}`);
  $("plot").hidden = !shown.numbers.length;
  draw("plot-number", shown.numbers, () => shown.numbers.map((n) => element("option", {}, n)));
  $("plot-choice").hidden = shown.numbers.length < 2;
  showSaved();
}

// Saved searches are kept in this browser. -----------------------------------------------------------------

const SEARCHES = "axlog.searches";

function searches() {
  try { const kept = JSON.parse(localStorage.getItem(SEARCHES)); return Array.isArray(kept) ? kept : []; } catch { return []; }
}

function sameSearch(one) {
  return ["document", "view", "truth", "find"].every((name) => (one[name] || "") === (chosen[name] || ""));
}

function showSaved() {
  const here = searches().filter((one) => one.document === chosen.document && one.view === chosen.view);
  $("save").hidden = !(chosen.find || chosen.truth) || here.some(sameSearch);
  draw("saved", [here, chosen.find, chosen.truth], () => here.map((one) => {
    const says = [one.truth, one.find && `“${one.find}”`].filter(Boolean).join(" ");
    return element("span", { class: "pair" }, button(element("span", { dir: "auto" }, says), () => { $("find").value = one.find; pick({ truth: one.truth, find: one.find, start: 0, show: 100 }); }, { "aria-pressed": String(sameSearch(one)) }),
      button("×", () => keepSearches(searches().filter((other) => JSON.stringify(other) !== JSON.stringify(one))), { "aria-label": `Delete the search ${says}` }));
  }));
}

function keepSearches(all) {
  try { localStorage.setItem(SEARCHES, JSON.stringify(all.slice(-100))); } catch { announce("this browser keeps no searches"); }
  showSaved();
}

function saveSearch() {
  const { document, view, truth, find } = chosen;
  keepSearches([...searches(), { document, view, truth, find }]);
}

// Values -----------------------------------------------------------------------------------------------------

function isNumber(type) {
  return type === "integer" || type === "decimal" || type === "double";
}

function cell(value, type, truth) {
  // Null is unknown in a row that may come, and a missing value in one that is there.
  if (value === null || value === undefined) return truth === "true" ? "–" : "?";
  if (type === "time") return value || value === 0 ? moment(value) : String(value);
  if (Array.isArray(value)) return value.map((each) => cell(each, "any", truth)).join(", ");
  if (type !== "text" && typeof value === "string" && /^-?\d+\.\d+$/.test(value)) return shortened(value);
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

function viewOf(name, view) {
  const here = state.documents.find((d) => d.name === name);
  return (here && here.views.find((v) => v.name === view)) || {};
}

function typesOf(name, view) {
  return viewOf(name, view).types || {};
}
