// The workbench: forms change the manifest without leaving the page, the preview follows, and the sheet is clicked.
"use strict";

// Samples

function sampleZone() {
  if (!$("#zone")) return;
  fileZone();
  $("#begin").addEventListener("submit", () => say("Reading the samples …", true));
}

// One request after the other: each form holds the version that the one before made.

let line = Promise.resolve();
const inLine = (act) => { line = line.then(act, act); return line; };
const parsed = (text) => new DOMParser().parseFromString(text, "text/html");

function take(made) {
  const fresh = made.getElementById("bench");
  if (!fresh) return false;
  const focused = document.activeElement;
  const key = focused && focused.form ? [focused.form.id, focused.name, focused.value] : null;
  const folds = new Map($$("#bench details").map((one) => [$("summary", one)?.textContent, one.open]));
  $("#bench").replaceWith(fresh);
  for (const one of $$("#bench details")) {
    if (folds.get($("summary", one)?.textContent)) one.open = true;
  }
  $("h1").replaceWith(made.querySelector("h1"));
  const version = $("#bench input[name=version]")?.value;
  if (version) for (const one of $$("#preview input[name=version]")) one.value = version;
  if (key && key[0]) {
    const same = $$(`#${CSS.escape(key[0])} [name="${CSS.escape(key[1])}"]`);
    (same.find((one) => one.value === key[2]) || same[0])?.focus({ preventScroll: true });
  }
  checkJson();
  return true;
}

async function sendForm(form, button) {
  const body = new URLSearchParams(new FormData(form, button || undefined));
  try {
    const response = await fetch(form.action, { method: "POST", body, headers: { Accept: "text/html" } });
    const made = parsed(await response.text());
    if (!take(made)) { say($(".callout", made)?.textContent || response.statusText, true); return; }
    if (response.ok) { history.replaceState(null, "", $("#bench").dataset.at); say("Changed"); }
    else say("Not changed: see above the form");
  } catch {
    say("The console does not answer. Is it still running?", true);
    return;
  }
  runPreview();
}

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-swap]");
  if (!form) return;
  event.preventDefault();
  clearTimeout(waiting);
  inLine(() => sendForm(document.contains(form) ? form : form.id ? document.getElementById(form.id) || form : form, event.submitter));
});

// The form of a field is saved as it is changed.

let waiting;
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-eager]");
  if (!form || !form.reportValidity()) return;
  clearTimeout(waiting);
  waiting = setTimeout(() => inLine(() => { const now = document.getElementById(form.id); return now ? sendForm(now) : null; }), 300);
});

