// The grid of entries: edit a cell by keyboard or pointer, and undo changes. Every change is a form that the service checks.
// Without this script, users make the same changes with the forms behind the links.
"use strict";

const EDITABLE = "td[data-label='Value'], td[data-label='Type']";
const FIELDS = { Value: "value", Type: "dataType" };

function formToken() {
  return document.querySelector("input[name='form_token']").value;
}

// Show the result of an action. The status of live updates is separate.
function say(sentence) {
  byId("done").textContent = sentence;
}

function made(kind, properties) {
  return Object.assign(document.createElement(kind), properties);
}

// Send a form, and return the parts of the response. If the action failed, `problem` says why, and `errors` has errors by field.
async function sendForm(address, fields) {
  const body = new URLSearchParams({ ...fields, form_token: formToken() });
  let response;
  try {
    response = await fetch(address, { method: "POST", body, headers: { Accept: "application/json" }, credentials: "same-origin" });
  } catch {
    return { problem: "The service can't be reached, so nothing was saved. Try again.", errors: {} };
  }
  const text = await response.text();
  if ((response.headers.get("Content-Type") || "").startsWith("application/json")) {
    const refused = JSON.parse(text);
    return { status: response.status, problem: refused.detail, errors: refused.errors || {} };
  }
  const page = new DOMParser().parseFromString(text, "text/html");
  const problem = page.querySelector("p.error");
  const undo = page.querySelector("form.undo");
  const done = page.querySelector("#done");
  const sentence = done ? done.textContent : "";
  return {
    status: response.status,
    problem: problem ? problem.textContent : response.ok ? "" : sentence,
    errors: {},
    row: page.querySelector("tbody tr"),
    sentence,
    undo: undo ? Object.fromEntries(new FormData(undo)) : null,
  };
}

// Load the rows of this page again, after an action on several rows.
async function readRows() {
  try {
    const response = await fetch(location.href, { credentials: "same-origin" });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    showRows(page.getElementById("entries").innerHTML);
    byId("pager").innerHTML = page.getElementById("pager").innerHTML;
  } catch {
    showStatus("Not live: reload to see what is new");
  }
}

// The actions on a sink that can be undone, the latest at the end. The browser keeps them when the user opens another page.
function storedActions(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name)) || [];
  } catch {
    return [];
  }
}

function storeActions(name, actions) {
  let kept = actions.slice(-100);
  for (;;) {
    try {
      sessionStorage.setItem(name, JSON.stringify(kept));
      return kept;
    } catch {
      if (!kept.length) return kept;
      kept = kept.slice(1); // the values are too long for the storage of the browser, so the oldest action can't be undone
    }
  }
}

// On the page after an import or a restoration: store the undo of the action, so that the page of the sink also offers it.
function keepUndo(form) {
  const name = `undo ${form.dataset.changes}`;
  const before = storedActions(name);
  const { sentence } = form.dataset;
  storeActions(name, [...before, { address: form.getAttribute("action"), fields: Object.fromEntries(new FormData(form)), sentence }]);
  form.addEventListener("submit", () => storeActions(name, before));
  onUndo(() => form.requestSubmit());
}

function onUndo(undo) {
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select");
    if (event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !typing) {
      event.preventDefault();
      undo();
    }
  });
}

