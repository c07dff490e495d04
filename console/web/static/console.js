// Without scripts everything works by forms; this adds live views, keys, previews and checks while you type.
"use strict";

const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
document.documentElement.classList.add("scripts");

// Messages and questions

let hiding;
function say(text, stay = false) {
  clearTimeout(hiding);
  $("#said").textContent = text;
  if (!stay && text) hiding = setTimeout(() => { $("#said").textContent = ""; }, 6000);
}

function ask(text) {
  const dialog = $("#ask");
  $("#ask-text").textContent = text;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

// Requests

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

async function request(method, path, body, headers = {}) {
  for (let tries = 0; ; tries += 1) {
    const json = body !== undefined && !(body instanceof FormData) && typeof body !== "string";
    const response = await fetch(path, {
      method,
      body: json ? JSON.stringify(body) : body,
      headers: { Accept: "application/json", ...(json ? { "Content-Type": "application/json" } : {}), ...headers },
    });
    if (response.status === 429 && tries < 5) {
      await pause(Number(response.headers.get("Retry-After")) || 1);
      continue;
    }
    if (response.status === 401) location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
    return response;
  }
}

async function problem(response) {
  try {
    const answer = await response.json();
    if ((answer.problems || []).length === 1) return answer.detail; // it says that one already
    const more = (answer.problems || []).map((one) => `${one.path}: ${one.problem}`).join("; ");
    return more ? `${answer.detail} (${more})` : answer.detail || response.statusText;
  } catch {
    return response.statusText || `status ${response.status}`;
  }
}

async function send(method, path, body) {
  try {
    const response = await request(method, path, body);
    if (response.ok) return response;
    say(await problem(response));
  } catch {
    say("The console does not answer. Is it still running?");
  }
  return null;
}

// Live parts of a page: fetched again and put in place of the old ones

const foldName = (one) => one.id || one.dataset.name || $("summary", one).textContent;
const isChanged = (one) => (one.options
  ? one.selectedIndex !== Math.max(0, [...one.options].findIndex((option) => option.defaultSelected))
  : one.value !== one.defaultValue);
let refreshing = false;
let again = false;
async function refresh() {
  if (refreshing) {
    again = true;
    return;
  }
  refreshing = true;
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (response.ok && !response.redirected) {
      const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
      for (const old of $$("[data-live]")) {
        const made = fresh.getElementById(old.id);
        if (!made || made.innerHTML === old.innerHTML) continue;
        if (old.contains(document.activeElement) && $("input:checked, select:focus, input:focus, form[method=get] :focus", old)) continue;
        if ($$("details[open] input:not([type=hidden]), details[open] select", old).some(isChanged)) continue; // a note is being written
        const open = new Set($$("details[open]", old).map(foldName));
        old.replaceChildren(...made.childNodes);
        for (const name of made.getAttributeNames()) old.setAttribute(name, made.getAttribute(name));
        for (const one of $$("details", old)) one.open = open.has(foldName(one)) || one.open;
      }
      restoreSelection();
      showTimes();
    }
  } catch { /* the next event tries again */ }
  refreshing = false;
  if (again) {
    again = false;
    setTimeout(refresh, 500);
  }
}

// Times: how long ago, with the exact time as a tooltip

function showTimes() {
  const now = Date.now() / 1000;
  for (const one of $$("time[datetime]")) {
    const ago = now - Date.parse(one.dateTime) / 1000;
    if (one.closest(".timeline") || Math.abs(ago) > 86400) continue;
    const amount = Math.abs(ago);
    const words = amount < 60 ? `${Math.round(amount)} s` : amount < 3600 ? `${Math.round(amount / 60)} min` : `${Math.round(amount / 3600)} h`;
    const language = one.closest("[lang]").lang;
    if (language !== "en") {
      const [size, unit] = amount < 60 ? [1, "second"] : amount < 3600 ? [60, "minute"] : [3600, "hour"];
      one.textContent = new Intl.RelativeTimeFormat(language, { style: "short" }).format(-Math.round(ago / size), unit);
    } else one.textContent = ago >= 0 ? `${words} ago` : `in ${words}`;
  }
}

// Buttons that post

async function post(button) {
  if (button.dataset.ask && !(await ask(button.dataset.ask))) return;
  button.disabled = true;
  const body = button.dataset.body ? JSON.parse(button.dataset.body) : undefined;
  const done = await send(button.dataset.method || "POST", button.dataset.post, body);
  button.disabled = false;
  if (!done) return;
  say(`${button.textContent.trim()}: done`);
  if (button.dataset.then) location.assign(button.dataset.then);
  else if (document.body.dataset.page === "sender") location.reload();
  else {
    await refresh();
    if (document.body.dataset.page === "job") follow();
  }
}

// Jobs: select, act on those selected or on all that match

const selected = new Set();

