// The parts of the pages that need a script: the live overview, and the filter of its rows.
"use strict";

const rows = document.getElementById("rows");
const live = document.getElementById("live");
const pause = document.getElementById("pause");
const find = document.getElementById("find");

function filter() {
  const words = find.value.trim().toLowerCase();
  for (const row of rows.rows) row.hidden = words !== "" && !row.textContent.toLowerCase().includes(words);
  document.getElementById("no-row").hidden = Array.from(rows.rows).some((row) => !row.hidden);
}

// Enter opens the first pipeline that the filter shows. If no pipeline is shown, the text is the name of a file.
function openFound(event) {
  const first = Array.from(rows.rows).find((row) => !row.hidden);
  if (!first) return;
  event.preventDefault();
  location.assign(first.querySelector("a").href);
}

// If no element has the focus, a typed letter is the first letter of the filter.
function findTyped(event) {
  const isLetter = event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.metaKey && !event.altKey;
  if (isLetter && event.target === document.body) find.select();
}

// Unchanged elements are kept, so that the focus and the selection in these elements remain.
function replace(part, made) {
  const focused = document.activeElement;
  const holder = Array.from(part.children).find((one) => one.contains(focused));
  const place = holder ? Array.from(holder.querySelectorAll("a, button")).indexOf(focused) : -1;
  const before = new Map(Array.from(part.children, (one) => [one.id, one]));
  const next = Array.from(made.children, (one) => {
    const old = before.get(one.id);
    return old && old.innerHTML === one.innerHTML && old.className === one.className ? old : one;
  });
  if (next.length !== part.children.length || next.some((one, index) => one !== part.children[index])) {
    part.replaceChildren(...next);
    const again = holder && holder.id && document.getElementById(holder.id);
    const links = again ? again.querySelectorAll("a, button") : [];
    if (links.length && !again.contains(document.activeElement)) {
      links[Math.min(Math.max(place, 0), links.length - 1)].focus({ preventScroll: true });
    }
  }
}

function show(html) {
  const made = document.createElement("template");
  made.innerHTML = html;
  for (const one of made.content.querySelectorAll("[data-part]")) replace(document.getElementById(one.dataset.part), one);
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
  find.form.addEventListener("submit", openFound);
  document.addEventListener("keydown", findTyped);
  follow();
}
