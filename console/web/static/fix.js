// Fix in the browser: rows of rejects.xlsx in a grid that draws only what is in sight. Loaded after console.js.

const fix = $("#fix");
const HEIGHT = 34; // of a row in pixels, as in fix.css
const SPARE = 15; // rows drawn above and below what is in sight
const CHECK_AFTER = 800; // milliseconds after the last change
const MOST = 10000; // changes of one submission, as the server takes them
const CHECKED_ROWS = 200; // of the latest changes, in one check

const words = fix ? JSON.parse(fix.dataset.words) : {};
const language = document.documentElement.querySelector("main").lang;
const number = (count) => count.toLocaleString(language);
const sentence = (key, facts = {}) => Object.entries(facts).reduce((text, [name, fact]) => text.replace(`{${name}}`, () => fact), words[key]);
const counted = (key, count) => sentence(`${key}_${count === 1 ? "one" : "many"}`, { count: number(count) });

const grid = { sheets: [], at: 0, edits: new Map(), wrong: new Map(), undo: [], cell: [0, 0], from: [0, 0], input: null, timer: 0, sent: false, of: "" };
const sheet = () => grid.sheets[grid.at];
const place = (row, column, at = grid.at) => `${at}/${grid.sheets[at].rows[row][0]}/${column + 1}`;
const rowName = (row) => sheet().rows[row][3]; // as in the sender's file
const original = (row, column) => sheet().rows[row][1][column] || "";
const shown = (row, column) => grid.edits.get(place(row, column)) ?? original(row, column);

function messageOf(row, column) {
  const at = place(row, column);
  if (grid.edits.has(at)) return grid.wrong.get(at) || "";
  return sheet().rows[row][2][column] || "";
}

function look(row, column) {
  const at = place(row, column);
  if (!grid.edits.has(at)) return sheet().rows[row][2][column] ? "wrong" : "";
  return grid.wrong.has(at) ? (grid.wrong.get(at) ? "wrong" : "right") : "changed";
}

function isPicked(row, column) {
  const [top, bottom] = [grid.from[0], grid.cell[0]].sort((a, b) => a - b);
  return column === grid.cell[1] && row >= top && row <= bottom && top !== bottom;
}

function draw({ focus = false } = {}) {
  const box = $("#fix-scroll");
  const count = sheet().rows.length;
  const first = Math.max(0, Math.floor(box.scrollTop / HEIGHT) - SPARE);
  const last = Math.min(count, Math.ceil((box.scrollTop + box.clientHeight) / HEIGHT) + SPARE);
  const body = $("tbody", box);
  const rows = [gap(first)];
  for (let row = first; row < last; row += 1) rows.push(drawnRow(row));
  rows.push(gap(count - last));
  body.replaceChildren(...rows);
  if (focus) {
    const cell = $(`td[data-at="${grid.cell.join("/")}"]`, body);
    if (cell) cell.focus({ preventScroll: true });
  }
  showState();
}

function gap(rows) {
  const made = document.createElement("tr");
  made.className = "gap";
  made.setAttribute("aria-hidden", "true");
  const cell = made.insertCell();
  cell.style.height = `${rows * HEIGHT}px`;
  return made;
}

function drawnRow(row) {
  const made = document.createElement("tr");
  made.setAttribute("aria-rowindex", row + 2);
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = rowName(row);
  made.append(head);
  sheet().header.forEach((_, column) => {
    const cell = made.insertCell();
    cell.textContent = shown(row, column);
    cell.className = `${look(row, column)}${isPicked(row, column) ? " picked" : ""}`;
    cell.tabIndex = row === grid.cell[0] && column === grid.cell[1] ? 0 : -1;
    cell.dataset.at = `${row}/${column}`;
    cell.setAttribute("role", "gridcell");
    const message = messageOf(row, column);
    if (message) {
      cell.title = message;
      cell.setAttribute("aria-invalid", "true");
    }
  });
  return made;
}

function showState() {
  const cells = grid.edits.size;
  const [row, column] = grid.cell;
  const message = sheet().rows.length ? messageOf(row, column) : "";
  $("#fix-message").textContent = message ? sentence("place", { column: sheet().header[column] || "?", row: rowName(row), message }) : "\u00a0";
  $("#fix-submit").disabled = !cells || cells > MOST;
  $("#fix-submit").textContent = cells ? counted("submit", cells) + (cells > MOST ? `: ${sentence("most", { count: number(MOST) })}` : "") : words.submit;
  $("#fix-undo").disabled = !grid.undo.length;
}