function restoreSelection() {
  for (const box of $$("[data-select]")) box.checked = selected.has(box.dataset.select);
  if ($("#selected")) $("#selected").textContent = String(selected.size);
  for (const button of $$("[data-bulk]")) {
    const act = button.dataset.bulk === "retry" ? "Retry" : "Cancel";
    button.textContent = selected.size ? `${act} ${selected.size}` : act;
  }
  const ticked = $(".bulk .ticked");
  if (ticked) ticked.classList.toggle("some", selected.size > 0);
}

async function actOnSelected(act) {
  if (!selected.size) {
    say("Nothing is selected.");
    return;
  }
  const ids = [...selected];
  let done = 0;
  const refused = [];
  for (const id of ids) {
    const response = await request("POST", `/jobs/${id}/${act}`);
    if (response.ok) done += 1;
    else refused.push(await problem(response));
    say(`${act}: ${done + refused.length} of ${ids.length}`, true);
  }
  selected.clear();
  await refresh();
  say(`${act}: ${done} done` + (refused.length ? `, ${refused.length} refused: ${refused[0]}` : ""));
}

async function actOnAll(act) {
  const filter = JSON.parse($(".bulk").dataset.filter);
  const counted = await send("POST", "/jobs/acts", { act, filter, dry_run: true });
  if (!counted) return;
  const answer = await counted.json();
  const many = answer.cursor ? `more than ${answer.count}` : String(answer.count);
  if (!answer.count && !answer.cursor) {
    say("No job matches.");
    return;
  }
  const all = Object.keys(filter).length ? "that match the filter" : "there are";
  if (!(await ask(`${act === "retry" ? "Retry" : "Cancel"} ${many} jobs, all ${all}? Those that cannot are skipped.`))) return;
  let cursor = null;
  let count = 0;
  let refused = 0;
  do {
    const response = await send("POST", "/jobs/acts", { act, filter, ...(cursor ? { cursor } : {}) });
    if (!response) return;
    const part = await response.json();
    count += part.count;
    refused += part.refused.length;
    cursor = part.cursor;
    say(`${act}: ${count} so far`, true);
  } while (cursor);
  await refresh();
  say(`${act}: ${count - refused} done` + (refused ? `, ${refused} skipped` : ""));
}

// The log of a job, as it grows; by polling where events do not come through

let source = null;
function follow() {
  const log = $("#log");
  if (!log) return;
  if (source) source.close();
  log.textContent = "";
  const shown = (text) => {
    const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
    log.append(text);
    if (log.textContent.length > 2_000_000) log.textContent = log.textContent.slice(-1_000_000);
    if (atEnd) log.scrollTop = log.scrollHeight;
  };
  const ended = () => $("#live-head").dataset.ended === "1";
  const status = $("#log-state");
  if (ended()) {
    poll(log, shown, 0);
    return;
  }
  status.textContent = "live";
  let connected = false;
  source = new EventSource(`${log.dataset.logs}?follow=true`);
  const giveUp = setTimeout(() => {
    if (connected) return;
    source.close();
    status.textContent = "polling";
    poll(log, shown, 0);
  }, 5000);
  source.addEventListener("state", () => { connected = true; clearTimeout(giveUp); refresh(); });
  source.addEventListener("log", (event) => { connected = true; shown(JSON.parse(event.data).text); });
  for (const last of ["end", "gone"]) {
    source.addEventListener(last, () => {
      connected = true;
      clearTimeout(giveUp);
      source.close();
      status.textContent = "";
      refresh();
    });
  }
}

async function poll(log, shown, after) {
  for (;;) {
    const response = await request("GET", `${log.dataset.logs}?after=${after}`).catch(() => null);
    if (response && response.ok) {
      const piece = await response.json();
      shown(piece.text);
      after = piece.after;
      if (piece.ended) {
        $("#log-state").textContent = "";
        return;
      }
    } else if (response) return;
    if ($("#log-state").textContent === "polling") refresh();
    await pause(2);
  }
}

// Counts of all jobs

function watch() {
  if (document.body.dataset.page === "jobs" && !$("[data-live]")) return;
  let events = null;
  const open = () => {
    let first = true;
    events = new EventSource("/events");
    events.addEventListener("overview", (event) => {
      if (!first) refresh();
      else if (Object.keys(JSON.parse(event.data).tenants).length) first = false;
    });
  };
  whileSeen(open, () => events && events.close());
}

// Browsers keep six connections to a server: a tab that nobody sees gives its own back.
function whileSeen(start, stop) {
  if (!document.hidden) start();
  document.addEventListener("visibilitychange", () => {
    stop();
    if (document.hidden) return;
    refresh();
    start();
  });
}

// Review

