// Menus are <details> elements. Only one menu is open; Escape or a click outside closes it. "?" shows the help.
"use strict";

const menus = () => document.querySelectorAll("details.menu[open]");

function closeMenu(menu, focus) {
  menu.open = false;
  if (focus) menu.querySelector("summary").focus();
}

document.addEventListener("click", (event) => {
  for (const menu of menus()) if (!menu.contains(event.target)) closeMenu(menu, false);
});

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, td[tabindex]");
  const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
  const help = byId("help");
  if (event.key === "Escape") {
    for (const menu of menus()) closeMenu(menu, menu.contains(document.activeElement));
  } else if (event.key === "?" && plain && !typing && help) {
    event.preventDefault();
    help.open = !help.open;
    help.querySelector("summary").focus();
  }
}, true);

// When the menu for a new entry opens, its first field gets the focus.
document.addEventListener("toggle", (event) => {
  if (event.target.open && event.target.querySelector(":scope > #add")) byId("new-key").focus();
}, true);

if (byId("help")) byId("help").hidden = false;
