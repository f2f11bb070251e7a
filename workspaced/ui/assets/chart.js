// Extends a chart that the service has drawn: show the values at the pointer or at the keyboard's mark, and zoom into a part.
"use strict";

const LEAST_PIXELS = 6;

function localTime(at, precision) {
  const time = new Date(at);
  const day = `${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  const minute = `${two(time.getHours())}:${two(time.getMinutes())}`;
  const isMidnight = minute === "00:00" && time.getSeconds() === 0;
  if (precision === "month") return `${time.getFullYear()}-${day}`;
  if (precision === "day") return isMidnight ? day : `${day} ${minute}`;
  if (precision === "min") return isMidnight ? day : minute;
  const second = `${minute}:${two(time.getSeconds())}`;
  return precision === "s" ? second : `${second}.${String(time.getMilliseconds()).padStart(3, "0")}`;
}

// Return the readings of a line: milliseconds from the beginning of the chart, height in thousandths or null, and text.
function readingsOf(path) {
  return path.dataset.readings.split("\n").filter(Boolean).map((line) => {
    const [at, height, ...words] = line.split(" ");
    return { at: Number(at), height: height === "-" ? null : Number(height), text: words.join(" ") };
  });
}

// Return the last reading that is not after a time; null before the first reading.
function readingAt(readings, at) {
  let low = 0;
  let high = readings.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (readings[middle].at <= at) low = middle + 1;
    else high = middle;
  }
  return low ? readings[low - 1] : null;
}

function make(name, kind, parent) {
  const element = document.createElement(name);
  element.className = kind;
  if (parent) parent.append(element);
  return element;
}

function follow(figure) {
  const area = figure.querySelector(".area");
  const begin = Number(area.dataset.begin);
  const length = Number(area.dataset.end) - begin;
  const lines = Array.from(area.querySelectorAll("path[data-readings]"), (path) => ({
    key: path.dataset.key, style: path.dataset.style, readings: readingsOf(path),
  }));
  const instants = [...new Set(lines.flatMap((line) => line.readings.map((one) => one.at)))].sort((a, b) => a - b);
  const mark = make("div", "mark", area);
  const part = make("div", "part", area);
  const reading = make("div", "reading", area);
  const cover = make("div", "cover", area);
  let here = null; // the mark, in milliseconds from the beginning of the chart
  let from = null; // the beginning of the selected part, also in milliseconds
  let pointer = null;

  for (const text of area.querySelectorAll("text[data-at]")) {
    text.textContent = localTime(Number(text.dataset.at), text.dataset.precision);
  }
  // The mark is the value of a slider, so that a screen reader announces it.
  const attributes = { role: "slider", "aria-label": "Values of the chart", "aria-describedby": "chart-keys", "aria-valuemin": 0 };
  for (const [name, value] of Object.entries({ ...attributes, "aria-valuemax": length, tabindex: 0 })) cover.setAttribute(name, value);
  figure.querySelector("#chart-keys").hidden = false;

  function show() {
    mark.hidden = here === null;
    reading.hidden = here === null;
    part.hidden = from === null || here === null;
    cover.setAttribute("aria-valuenow", here === null ? 0 : Math.round(here));
    cover.setAttribute("aria-valuetext", "No value is marked");
    if (here === null) return;
    const share = here / length;
    mark.style.left = `${share * 100}%`;
    reading.style.left = share > 0.5 ? "auto" : `${share * 100}%`;
    reading.style.right = share > 0.5 ? `${(1 - share) * 100}%` : "auto";
    if (from !== null) {
      part.style.left = `${(Math.min(from, here) / length) * 100}%`;
      part.style.width = `${(Math.abs(here - from) / length) * 100}%`;
    }
    const at = new Date(begin + here);
    const head = document.createElement("p");
    head.textContent = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${localTime(at, "ms")}`;
    reading.replaceChildren(head, ...lines.map((line) => {
      const row = document.createElement("p");
      if (lines.length > 1) {
        const sample = document.querySelector(`.legend .stroke-${line.style}`);
        if (sample) row.append(sample.closest("svg").cloneNode(true));
        make("bdi", "key", row).textContent = `${line.key} `;
      }
      const found = readingAt(line.readings, here);
      make("bdi", "value", row).textContent = found ? found.text : "not known";
      return row;
    }));
    cover.setAttribute("aria-valuetext", Array.from(reading.children, (row) => row.textContent).join("; "));
  }

  // Return the time of the nearest change if it is only a few pixels away, else the given time.
  function nearest(at) {
    let best = null;
    for (const instant of instants) {
      if (best === null || Math.abs(instant - at) < Math.abs(best - at)) best = instant;
    }
    return best !== null && (Math.abs(best - at) / length) * area.clientWidth < 2 * LEAST_PIXELS ? best : at;
  }

  function timeAt(event) {
    const box = area.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) * length;
  }

  function leave() {
    pointer = null;
    from = null;
    here = null;
    show();
  }

  function zoom(first, last) {
    const text = (at) => new Date(begin + Math.round(at)).toISOString().replace("Z", "");
    const url = new URL(location.href);
    url.searchParams.set("from", text(Math.min(first, last)));
    url.searchParams.set("to", text(Math.max(first, last)));
    load(figure, url.href);
  }

  cover.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    pointer = event.pointerId;
    from = timeAt(event);
    cover.setPointerCapture(pointer);
  });
  cover.addEventListener("pointermove", (event) => {
    here = pointer === null ? nearest(timeAt(event)) : timeAt(event);
    show();
  });
  cover.addEventListener("pointerup", (event) => {
    if (event.pointerId !== pointer) return;
    const [first, last] = [from, timeAt(event)];
    pointer = null;
    from = null;
    if ((Math.abs(last - first) / length) * area.clientWidth >= LEAST_PIXELS) zoom(first, last);
    show();
  });
  cover.addEventListener("pointercancel", leave);
  cover.addEventListener("pointerleave", () => {
    if (pointer === null && document.activeElement !== cover) leave();
  });
  cover.addEventListener("blur", leave);
  cover.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !instants.length) return;
    const now = here === null ? -1 : here;
    const next = {
      ArrowRight: () => instants.find((at) => at > now) ?? instants[instants.length - 1],
      ArrowLeft: () => (here === null ? instants[instants.length - 1] : instants.findLast((at) => at < now) ?? instants[0]),
      Home: () => instants[0],
      End: () => instants[instants.length - 1],
    }[event.key];
    if (next) {
      here = next();
      show();
    } else if (event.key === "Escape" && here !== null) {
      leave();
    } else if (event.key === "Enter" && here !== null) {
      if (from === null) from = here;
      else if (from === here) from = null;
      else zoom(from, here);
      show();
    } else {
      return;
    }
    event.preventDefault();
  });
  for (const link of figure.querySelectorAll(".range a")) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      load(figure, link.href);
    });
  }
  show();
}