function move(row, column, { extend = false } = {}) {
  grid.cell = [Math.max(0, Math.min(sheet().rows.length - 1, row)), Math.max(0, Math.min(sheet().header.length - 1, column))];
  if (!extend) grid.from = grid.cell;
  const box = $("#fix-scroll");
  const top = grid.cell[0] * HEIGHT;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + 3 * HEIGHT > box.scrollTop + box.clientHeight) box.scrollTop = top + 3 * HEIGHT - box.clientHeight;
  draw({ focus: true });
  $(`td[data-at="${grid.cell.join("/")}"]`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function change(changes) {
  const step = [];
  for (const [row, column, text] of changes) {
    if (row >= sheet().rows.length || column >= sheet().header.length || shown(row, column) === text) continue;
    const at = place(row, column);
    step.push([at, grid.edits.get(at), text === original(row, column) ? undefined : text]);
  }
  if (!step.length) return;
  grid.undo.push(step);
  apply(step.map(([at, , after]) => [at, after]));
}

function apply(values) {
  for (const [at, value] of values) {
    if (value === undefined) grid.edits.delete(at);
    else grid.edits.set(at, value);
    grid.wrong.delete(at);
  }
  clearTimeout(grid.timer);
  grid.timer = setTimeout(check, CHECK_AFTER);
  draw({ focus: true });
}

function undo() {
  const step = grid.undo.pop();
  if (step) apply(step.map(([at, before]) => [at, before]));
}

function edit(text) {
  const [row, column] = grid.cell;
  const cell = $(`td[data-at="${row}/${column}"]`);
  if (!cell || grid.input) return;
  const input = document.createElement("input");
  input.value = text ?? shown(row, column);
  input.maxLength = 32767;
  input.setAttribute("aria-label", sentence("place", { column: sheet().header[column] || "?", row: rowName(row), message: "" }));
  const choices = sheet().choices[column];
  if (choices) {
    const list = document.createElement("datalist");
    list.id = "fix-choices";
    list.append(...choices.map((one) => Object.assign(document.createElement("option"), { value: one })));
    input.setAttribute("list", list.id);
    cell.replaceChildren(input, list);
  } else cell.replaceChildren(input);
  grid.input = input;
  input.focus();
  if (text === undefined) input.select();
  const close = (keep) => {
    if (grid.input !== input) return;
    grid.input = null;
    if (keep && input.value !== shown(row, column)) change([[row, column, input.value]]);
    else draw({ focus: true });
  };
  input.addEventListener("blur", () => close(true));
  input.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Escape") close(false);
    else if (event.key === "Enter" || event.key === "Tab") {
      event.preventDefault();
      close(true);
      const step = event.shiftKey ? -1 : 1;
      if (event.key === "Enter") move(row + step, column);
      else move(row, column + step);
    }
  });
}

function fillDown() {
  const [top, bottom] = [grid.from[0], grid.cell[0]].sort((a, b) => a - b);
  const text = shown(top, grid.cell[1]);
  change(Array.from({ length: bottom - top }, (_, n) => [top + 1 + n, grid.cell[1], text]));
}

function paste(text) {
  const [row, column] = grid.cell;
  const lines = text.replace(/\r\n?/g, "\n").replace(/\n$/, "").split("\n").map((line) => line.split("\t"));
  change(lines.flatMap((cells, down) => cells.map((cell, right) => [row + down, column + right, cell])));
}

function nextWrong() {
  const { rows, header } = sheet();
  const total = rows.length * header.length;
  const start = grid.cell[0] * header.length + grid.cell[1];
  for (let step = 1; step <= total; step += 1) {
    const at = (start + step) % total;
    const [row, column] = [Math.floor(at / header.length), at % header.length];
    if (look(row, column) === "wrong") return move(row, column);
  }
  say(words.done);
  return undefined;
}

const arrows = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageDown: [15, 0], PageUp: [-15, 0] };

function pressed(event) {
  if (!event.target.closest("td[data-at]") || grid.input) return;
  event.stopPropagation(); // letters are what is typed here, not keys of the console
  const [row, column] = grid.cell;
  const command = event.ctrlKey || event.metaKey;
  if (arrows[event.key]) {
    const far = command ? sheet().rows.length + sheet().header.length : 1; // to the edge, as in a spreadsheet program
    move(row + far * arrows[event.key][0], column + far * arrows[event.key][1], { extend: event.shiftKey });
  } else if (event.key === "Home") move(command ? 0 : row, 0);
  else if (event.key === "End") move(command ? sheet().rows.length - 1 : row, sheet().header.length - 1);
  else if (event.key === "Enter" || event.key === "F2") edit();
  else if (event.key === "Delete" || event.key === "Backspace") change([[row, column, ""]]);
  else if (command && event.key.toLowerCase() === "z") undo();
  else if (command && event.key.toLowerCase() === "d") fillDown();
  else if (!command && !event.altKey && event.key.length === 1) edit(event.key);
  else return;
  event.preventDefault();
}