document.addEventListener("click", (event) => {
  const anchor = event.target.closest("a[data-load]");
  if (!anchor || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  inLine(async () => {
    const response = await fetch(anchor.href, { headers: { Accept: "text/html" } }).catch(() => null);
    if (!response || !take(parsed(await response.text()))) { location.assign(anchor.href); return; }
    history.replaceState(null, "", $("#bench").dataset.at);
    const form = $("#field");
    if (form) { form.scrollIntoView({ block: "nearest" }); $("select, input:not([type=hidden])", form).focus({ preventScroll: true }); }
  });
});

// The preview

let turn = 0;
let timer;
function runPreview() {
  clearTimeout(timer);
  if (!$("#preview")?.dataset.auto) return;
  $("#preview").classList.add("working");
  timer = setTimeout(async () => {
    const mine = ++turn;
    const place = $("#preview");
    const at = new URL($("#bench").dataset.at, location.href);
    at.searchParams.set("preview", "yes");
    const response = await fetch(at, { headers: { Accept: "text/html" } }).catch(() => null);
    if (mine !== turn) return;
    const fresh = response && response.ok ? parsed(await response.text()).getElementById("preview") : null;
    if (mine !== turn) return;
    if (fresh) replacePreview(place, fresh);
    place.classList.remove("working");
    if (/running|waits/.test($(".callout.bad", place)?.textContent || "")) timer = setTimeout(runPreview, 2000);
  }, 400);
}

// What somebody is choosing in the sheet stays when the preview comes again.
function replacePreview(place, fresh) {
  const fields = () => $$("form[id] input:not([type=hidden]), form[id] select", place);
  const key = (one) => `${one.form.id}/${one.name}`;
  const chosen = new Map(fields().map((one) => [key(one), one.type === "checkbox" ? one.checked : one.value]));
  const focused = document.activeElement?.form && place.contains(document.activeElement) ? key(document.activeElement) : "";
  place.replaceChildren(...fresh.childNodes);
  for (const one of fields()) {
    if (!chosen.has(key(one))) continue;
    if (one.type === "checkbox") one.checked = chosen.get(key(one));
    else one.value = chosen.get(key(one));
    if (key(one) === focused) one.focus({ preventScroll: true });
  }
}

// The JSON tab tells what is wrong while somebody types

let checking;
let latest = 0;
async function checkJson() {
  const area = $("#manifest");
  if (!area) return;
  const mine = ++latest;
  const response = await request("POST", "/drop/check", area.value).catch(() => null);
  if (!response || !response.ok || mine !== latest) return;
  const found = (await response.json()).problems;
  area.setAttribute("aria-invalid", found.length ? "true" : "false");
  const place = $("#problems");
  place.className = found.length ? "error-text" : "soft";
  const items = found.map((one) => {
    const item = document.createElement("li");
    item.textContent = `${one.path}: ${one.problem}` + (one.allowed ? `; allowed: ${one.allowed}` : "");
    return item;
  });
  if (!items.length) { place.textContent = "The manifest is valid."; return; }
  const list = document.createElement("ul");
  list.append(...items);
  place.replaceChildren(list);
}
document.addEventListener("input", (event) => {
  if (event.target.id !== "manifest") return;
  clearTimeout(checking);
  checking = setTimeout(checkJson, 250);
});

// The drawn sheet: a column waits for its field, two cells are the corners of the table

const corners = {};
function cornersOf(first, second) {
  const part = (cell) => [cell.replace(/[0-9]/g, ""), Number(cell.replace(/[A-Z]/g, ""))];
  const order = (a, b) => (a.length - b.length) || (a < b ? -1 : a > b ? 1 : 0);
  const [[a, m], [b, n]] = [part(first), part(second)];
  const [left, right] = [a, b].sort(order);
  return `${left}${Math.min(m, n)}:${right}${Math.max(m, n)}`;
}

document.addEventListener("click", (event) => {
  const table = event.target.closest("table.pick");
  if (!table) return;
  const id = table.dataset.sheet;
  const column = event.target.closest("thead button");
  if (column) {
    event.preventDefault();
    for (const one of $$("button.picked", table)) one.classList.remove("picked");
    column.classList.add("picked");
    const form = document.getElementById(`${id}-column`);
    $("input[name=header]", form).value = column.value;
    const field = $("select", form);
    field.value = column.dataset.target || "";
    field.focus();
    say(`Choose the field for “${column.value}”, then Settle`);
    return;
  }
  const cell = event.target.closest("td[data-cell]");
  if (!cell) return;
  const input = $("input[name=range]", document.getElementById(`${id}-range`));
  if (!corners[id]) {
    for (const one of $$("td.picked", table)) one.classList.remove("picked");
    corners[id] = cell.dataset.cell;
    say(`${corners[id]} is one corner; click the other`);
  } else {
    input.value = cornersOf(corners[id], cell.dataset.cell);
    corners[id] = null;
    input.focus();
    say(`Table ${input.value}: Settle writes it`);
  }
  cell.classList.add("picked");
});

sampleZone();
checkJson();
if ($("#bench")) runPreview();

// A replay goes on by itself while somebody looks

if ($("#go-on")) setTimeout(() => $("#go-on").submit(), 1500);