// Load the chart of another range from the service. The form of keys and the table of values also depend on the range.
async function load(figure, url, keep = true) {
  let page = null;
  try {
    const response = await fetch(url, { credentials: "same-origin" });
    if (response.ok) page = new DOMParser().parseFromString(await response.text(), "text/html");
  } catch {
    // The service can't be reached: the browser shows this when it opens the page.
  }
  const next = page && page.getElementById("chart");
  if (!next) {
    location.assign(url);
    return;
  }
  const focused = figure.contains(document.activeElement) ? document.activeElement : null;
  const name = focused && focused.textContent.trim();
  for (const selector of ["#chart", "form.keys", "#values"]) {
    const [old, made] = [document.querySelector(selector), page.querySelector(selector)];
    if (old && made) old.replaceWith(document.importNode(made, true));
  }
  if (keep) history.pushState(null, "", url);
  const shown = document.getElementById("chart");
  follow(shown);
  document.dispatchEvent(new Event("rows"));
  if (focused) {
    const same = Array.from(shown.querySelectorAll(".range a")).find((link) => link.textContent.trim() === name);
    (same || shown.querySelector(".cover")).focus({ preventScroll: true });
  }
}

const chart = document.getElementById("chart");
if (chart) follow(chart);
window.addEventListener("popstate", () => {
  const shown = document.getElementById("chart");
  if (shown) load(shown, location.href, false);
});
