// What needs a script: live rows, and a filter of them. Everything else is links and forms.
"use strict";

const rows = document.getElementById("rows");
const live = document.getElementById("live");
const pause = document.getElementById("pause");
const find = document.getElementById("find");

function filter() {
  const words = find.value.trim().toLowerCase();
  for (const row of rows.rows) row.hidden = words !== "" && !row.textContent.toLowerCase().includes(words);
}

// Unchanged rows stay the same elements, so that focus and selection in them remain.
function show(html) {
  const focused = document.activeElement && document.activeElement.closest("#rows tr");
  const before = new Map(Array.from(rows.rows, (row) => [row.id, row]));
  const made = document.createElement("tbody");
  made.innerHTML = html;
  const next = Array.from(made.rows, (row) => {
    const old = before.get(row.id);
    return old && old.innerHTML === row.innerHTML ? old : row;
  });
  if (next.length !== rows.rows.length || next.some((row, index) => row !== rows.rows[index])) {
    rows.replaceChildren(...next);
    const again = focused && document.getElementById(focused.id);
    if (again) again.querySelector("a").focus({ preventScroll: true });
  }
  filter();
}

function follow() {
  let source = null;
  let paused = false;

  function open() {
    if (source || paused || document.hidden) return;
    source = new EventSource(rows.dataset.live);
    source.addEventListener("open", () => { live.textContent = "Live"; });
    source.addEventListener("error", () => {
      live.textContent = source && source.readyState === EventSource.CLOSED ? "Not live: reload the page" : "Connecting…";
    });
    source.addEventListener("rows", (event) => show(JSON.parse(event.data)));
  }

  function close() {
    if (source) source.close();
    source = null;
  }

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    if (paused) { close(); live.textContent = "Paused"; } else open();
  });
  document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else open(); });
  open();
}

if (rows) {
  find.addEventListener("input", filter);
  follow();
}