const asEdits = (entries) => entries.map(([at, text]) => [...at.split("/").map(Number), text]);

async function check() {
  const latest = [...grid.edits].slice(-CHECKED_ROWS);
  if (!latest.length) return;
  $("#fix-count").textContent = words.checking;
  let answer = null;
  try {
    const response = await request("POST", `${fix.dataset.at}/fix/check`, { of: grid.of, edits: asEdits(latest) });
    if (response.status === 503 || response.status === 429) {
      grid.timer = setTimeout(check, 4 * CHECK_AFTER);
      return;
    }
    answer = response.ok ? await response.json() : null;
  } catch { /* said below */ }
  if (!answer || !answer.checked) {
    $("#fix-count").textContent = words.unchecked;
    return;
  }
  const wrong = new Map(answer.wrong.map((one) => [`${one.sheet}/${one.row}/${one.column}`, one.message]));
  for (const [at, text] of latest) if (grid.edits.get(at) === text) grid.wrong.set(at, wrong.get(at) || "");
  $("#fix-count").textContent = answer.wrong.length ? sentence("still", { count: number(answer.wrong.length) }) : words.fits;
  if (!grid.input) draw({ focus: document.activeElement?.matches("td[data-at]") });
}

async function submit() {
  const done = await send("POST", `${fix.dataset.at}/fix`, { of: grid.of, edits: asEdits([...grid.edits]) });
  if (!done) return;
  grid.sent = true;
  const { jobs } = await done.json();
  location.assign(jobs.length ? `/jobs/${jobs[0].job_id}` : fix.dataset.at);
}

function show(at) {
  grid.at = at;
  const head = document.createElement("tr");
  for (const name of [words.row, ...sheet().header]) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    head.append(cell);
  }
  $("thead", fix).replaceChildren(head);
  $("table", fix).setAttribute("aria-rowcount", sheet().rows.length + 1);
  $("#fix-scroll").scrollTop = 0;
  grid.cell = grid.from = [0, 0];
  draw();
}

async function load() {
  const answer = await send("GET", `${fix.dataset.at}/fix/rows`);
  if (!answer) {
    $("#fix-count").textContent = words.missing;
    return;
  }
  const { sheets, rows, shown: there, of } = await answer.json();
  Object.assign(grid, { sheets, of });
  const select = $("#fix-sheets select");
  select.append(...sheets.map((one, n) => Object.assign(document.createElement("option"), { value: n, textContent: one.name })));
  $("#fix-sheets").hidden = sheets.length < 2;
  $("#fix-count").textContent = counted("errors", rows);
  $("#fix-cut").hidden = there === rows;
  $("#fix-cut").textContent = sentence("cut", { count: number(there) });
  show(0);
}

if (fix) {
  $("#fix-scroll").addEventListener("scroll", () => { if (!grid.input) requestAnimationFrame(() => draw({ focus: document.activeElement?.matches("td[data-at]") })); });
  fix.addEventListener("keydown", pressed);
  fix.addEventListener("mousedown", (event) => {
    const cell = event.target.closest("td[data-at]");
    if (!cell || event.target === grid.input) return;
    event.preventDefault();
    const [row, column] = cell.dataset.at.split("/").map(Number);
    const again = document.activeElement === cell && !event.shiftKey; // a second tap: phones have no keys to edit by
    grid.input?.blur();
    if (again) edit();
    else move(row, column, { extend: event.shiftKey });
  });
  fix.addEventListener("paste", (event) => {
    if (grid.input || !event.target.closest("td[data-at]")) return;
    event.preventDefault();
    paste(event.clipboardData.getData("text/plain"));
  });
  $("#fix-next").addEventListener("click", nextWrong);
  $("#fix-undo").addEventListener("click", undo);
  $("#fix-submit").addEventListener("click", submit);
  $("#fix-sheets select").addEventListener("change", (event) => show(Number(event.target.value)));
  addEventListener("beforeunload", (event) => { if (grid.edits.size && !grid.sent) event.preventDefault(); });
  load();
}
