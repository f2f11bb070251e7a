// The columns of the entries: which columns are shown, their widths, and the height of rows. The browser stores the choice.
"use strict";

const LEAST_PIXELS = 64;
const STEP_PIXELS = 16;

function startColumns(table) {
  const menu = byId("columns");
  const heads = Array.from(table.tHead.rows[0].cells);
  const widthsName = `widths ${location.pathname}`;

  function stored(name, otherwise) {
    try {
      return JSON.parse(localStorage.getItem(name)) ?? otherwise;
    } catch {
      return otherwise;
    }
  }

  function keep(name, value) {
    try {
      localStorage.setItem(name, JSON.stringify(value));
    } catch {
      // The storage is full or forbidden: the choice applies only until the page is closed.
    }
  }

  function showView(view) {
    table.dataset.hidden = view.hidden.join(" ");
    table.classList.toggle("compact", view.density === "compact");
    for (const box of menu.querySelectorAll("[type=checkbox]")) box.checked = !view.hidden.includes(box.name);
    for (const button of menu.querySelectorAll("[name=density]")) button.checked = button.value === view.density;
    document.dispatchEvent(new Event("rows"));
  }

  menu.addEventListener("change", () => {
    const hidden = Array.from(menu.querySelectorAll("[type=checkbox]:not(:checked)"), (box) => box.name);
    const density = menu.querySelector("[name=density]:checked").value;
    keep("columns", { hidden, density });
    showView({ hidden, density });
    showWidths(stored(widthsName, {}));
  });

  // Widths follow the content until the user moves a handle. From then on, each column except the last has a stored width.
  const shownHeads = () => heads.filter((head) => !table.dataset.hidden.split(" ").includes(head.dataset.label));
  const sizedHeads = () => shownHeads().slice(0, -1);

  function showWidths(widths) {
    table.classList.toggle("sized", Object.keys(widths).length > 0);
    const sized = sizedHeads();
    for (const head of heads) head.style.width = widths[head.dataset.label] && sized.includes(head) ? `${widths[head.dataset.label]}px` : "";
  }

  function present() {
    return Object.fromEntries(sizedHeads().map((head) => [head.dataset.label, head.offsetWidth]));
  }

  function setWidth(head, pixels) {
    const widths = { ...stored(widthsName, {}), ...present() };
    const spare = Math.max(shownHeads().at(-1).offsetWidth - LEAST_PIXELS, 0); // the last column gets the remaining width
    widths[head.dataset.label] = Math.max(Math.min(Math.round(pixels), head.offsetWidth + spare), LEAST_PIXELS);
    keep(widthsName, widths);
    showWidths(widths);
  }

  for (const head of heads.slice(0, -1)) {
    const handle = Object.assign(document.createElement("button"), { type: "button", className: "handle" });
    handle.setAttribute("aria-label", `Width of ${head.dataset.label}: arrow keys left and right`);
    handle.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      handle.setPointerCapture(event.pointerId);
      const from = event.clientX - head.offsetWidth;
      const move = (moved) => setWidth(head, moved.clientX - from);
      handle.addEventListener("pointermove", move);
      handle.addEventListener("lostpointercapture", () => handle.removeEventListener("pointermove", move), { once: true });
    });
    handle.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -STEP_PIXELS, ArrowRight: STEP_PIXELS }[event.key];
      if (!step) return;
      event.preventDefault();
      setWidth(head, head.offsetWidth + step);
    });
    head.append(handle);
  }
  byId("reset-widths").addEventListener("click", () => {
    keep(widthsName, {});
    showWidths({});
  });

  menu.hidden = false;
  showView({ hidden: [], density: "comfortable", ...stored("columns", {}) });
  showWidths(stored(widthsName, {}));
}

if (byId("columns")) startColumns(document.querySelector("table.entries"));
