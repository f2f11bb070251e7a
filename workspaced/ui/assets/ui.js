// Scripts of all pages: live updates and copying of entries, the search field, and parts that wait. Other actions need no script.
"use strict";

const byId = (id) => document.getElementById(id);
const status = byId("live");

function showStatus(sentence) {
  if (status) status.textContent = sentence;
}

// The HTML of each row as the service rendered it, because other scripts change the rows later.
const rendered = new WeakMap();
for (const row of document.querySelectorAll("#entries tr")) rendered.set(row, row.outerHTML);

// Show the rows. Unchanged rows and the row that is being edited keep their elements, so that focus and selection remain.
function showRows(html) {
  const body = byId("entries");
  const focused = document.activeElement && document.activeElement.closest("#entries tr");
  const before = new Map(Array.from(body.rows, (row) => [row.id, row]));
  const made = document.createElement("tbody");
  made.innerHTML = html;
  let changed = 0;
  const rows = Array.from(made.rows, (row) => {
    const old = before.get(row.id);
    if (old && (rendered.get(old) === row.outerHTML || old.querySelector("[data-editing]"))) return old;
    rendered.set(row, row.outerHTML);
    changed += 1;
    row.classList.add("fresh");
    return row;
  });
  const same = rows.length === body.rows.length && rows.every((row, index) => row === body.rows[index]);
  if (!same) {
    body.replaceChildren(...rows);
    document.dispatchEvent(new Event("rows"));
    const again = focused && byId(focused.id);
    const place = again && (again.querySelector("[tabindex='0']") || again.querySelector("a"));
    if (place && document.activeElement === document.body) place.focus({ preventScroll: true });
  }
  return changed;
}

function follow(address) {
  const pause = byId("pause");
  let source = null;
  let paused = false;
  let ended = false;

  function open() {
    if (source || paused || ended || document.hidden) return;
    source = new EventSource(address);
    source.addEventListener("open", () => showStatus("Live"));
    source.addEventListener("error", () => {
      // The browser reconnects unless the service refused the stream.
      showStatus(source && source.readyState === EventSource.CLOSED ? "Not live: reload to see what is new" : "Connecting…");
    });
    source.addEventListener("ended", (event) => {
      ended = true;
      close();
      pause.hidden = true;
      showStatus(JSON.parse(event.data).sentence);
    });
    source.addEventListener("entries", (event) => {
      const update = JSON.parse(event.data);
      // The next stream begins with the version that this page has.
      const next = new URL(address, location.href);
      next.searchParams.set("since", event.lastEventId);
      address = next.href;
      const changed = showRows(update.rows);
      byId("pager").innerHTML = update.pager;
      const at = new Date().toISOString().slice(11, 19);
      showStatus(changed ? `Live · ${changed} ${changed === 1 ? "entry" : "entries"} new or changed at ${at} UTC` : "Live");
    });
  }

  function close() {
    if (source) source.close();
    source = null;
  }

  // A browser opens only a few connections to a service, so a hidden page closes its stream.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Resume updates" : "Pause updates";
    if (paused) {
      close();
      showStatus("Paused");
    } else {
      open();
    }
  });
  open();
}

// Copy a text. The clipboard API exists only over https and on localhost; elsewhere the selection of a hidden field is copied.
async function toClipboard(text) {
  if (navigator.clipboard && window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "hidden";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("refused");
}

const copy = byId("copy");
if (copy) {
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    try {
      const response = await fetch(copy.dataset.from, { credentials: "same-origin" });
      if (!response.ok) throw new Error(String(response.status));
      const text = await response.text();
      await toClipboard(text);
      showStatus("Copied the entries of this page");
    } catch {
      showStatus("Not copied. Download the CSV instead.");
    }
    copy.focus();
  });
}

// "/" focuses the search field. If nothing has the focus, any other letter also focuses the field, and begins the text.
const search = byId("search");
document.addEventListener("keydown", (event) => {
  const isLetter = event.key.length === 1 && !" ?".includes(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey;
  if (!search || !isLetter || event.target.closest("input, textarea, select, td[tabindex]")) return;
  if (event.key === "/") event.preventDefault();
  else if (event.target !== document.body) return;
  search.focus();
  search.select();
});

// A secret is shown to be copied, so focus selects the whole text.
for (const secret of document.querySelectorAll("input[readonly]")) {
  secret.addEventListener("focus", () => secret.select());
  if (document.activeElement === secret) secret.select();
}

// Reload a part of the page until it no longer waits for a worker of the service. Return a function that reloads the part now.
// Unchanged elements are kept, so that focus and selection remain.
function refresh(part) {
  const htmlOf = (parent) => Array.from(parent.children, (one) => one.outerHTML);
  let before = htmlOf(part); // as the service rendered it, because other scripts change elements later
  let pause = 500;
  let timer = 0;

  function show(next) {
    const after = htmlOf(next);
    const focused = part.contains(document.activeElement) ? document.activeElement.outerHTML : null;
    if (after.length === before.length) {
      Array.from(next.children).forEach((made, index) => {
        if (after[index] === before[index]) return;
        if (part.children[index].open) made.open = true;
        part.children[index].replaceWith(document.importNode(made, true));
      });
    } else {
      part.replaceChildren(...Array.from(next.children, (made) => document.importNode(made, true)));
    }
    before = after;
    if (focused && !part.contains(document.activeElement)) {
      const again = Array.from(part.querySelectorAll("a, button, summary, input, select, [tabindex]"));
      (again.find((one) => one.outerHTML === focused) || part).focus({ preventScroll: true });
    }
    document.dispatchEvent(new Event("rows"));
  }

  async function look() {
    clearTimeout(timer);
    if (!document.hidden) {
      try {
        const response = await fetch(location.href, { credentials: "same-origin" });
        const page = response.ok && new DOMParser().parseFromString(await response.text(), "text/html");
        const next = page && page.getElementById(part.id);
        if (page && !next) return; // the response is another page, because the user has signed out
        if (next) {
          show(next);
          if (!("waits" in next.dataset)) return;
        }
      } catch {
        // The service can't be reached; the next request may succeed.
      }
    }
    pause = Math.min(pause * 1.5, 15_000);
    clearTimeout(timer);
    timer = setTimeout(look, pause);
  }

  if ("waits" in part.dataset) timer = setTimeout(look, pause);
  return () => {
    pause = 500;
    return look();
  };
}

// If a search has found nothing in a part of the entries, continue the search until it finds something or ends.
async function searchOn() {
  for (let link; (link = document.querySelector("a[data-goes-on]"));) {
    try {
      const response = await fetch(link.href, { credentials: "same-origin" });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      for (const part of document.querySelectorAll("#live, #copy")) part.dataset.from = page.getElementById(part.id).dataset.from;
      if (byId("entries")) showRows(page.getElementById("entries").innerHTML);
      for (const part of document.querySelectorAll("#pager, #found")) part.innerHTML = page.getElementById(part.id).innerHTML;
      history.replaceState(null, "", link.href);
    } catch {
      return; // The service can't be reached, or the user has signed out. A click on the link shows the reason.
    }
  }
}

const readAgain = new Map(Array.from(document.querySelectorAll("[data-waits], #files"), (part) => [part.id, refresh(part)]));
searchOn().then(() => {
  if (status && window.EventSource) follow(status.dataset.from);
});