function answers() {
  const chosen = (one) => $("input:checked", one);
  const given = $$("[data-question]").filter(chosen);
  const value = (one) => JSON.parse(chosen(one).dataset.value);
  // A column that was chosen for a required field is decided: what the page itself preset for it is no answer.
  const taken = new Set(given.filter((one) => "required" in one.dataset).map((one) => one.dataset.place + value(one)));
  const preset = (one) => taken.has(one.dataset.place + one.dataset.column) && chosen(one).defaultChecked;
  return given.filter((one) => !preset(one)).map((one) => ({ id: one.dataset.question, value: value(one) }));
}

async function show(path, body) {
  const place = $("#preview");
  place.textContent = "Working on it …";
  const response = await request("POST", path, body).catch(() => null);
  if (response && response.ok) {
    const made = new DOMParser().parseFromString(await response.text(), "text/html");
    place.replaceChildren(...made.body.childNodes);
    place.scrollIntoView({ block: "nearest" });
  } else {
    place.textContent = response ? await problem(response) : "The console does not answer.";
  }
}

const unanswered = () => $$("[data-question]").filter((one) => !$("input:checked", one));

function showQuestion(one) {
  for (const each of $$("[data-question]")) each.classList.toggle("here", each === one);
  const left = $("#left-open");
  if (left) left.textContent = unanswered().length ? `${unanswered().length} open` : "all answered";
  one.scrollIntoView({ block: "nearest" });
}

function nextQuestion(by = 1) {
  const all = $$("[data-question]");
  const now = all.findIndex((one) => one.classList.contains("here"));
  const one = all[Math.min(all.length - 1, Math.max(0, now + by))];
  if (one) {
    showQuestion(one);
    ($("input:checked", one) || $("input", one) || one).focus({ preventScroll: true });
  }
}

// Drop

// Names the files that are chosen or dragged into the zone of a page.
function fileZone() {
  const zone = $("#zone");
  const input = $("#files");
  const list = () => {
    $("#chosen").replaceChildren(...[...input.files].map((file) => {
      const item = document.createElement("li");
      item.textContent = `${file.name}, ${Math.ceil(file.size / 1024)} KiB`;
      return item;
    }));
  };
  input.addEventListener("change", list);
  for (const kind of ["dragover", "dragenter"]) {
    zone.addEventListener(kind, (event) => { event.preventDefault(); zone.classList.add("over"); });
  }
  for (const kind of ["dragleave", "drop"]) zone.addEventListener(kind, () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) {
      input.files = event.dataTransfer.files;
      list();
    }
  });
  return input;
}

function dropPage() {
  const input = fileZone();
  let waiting;
  let latest = 0;
  const check = async () => {
    const turn = ++latest;
    const response = await request("POST", "/drop/check", $("#manifest").value).catch(() => null);
    if (!response || !response.ok || turn !== latest) return;
    const found = (await response.json()).problems;
    const place = $("#problems");
    $("#manifest").setAttribute("aria-invalid", found.length ? "true" : "false");
    if (!found.length) {
      place.textContent = $("#manifest").value.trim() ? "The manifest is valid." : "";
      place.className = "soft";
      return;
    }
    place.className = "error-text";
    const items = document.createElement("ul");
    items.append(...found.map((one) => {
      const item = document.createElement("li");
      item.textContent = `${one.path}: ${one.problem}` + (one.allowed ? `; allowed: ${one.allowed}` : "");
      return item;
    }));
    place.replaceChildren(items);
  };
  $("#manifest").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(check, 250);
  });
  check();
  const tenants = new Set($$("#tenants option").map((one) => one.value));
  $("#tenant").addEventListener("change", (event) => {
    const name = event.target.value;
    $("#tenant-note").textContent = tenants.size && name && !tenants.has(name) ? `Nothing has come from a tenant ${name} lately: is the name right?` : "";
  });
  if ($("#from")) {
    $("#from").addEventListener("change", (event) => location.assign(event.target.value ? `/drop?from=${encodeURIComponent(event.target.value)}` : "/drop"));
  }
  const form = $("#drop");
  $("#show-preview").addEventListener("click", () => {
    if (!input.files.length) say("Choose a file first.");
    else if (!$("#tenant").reportValidity()) say("Name the tenant first.");
    else show("/drop/preview", new FormData(form));
  });
  const newKey = () => (crypto.randomUUID ? crypto.randomUUID() : String(Math.random()).slice(2));
  let key = newKey(); // the same until an answer comes, so that a lost one makes nothing twice
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = $("button.strong", form);
    button.disabled = true;
    say("Uploading …", true);
    const response = await request("POST", "/jobs", new FormData(form), { "Idempotency-Key": key }).catch(() => null);
    button.disabled = false;
    if (response) key = newKey();
    if (!response || !response.ok) {
      say(response ? await problem(response) : "The console does not answer.", true);
      return;
    }
    const made = (await response.json()).jobs;
    const tenant = encodeURIComponent($("#tenant").value);
    location.assign(made.length === 1 ? `/jobs/${made[0].job_id}` : `/jobs?tenant=${tenant}`);
  });
}

