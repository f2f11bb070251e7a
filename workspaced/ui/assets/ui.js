// What the pages can't do without a script: keep a list of entries up to date, and copy it. Everything else is links and forms.
"use strict";

const byId = (id) => document.getElementById(id);
const status = byId("live");

function say(sentence) {
  if (status) status.textContent = sentence;
}

// Rows that did not change stay the very same elements, so that what is focused or selected in them stays so.
function showRows(html) {
  const body = byId("entries");
  const focused = document.activeElement && document.activeElement.closest("#entries tr");
  const before = new Map(Array.from(body.rows, (row) => [row.id, row]));
  const made = document.createElement("tbody");
  made.innerHTML = html;
  let changed = 0;
  const rows = Array.from(made.rows, (row) => {
    const old = before.get(row.id);
    if (old) old.removeAttribute("class"); // as the service renders it
    if (old && old.isEqualNode(row)) return old;
    changed += 1;
    row.classList.add("fresh");
    return row;
  });
  const same = rows.length === body.rows.length && rows.every((row, index) => row === body.rows[index]);
  if (!same) {
    body.replaceChildren(...rows);
    const again = focused && byId(focused.id);
    if (again && again.querySelector("a")) again.querySelector("a").focus({ preventScroll: true });
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
    source.addEventListener("open", () => say("Live"));
    source.addEventListener("error", () => {
      // The browser comes back by itself unless the service said no.
      say(source && source.readyState === EventSource.CLOSED ? "Not live: reload to see what is new" : "Connecting…");
    });
    source.addEventListener("ended", (event) => {
      ended = true;
      close();
      pause.hidden = true;
      say(JSON.parse(event.data).sentence);
    });
    source.addEventListener("entries", (event) => {
      const news = JSON.parse(event.data);
      // The next stream begins with what this page has by then.
      const next = new URL(address, location.href);
      next.searchParams.set("since", event.lastEventId);
      address = next.href;
      const changed = showRows(news.rows);
      byId("pager").innerHTML = news.pager;
      const at = new Date().toISOString().slice(11, 19);
      say(changed ? `Live · ${changed} ${changed === 1 ? "entry" : "entries"} new or changed at ${at} UTC` : "Live");
    });
  }

  function close() {
    if (source) source.close();
    source = null;
  }

  // A browser keeps only a few connections to a service: a page that nobody sees gives its own back.
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
      say("Paused");
    } else {
      open();
    }
  });
  open();
}

// The clipboard proper is there over https and on this machine only; elsewhere a selection is copied as by hand.
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
      const answer = await fetch(copy.dataset.from, { credentials: "same-origin" });
      if (!answer.ok) throw new Error(String(answer.status));
      const text = await answer.text();
      await toClipboard(text);
      say("Copied the entries of this page");
    } catch {
      say("Not copied. Download the CSV instead.");
    }
    copy.focus();
  });
}

if (status && window.EventSource) follow(status.dataset.from);
