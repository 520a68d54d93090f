"use strict";
// Explanations of a row: its truth, why, its history. Dead letters: listed, corrected, replayed.

async function openRow(name, view, row, line) {
  const says = words(row, typesOf(name, view), line ? line.truth : "possible") || "this row";
  chosen.row = JSON.stringify(row);
  keepAddress();
  $("why").dataset.good = viewOf(name, view).good || "";
  $("why-head").textContent = heading(line && line.truth, says);
  $("why-said").replaceChildren(element("p", { class: "soft" }, "asking the server; if messages must be read again, this takes some seconds"));
  if (!$("why").open) $("why").showModal();
  let said;
  try { said = await ask("/live/why", { document: name, view, row: JSON.stringify(row) }); } catch (error) { said = { reason: error.message, truth: null }; }
  if (chosen.row !== JSON.stringify(row)) return; // another row was opened meanwhile
  const truth = said.truth || (line && line.truth) || null;
  $("why-head").textContent = heading(truth, said.row ? words(said.row, typesOf(name, view), truth || "possible") : says);
  $("why-said").replaceChildren(...explanation({ ...(line || {}), ...said, truth }));
}

function heading(truth, says) {
  return { true: `Why is ${says} here?`, possible: `What may still bring ${says}?`, never: `Why can ${says} never come?` }[truth] || says;
}

function explanation(said) {
  const parts = [element("p", {}, badge(said.truth || "undecided"), { true: "The row is there.", possible: "The row may still come.", never: "The row can never come." }[said.truth] || "It is not decided whether the row can come.")];
  const reasons = said.reasons || [];
  if (reasons.length) parts.push(element("ul", { class: "reasons" }, ...reasons.map((r) => element("li", { dir: "auto" }, reasonText(r)))));
  else if (said.truth === "possible" && said.needs) parts.push(...needs(said));
  if (said.reason) parts.push(element("p", { class: "soft" }, said.reason));
  if (said.history && said.history.length) parts.push(element("h3", {}, "History"), element("ol", { class: "history" }, ...said.history.map(eventLine)));
  const found = said.derivations;
  if (found && found.length) {
    const all = found.length + (said.more || 0);
    parts.push(element("h3", {}, "Made of"), ...(all > 1 ? [element("p", { class: "soft" }, `made of ${many(all)} matches`)] : []), ...found.map(derivation), ...(said.more ? [element("p", { class: "soft" }, `and ${many(said.more)} more`)] : []));
  } else if (found && said.truth === "true") parts.push(element("p", {}, "the row no longer exists"));
  return parts;
}

function reasonText(reason) {
  const text = short(reason.text);
  return reason.deadline === undefined ? text : text.replace(String(reason.deadline), moment(reason.deadline));
}

function eventLine(one) {
  const cause = one.cause && (one.cause.origin || { message: one.cause.stream ? `message ${many(one.cause.number)} of ${one.cause.stream}` : "a message", statement: `statement ${many(one.cause.number)}`, clock: "the clock" }[one.cause.kind]);
  const was = one.before ? Object.entries(one.row).filter(([k, v]) => JSON.stringify(v) !== JSON.stringify(one.before[k])).map(([k, v]) => `${k} ${cell(one.before[k], "any", "true")} → ${cell(v, "any", "true")}`).join(", ") : "";
  const says = [was, one.seen ? "first seen on this page" : cause ? `by ${cause}` : "", one.final ? "for good" : ""].filter(Boolean).join(", ");
  return element("li", {}, badge(one.state), element("strong", {}, moment(one.time)), " ", element("span", { dir: "auto" }, says));
}

function needs(line) {
  const list = element("ul", {}, ...line.needs.map((n) => element("li", {}, element("span", { class: "code" }, short(n.pattern)), " from ", element("strong", { dir: "auto" }, n.stream))));
  return [element("p", {}, line.deadline === undefined ? "It needs, at any time:" : `It needs, by ${moment(line.deadline)}:`), list];
}

function derivation(matched) {
  const rows = matched.map((m) => element("tr", { class: m.origin ? (m.pattern.includes("$") ? "bound" : "") : "soft" }, element("td", { class: "code", title: m.pattern }, short(m.pattern)), element("td", { class: "code", title: m.path }, short(m.path)), element("td", {}, m.origin && m.time ? moment(m.time) : ""), element("td", {}, m.origin || "the document")));
  const head = element("tr", {}, ...["pattern", "matched", "since", "message"].map((h) => element("th", { scope: "col" }, h)));
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}

function closeRow() {
  if (chosen.row === null) return;
  chosen.row = null;
  keepAddress();
  const back = document.querySelector("#rows tr[tabindex='0']");
  if (back) back.focus();
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    $("why-link").textContent = "Copied";
  } catch {
    $("why-link").textContent = "The address bar has the link";
  }
  setTimeout(() => { $("why-link").textContent = "Copy a link to this row"; }, 2000);
}

// Dead letters -------------------------------------------------------------------------------------------

async function openLetters() {
  $("letters-said").replaceChildren(element("p", { class: "soft" }, "asking"));
  if (!$("letters").open) $("letters").showModal();
  let all;
  try { all = await ask("/live/letters"); } catch (error) { return void $("letters-said").replaceChildren(element("p", { role: "alert" }, error.message)); }
  const left = all.filter((one) => !one.replayed);
  const done = all.length - left.length;
  $("letters-said").replaceChildren(element("p", { class: "soft" }, `${counted(left.length, "message")} to correct${done ? `, ${many(done)} replayed` : ""}. A replayed message goes back to its source, and is read like a new one.`), ...left.slice(0, 100).map(letter));
}

function letter(one) {
  const text = element("textarea", { rows: "5", spellcheck: "false", "aria-label": `Message ${one.number}` });
  text.value = one.content;
  const fault = element("p", { role: "alert" });
  const made = element("details", { class: "letter" }, element("summary", {}, element("strong", { dir: "auto" }, `${one.number} ${one.stream}`), ` ${one.origin}: ${one.error.split("\n")[0]}`),
    element("pre", { class: "soft" }, one.error), text, button("Replay", async (event) => {
      event.target.disabled = true;
      try {
        await send("POST", "/live/letters", { number: one.number, content: text.value });
        announce(`message ${one.number} was replayed`);
        await openLetters();
      } catch (error) { fault.textContent = error.message; event.target.disabled = false; }
    }), fault);
  return made;
}