function startGrid(table) {
  const address = table.dataset.changes;
  const body = table.tBodies[0];
  const undoButton = byId("undo");
  const stackName = `undo ${address}`;
  const hidden = () => (table.dataset.hidden || "").split(" ");
  const width = () => Object.keys(FIELDS).filter((label) => !hidden().includes(label)).length;
  const cells = () => Array.from(body.querySelectorAll(EDITABLE)).filter((cell) => !hidden().includes(cell.dataset.label));
  let current = null; // the key and the column of the one cell that Tab can focus

  function nameOf(cell) {
    return { key: cell.parentElement.dataset.key, label: cell.dataset.label };
  }

  function cellOf(name) {
    return name && cells().find((cell) => cell.parentElement.dataset.key === name.key && cell.dataset.label === name.label);
  }

  // The warning before a change of an entry that a pipeline feeds.
  const warningOf = (row) => (row.dataset.fed ? `${row.dataset.fed} ${table.dataset.fed}` : "");

  function prepare() {
    const reachable = cellOf(current) || cells()[0];
    for (const cell of cells()) cell.tabIndex = cell === reachable ? 0 : -1;
  }

  function focusCell(cell) {
    if (!cell) return;
    current = nameOf(cell);
    prepare();
    cell.focus();
  }

  function moved(cell, rows, columns) {
    const all = cells();
    const index = all.indexOf(cell);
    const column = (index % width()) + columns;
    if (column < 0 || column >= width()) return rows === 0 && columns !== 0 && Math.abs(columns) === 1 ? null : cell;
    return all[index + rows * width() + columns] || null;
  }

  const stack = () => storedActions(stackName);

  function keep(actions) {
    const kept = storeActions(stackName, actions);
    undoButton.hidden = kept.length === 0;
    const last = kept[kept.length - 1];
    undoButton.textContent = last ? `Undo: ${last.sentence}` : "Undo";
  }

  function showRow(key, row) {
    const old = Array.from(body.rows).find((one) => one.dataset.key === key);
    if (row) {
      row = document.importNode(row, true);
      rendered.set(row, row.outerHTML);
    }
    if (old && row) old.replaceWith(row);
    else if (old) old.remove();
    else if (row) body.prepend(row);
    document.dispatchEvent(new Event("rows"));
  }

  async function act(fields, sentence) {
    const result = await sendForm(address, fields);
    if (result.problem) return result;
    keep([...stack(), { fields: result.undo, sentence }]);
    showRow(fields.key, result.row);
    say(`${sentence}: saved`);
    return result;
  }

  async function undo() {
    const actions = stack();
    const last = actions.pop();
    if (!last) return;
    undoButton.disabled = true;
    const result = await sendForm(last.address || address, last.fields);
    undoButton.disabled = false;
    if (result.problem) {
      if ([400, 404, 409, 412, 422].includes(result.status)) keep(actions); // a retry can't succeed
      if (result.row && !last.address) showRow(last.fields.key, result.row);
      say(`Not undone (${last.sentence}): ${result.problem}`);
      return;
    }
    keep(actions);
    if (last.address) await readRows();
    else showRow(last.fields.key, result.row);
    say(`Undone: ${last.sentence}${last.address ? `. ${result.sentence}` : ""}`);
  }


  function edit(cell, typed) {
    const row = cell.parentElement;
    if (row.dataset.open && cell.dataset.label === "Value") {
      location.assign(row.dataset.open); // a long value is edited in its form
      return;
    }
    if (cell.querySelector("[data-editing]")) return;
    const value = cell.querySelector(".value");
    const stored = cell.dataset.label === "Value" ? (value ? value.textContent : "") : cell.textContent.trim();
    const isNull = Boolean(cell.querySelector(".nothing")) && cell.textContent.trim() === "null";
    const contents = Array.from(cell.childNodes);
    const editor = made("textarea", { value: typed === undefined ? stored : typed, rows: Math.min(stored.split("\n").length, 12), spellcheck: false });
    editor.dataset.editing = "";
    editor.setAttribute("aria-label", `${cell.dataset.label} of ${row.dataset.key}`);
    const error = made("p", { className: "error", id: "cell-error", hidden: true });
    error.setAttribute("role", "alert");
    const warning = made("p", { className: "notice", id: "cell-fed", textContent: warningOf(row), hidden: !row.dataset.fed });
    editor.setAttribute("aria-describedby", `${warning.id} ${error.id}`);
    let busy = false;
    let present = null; // the row with the values that another user has saved

    function close() {
      if (present) {
        editor.removeAttribute("data-editing");
        showRow(row.dataset.key, present);
      } else {
        cell.replaceChildren(...contents);
      }
    }

    async function commit(rows, columns) {
      if (busy) return;
      const name = nameOf(cell);
      const next = () => {
        const here = cellOf(name);
        focusCell((here && (rows || columns) && moved(here, rows, columns)) || here);
      };
      if (editor.value === stored && !present) {
        close();
        next();
        return;
      }
      busy = true;
      editor.readOnly = true;
      const field = FIELDS[cell.dataset.label];
      const fields = { action: "set", key: name.key, [field]: editor.value, shown: row.dataset.shown };
      const result = await act(fields, `${name.key} = ${editor.value.slice(0, 40)}`);
      busy = false;
      editor.readOnly = false;
      if (!result.problem) {
        next();
        return;
      }
      const beside = Object.entries(result.errors).map(([pointer, detail]) => (pointer === `/${field}` ? detail : `${pointer} ${detail}`));
      error.textContent = beside.length ? beside.join(" ") : result.problem;
      if (result.status === 409 && result.row) {
        present = result.row;
        row.dataset.shown = present.dataset.shown;
        const other = present.querySelector(`td[data-label='${cell.dataset.label}']`).textContent.trim();
        error.textContent += ` It is now “${other}”. Enter replaces it, Escape keeps it.`;
      }
      error.hidden = false;
      editor.setAttribute("aria-invalid", "true");
      editor.focus();
    }

    editor.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      if (event.key === "Escape") {
        event.preventDefault();
        const name = nameOf(cell);
        close();
        focusCell(cellOf(name));
      } else if (event.key === "Enter" && !event.shiftKey) {
        event.preventDefault();
        commit(1, 0);
      } else if (event.key === "Tab") {
        event.preventDefault();
        const back = event.shiftKey ? -1 : 1;
        const index = cells().indexOf(cell) + back;
        const before = index - back;
        commit(Math.floor(index / width()) - Math.floor(before / width()), (index % width()) - (before % width()));
      }
      event.stopPropagation();
    });
    editor.addEventListener("blur", () => {
      if (!busy && error.hidden && editor.isConnected && editor.value === stored) close();
    });
    cell.replaceChildren(editor, warning, error);
    if (isNull && typed === undefined) editor.placeholder = "null";
    editor.focus();
    warning.scrollIntoView({ block: "nearest" });
    editor.setSelectionRange(editor.value.length, editor.value.length);
  }

  let warned = null; // the key of an entry that a pipeline feeds: the warning was shown, so the next Delete deletes the entry

  async function remove(cell) {
    const row = cell.parentElement;
    const { key, shown } = row.dataset;
    const all = cells();
    const next = all[all.indexOf(cell) + width()] || all[all.indexOf(cell) - width()];
    const name = next && nameOf(next);
    const result = await act({ action: "delete", key, shown }, `${key} deleted`);
    if (result.problem) {
      if (result.row) showRow(key, result.row);
      say(`${key} was not deleted: ${result.problem}`);
    } else {
      focusCell(cellOf(name));
    }
  }

  body.addEventListener("keydown", (event) => {
    const cell = event.target.closest(EDITABLE);
    if (!cell || event.target !== cell) return;
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    const { key } = cell.parentElement.dataset;
    const isWarned = warned === key || "protects" in table.dataset; // the service refuses to change a protected entry
    if (event.key !== "Shift") warned = null;
    if (steps[event.key] && plain) {
      event.preventDefault();
      focusCell(moved(cell, ...steps[event.key]));
    } else if ((event.key === "Enter" || event.key === "F2") && plain) {
      event.preventDefault();
      edit(cell);
    } else if (event.key === "Delete" && plain && "deletes" in table.dataset) {
      event.preventDefault();
      if (warningOf(cell.parentElement) && !isWarned) {
        warned = key;
        say(`${warningOf(cell.parentElement)} Press Delete again to delete ${key}.`);
      } else {
        remove(cell);
      }
    } else if (event.key.length === 1 && plain && event.key !== " ") {
      event.preventDefault();
      edit(cell, event.key);
    }
  });
  onUndo(undo);
  let clicked = null; // the cell of the last click: a second click on the same cell edits it
  body.addEventListener("click", (event) => {
    const cell = event.target.closest(EDITABLE);
    if (!cell || event.target.closest("a, textarea") || String(getSelection())) return;
    const name = nameOf(cell);
    if (clicked && clicked.key === name.key && clicked.label === name.label) edit(cell);
    else focusCell(cell);
    clicked = name;
  });
  undoButton.addEventListener("click", undo);
  document.addEventListener("undoable", (event) => keep([...stack(), event.detail]));

  const add = byId("add");
  add.addEventListener("submit", async (event) => {
    event.preventDefault();
    const fields = Object.fromEntries(new FormData(add));
    const result = await act({ ...fields, action: "create" }, `${fields.key} added`);
    for (const input of add.querySelectorAll("input:not([type='hidden'])")) {
      const detail = result.errors[`/${input.name}`] || (result.problem && !Object.keys(result.errors).length && input.name === "key" ? result.problem : "");
      let error = byId(`${input.id}-error`);
      if (!error) {
        error = made("span", { className: "error", id: `${input.id}-error` });
        error.setAttribute("role", "alert");
        input.after(error);
        input.setAttribute("aria-describedby", error.id);
      }
      error.textContent = detail;
      input.setAttribute("aria-invalid", String(Boolean(detail)));
    }
    if (result.problem) {
      say("");
      return;
    }
    byId("new-key").value = "";
    byId("new-value").value = "";
    byId("new-key").focus();
  });

  table.setAttribute("role", "grid");
  table.setAttribute("aria-describedby", "keys");
  document.addEventListener("rows", prepare);
  prepare();
  keep(stack());
  // After a search, the first cell has the focus, so that the next key acts on the result.
  if (new URLSearchParams(location.search).get("search") && document.activeElement === document.body) focusCell(cells()[0]);
}

const grid = document.querySelector("table[data-changes]");
if (grid) startGrid(grid);
const undoForm = document.querySelector("form.undo[data-changes]");
if (undoForm) keepUndo(undoForm);