// Keys

let going = false;
function rows() {
  return $$(document.body.dataset.page === "review" ? "[data-question]" : "[data-row]");
}

function step(by) {
  if (document.body.dataset.page === "review") {
    nextQuestion(by);
    return;
  }
  const all = rows();
  if (!all.length) return;
  const now = all.findIndex((one) => one.classList.contains("here"));
  const next = all[Math.min(all.length - 1, Math.max(0, now + by))];
  for (const one of all) one.classList.toggle("here", one === next);
  next.scrollIntoView({ block: "nearest" });
  ($("a, input", next) || next).focus({ preventScroll: true });
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select");
  if (event.ctrlKey || event.metaKey || event.altKey || typing || $("dialog[open]")) return;
  const here = rows().find((one) => one.classList.contains("here"));
  const keys = {
    j: () => step(1),
    k: () => step(-1),
    n: () => step(1),
    "/": () => { const search = $("#search"); if (search) search.focus(); else location.assign("/jobs"); },
    "?": () => $("#help").showModal(),
    x: () => { const box = here && $("[data-select]", here); if (box) box.click(); },
    Enter: () => { if (here && here.dataset.href && event.target.tagName !== "BUTTON" && event.target.tagName !== "A") location.assign(here.dataset.href); },
  };
  if (going) {
    going = false;
    const link = $(`[data-go="${CSS.escape(event.key)}"]`);
    if (link) link.click();
    return;
  }
  if (event.key === "g") {
    going = true;
    setTimeout(() => { going = false; }, 1500);
  } else if (/^[1-9]$/.test(event.key) && document.body.dataset.page === "review") {
    const question = here || rows()[0];
    const choice = question && $$("input[type=radio]", question)[Number(event.key) - 1];
    if (choice && !choice.disabled) choice.click();
  } else if (keys[event.key]) {
    if (event.key !== "Enter") event.preventDefault();
    keys[event.key]();
  }
});

// Start

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.post) {
    event.preventDefault(); // without scripts its form is sent
    post(button);
  } else if (button.dataset.bulk || button.dataset.bulkAll) {
    event.preventDefault();
    if (button.dataset.bulk) actOnSelected(button.dataset.bulk);
    else actOnAll(button.dataset.bulkAll);
  }
});
document.addEventListener("change", (event) => {
  const box = event.target;
  if (box.id === "select-all") {
    for (const one of $$("[data-select]")) {
      if (box.checked) selected.add(one.dataset.select);
      else selected.delete(one.dataset.select);
    }
  } else if (box.dataset.select) {
    if (box.checked) selected.add(box.dataset.select);
    else selected.delete(box.dataset.select);
  }
  restoreSelection();
});
const starts = {
  home: watch,
  jobs: watch,
  "own-job": watch,
  job: () => whileSeen(follow, () => source && source.close()),
  drop: dropPage,
  review: () => {
    const form = $("#review");
    if (!form) return;
    const first = unanswered()[0] || $("[data-question]");
    if (first) showQuestion(first);
    form.addEventListener("change", () => { const here = $("[data-question].here"); if (here) showQuestion(here); });
    form.addEventListener("invalid", (event) => { // a question that is not shown cannot say that it lacks an answer
      const open = event.target.closest("[data-question]");
      if (open && !open.classList.contains("here")) {
        event.preventDefault();
        showQuestion(open);
        say("This question has no answer yet.");
      }
    }, true);
    $("#next-question")?.addEventListener("click", () => nextQuestion(1));
    $("#back-question")?.addEventListener("click", () => nextQuestion(-1));
    for (const other of $$("[data-other]")) {
      const radio = $("input", other.closest("label"));
      const known = new Set($$("input[data-value]", other.closest("fieldset")).map((one) => one.dataset.value));
      const rest = [...($("#fields")?.content.children || [])].filter((one) => !known.has(JSON.stringify(one.value)));
      if (!rest.length) { other.closest("label").remove(); continue; }
      radio.dataset.value = JSON.stringify(rest[0].value);
      other.append(rest[0].cloneNode(true));
      // The list may be long, and so may the page: it is filled where somebody wants it.
      other.addEventListener("focus", () => other.append(...rest.slice(1).map((one) => one.cloneNode(true))), { once: true });
      other.addEventListener("change", () => {
        radio.dataset.value = JSON.stringify(other.value);
        radio.checked = true;
      });
    }
    const preview = $("#what-if");
    if (preview) preview.addEventListener("click", () => show(`/jobs/${form.dataset.job}/preview`, { answers: answers(), remember: false }));
  },
};
(starts[document.body.dataset.page] || (() => {}))();
showTimes();
