"""Scripts that find what makes a page hard to use; tests run them in a browser."""

from __future__ import annotations

# The contrast of every text with its background, by WCAG 2.2; large text is 24 px, or 18.66 px and bold.
TOO_FAINT = """
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
const rgba = (colour) => {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  return Array.from(canvas.getImageData(0, 0, 1, 1).data);
};
const light = (rgb) => {
  const [r, g, b] = rgb.map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = rgba(getComputedStyle(at).backgroundColor);
    if (colour[3] === 255) return colour.slice(0, 3);
  }
  throw new Error("nothing is behind it");
};
const faint = [];
let looked = 0;
for (const element of document.querySelectorAll("body *")) {
  const own = Array.from(element.childNodes).some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!own || !element.checkVisibility() || element.closest(".hidden, .skip")) continue;
  looked += 1;
  const style = getComputedStyle(element);
  const [a, b] = [light(rgba(style.color).slice(0, 3)), light(behind(element))].sort((x, y) => y - x);
  const size = parseFloat(style.fontSize);
  const wanted = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight) >= 700) ? 3 : 4.5;
  if ((a + 0.05) / (b + 0.05) < wanted) faint.push(element.textContent.trim().slice(0, 40));
}
return [looked, faint];
"""

# The controls without a name.
NAMELESS_CONTROLS = """
return Array.from(document.querySelectorAll("a, button, input:not([type=hidden], [hidden]), select")).filter((e) =>
  !(e.innerText || e.textContent).trim() && !e.getAttribute("aria-label") && !(e.labels && e.labels.length))
  .map((e) => e.outerHTML);
"""
