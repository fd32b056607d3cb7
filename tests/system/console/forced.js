// Returns what cannot be told from its surroundings once the browser replaces all colors.
const isVisible = (element) => element.checkVisibility({ visibilityProperty: true });
const found = [], sides = ["Top", "Right", "Bottom", "Left"];
const boxes = "main :is(.b, button, select, textarea, input:not([type=hidden], [type=checkbox], [type=radio])), main .note, main .tag";
for (const one of document.querySelectorAll(boxes)) {
  const style = getComputedStyle(one);
  const isFramed = sides.every((side) => parseFloat(style[`border${side}Width`]) > 0 && style[`border${side}Style`] !== "none");
  if (isVisible(one) && !isFramed && !one.closest("[popover]")) found.push(`no border: ${one.outerHTML.slice(0, 160)}`);
}
for (const one of document.querySelectorAll("[aria-current]")) {
  if (isVisible(one) && Number(getComputedStyle(one).fontWeight) < 600) found.push(`not marked: ${one.outerHTML.slice(0, 160)}`);
}
return found.slice(0, 5);
