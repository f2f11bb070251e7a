// Select rows with the pointer or by keyboard, and act on them on the same page.
// Without this script, the boxes and buttons are a form, and the response to the form is a new page.
"use strict";

const MOST_PLOTTED = 8;

function startSelection(form, table) {
  const body = table.tBodies[0];
  const address = form.getAttribute("action");
  const button = (action) => form.querySelector(`button[value='${action}']`);
  const boxes = () => Array.from(body.querySelectorAll(".row-box"));
  const keyOf = (box) => box.closest("tr").dataset.key;
  const all = Object.assign(document.createElement("input"), { type: "checkbox", className: "row-box" });
  let chosen = new Set(); // the keys of the selected rows, because a live update replaces the boxes
  let last = null;
  let busy = false;

  function show() {
    const here = boxes();
    chosen = new Set(here.filter((box) => box.checked).map(keyOf));
    all.checked = chosen.size > 0 && chosen.size === here.length;
    all.indeterminate = chosen.size > 0 && chosen.size < here.length;
    byId("selected").textContent = chosen.size ? `${chosen.size} selected` : "";
    button("plot").disabled = chosen.size > MOST_PLOTTED;
  }

  function pick(box, checked, isRange) {
    const here = boxes();
    const to = here.indexOf(box);
    const from = isRange ? here.findIndex((one) => keyOf(one) === last) : -1;
    const range = from < 0 ? [box] : here.slice(Math.min(from, to), Math.max(from, to) + 1);
    for (const one of range) one.checked = checked;
    last = keyOf(box);
    show();
  }

  function pickAll(checked) {
    for (const box of boxes()) box.checked = checked;
    show();
  }

  function toGrid() {
    const place = body.querySelector("[tabindex='0']") || body.querySelector(".row-box");
    if (place) place.focus();
  }

  async function copyRows(fields) {
    try {
      const response = await fetch(address, { method: "POST", body: new URLSearchParams(fields), credentials: "same-origin" });
      if (!response.ok) throw new Error(String(response.status));
      await toClipboard(await response.text());
      byId("done").textContent = `${chosen.size} copied. You can paste them into a spreadsheet.`;
    } catch {
      byId("done").textContent = "Not copied. Export the selection instead.";
    }
  }

  async function change(fields) {
    const result = await sendForm(address, fields);
    if (result.problem) {
      say(`Not done: ${result.problem}`);
    } else {
      pickAll(false);
      const sentence = result.sentence.replace(/\.$/, "");
      if (result.undo) document.dispatchEvent(new CustomEvent("undoable", { detail: { address, fields: result.undo, sentence } }));
      say(`${sentence}: saved`);
    }
    await readRows();
    if (document.activeElement === document.body || form.contains(document.activeElement)) toGrid();
  }

  async function run(action) {
    if (busy || !chosen.size) return;
    busy = true;
    const data = new FormData(form);
    const fields = { ...Object.fromEntries(data), row: data.getAll("row").join("\n"), action };
    await (action === "copy" ? copyRows(fields) : change(fields));
    busy = false;
  }

  form.addEventListener("submit", (event) => {
    const action = event.submitter.value;
    if (action === "csv" || action === "plot") return;
    event.preventDefault();
    run(action);
  });
  body.addEventListener("click", (event) => {
    if (event.target.matches(".row-box")) pick(event.target, event.target.checked, event.shiftKey);
  });
  table.addEventListener("keydown", (event) => {
    const isCell = event.target.matches("td[tabindex]");
    if (!isCell && !event.target.matches(".row-box")) return;
    const ctrl = event.ctrlKey || event.metaKey;
    if (event.key === " " && isCell && !ctrl) {
      const box = event.target.parentElement.querySelector(".row-box");
      pick(box, event.shiftKey || !box.checked, event.shiftKey);
    } else if (event.key.toLowerCase() === "a" && ctrl) {
      pickAll(true);
    } else if (!chosen.size) {
      return;
    } else if (event.key === "Delete" && button("delete")) {
      run("delete");
    } else if (event.key.toLowerCase() === "c" && ctrl && !String(getSelection())) {
      run("copy");
    } else if (event.key === "Enter" && ctrl) {
      form.querySelector("input:not([type='hidden']), button[name]").focus();
    } else if (event.key === "Escape") {
      pickAll(false);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }, true);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches("input")) {
      event.preventDefault();
      form.requestSubmit(Array.from(form.querySelectorAll("button[name]")).find((one) => event.target.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING));
      return;
    }
    if (event.key !== "Escape") return;
    toGrid();
    pickAll(false);
  });
  const clear = byId("clear-selection");
  clear.hidden = false;
  clear.addEventListener("click", () => {
    toGrid();
    pickAll(false);
  });
  document.addEventListener("rows", () => {
    for (const box of boxes()) box.checked = chosen.has(keyOf(box));
    show();
  });
  all.setAttribute("aria-label", "Select all rows of this page");
  all.addEventListener("change", () => pickAll(all.checked));
  table.tHead.rows[0].cells[0].prepend(all);
  show();
}

// Paste cells from a spreadsheet: the preview of the import shows what the cells would change. A single column that is pasted on a
// value gives the values of that row and of the rows below.
function startPaste(table) {
  const lines = (text) => text.match(/(?:"(?:[^"]|"")*"|[^\n])+|(?<=\n|^)(?=\n)/g) || [];

  function preview(fields) {
    const form = Object.assign(document.createElement("form"), { method: "post", action: table.dataset.changes.replace(/changes$/, "import"), hidden: true });
    for (const [name, value] of Object.entries({ ...fields, form_token: formToken() })) {
      const field = Object.assign(document.createElement("textarea"), { name });
      field.value = value;
      form.append(field);
    }
    document.body.append(form);
    form.submit();
  }

  document.addEventListener("paste", (event) => {
    if (event.target.closest("input, textarea, select")) return;
    const text = event.clipboardData.getData("text/plain").replace(/\r\n?/g, "\n").replace(/\n$/, "");
    const cell = event.target.closest("td[data-label='Value']");
    const isColumn = !text.includes("\t");
    if (!text || (isColumn && !cell)) return;
    event.preventDefault();
    if (!isColumn) {
      preview({ table: text });
      return;
    }
    const rows = Array.from(table.tBodies[0].rows);
    const following = rows.slice(rows.indexOf(cell.parentElement));
    const values = lines(text);
    if (values.length > following.length) {
      say(`Not pasted: the block has ${values.length} rows, and this page has ${following.length} from this one on.`);
      return;
    }
    const quoted = (key) => `"${key.replaceAll('"', '""')}"`;
    const pasted = values.map((value, index) => `${quoted(following[index].dataset.key)}\t${value}`);
    preview({ table: ["key\tvalue", ...pasted].join("\n"), shape: "rows", header: "true" });
  });
}

if (document.querySelector("table.entries[data-changes]")) startPaste(document.querySelector("table.entries"));
if (byId("selection")) startSelection(byId("selection"), document.querySelector("table.entries"));
