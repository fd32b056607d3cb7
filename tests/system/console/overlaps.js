// Returns texts that controls cover, and controls that cover each other.
const isVisible = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
const styles = new Map();
const styleOf = (element) => styles.get(element) ?? styles.set(element, getComputedStyle(element)).get(element);
// The part of a rectangle that the ancestors show.
const clipped = (element, { left, top, right, bottom }) => {
  for (let parent = element; parent && parent !== document.body; parent = parent.parentElement) {
    const style = styleOf(parent);
    if (style.overflow !== "visible" && style.display !== "inline") {
      const box = parent.getBoundingClientRect();
      [left, top, right, bottom] = [Math.max(left, box.left), Math.max(top, box.top), Math.min(right, box.right), Math.min(bottom, box.bottom)];
    }
    if (style.position === "fixed") break;
  }
  return right - left > 2 && bottom - top > 2 ? { element, left, top, right, bottom } : null;
};
const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
const controls = [...document.querySelectorAll("main .b, main button, main input, main select, main textarea, main summary, header a, header button")]
  .filter((one) => isVisible(one) && !one.matches(".vh")).map((one) => clipped(one.parentElement, one.getBoundingClientRect()) && { ...clipped(one.parentElement, one.getBoundingClientRect()), element: one })
  .filter((one) => one);
const texts = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
while (walker.nextNode()) {
  const node = walker.currentNode, parent = node.parentElement;
  if (!node.data.trim() || !isVisible(parent)) continue;
  range.selectNodeContents(node);
  for (const rect of range.getClientRects()) {
    const part = clipped(parent, rect);
    if (part) texts.push({ ...part, node });
  }
}
const short = (element) => element.outerHTML.slice(0, 160), found = [];
for (const control of controls) {
  for (const text of texts) {
    if (meet(control, text) && !control.element.contains(text.node)) found.push(`${short(control.element)} covers ${text.node.data.trim().slice(0, 80)}`);
  }
  for (const other of controls) {
    if (other === control || control.element.contains(other.element) || other.element.contains(control.element)) continue;
    if (meet(control, other)) found.push(`${short(control.element)} covers ${short(other.element)}`);
  }
}
return [...new Set(found)].slice(0, 5);
