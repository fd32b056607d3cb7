// Returns short words that do not stand on one line. A tile may be as narrow as its owner wishes, and the two sides of a change
// are values of any length.
const isVisible = (element) => element.checkVisibility({ visibilityProperty: true });
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange(), found = [];
while (walker.nextNode()) {
  const node = walker.currentNode, parent = node.parentElement;
  if (parent.closest("script, style, select, pre, textarea, del, ins, .vh, .tile") || !isVisible(parent)) continue;
  for (const { 0: word, index } of node.data.matchAll(/\S+/gu)) {
    if (!/^[\p{L}\p{N}]{2,16}[.,:;]?$/u.test(word)) continue;
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const lines = new Set([...range.getClientRects()].filter(({ width }) => width > 0).map(({ top }) => Math.round(top)));
    if (lines.size > 1) found.push(`${word} in ${parent.outerHTML.slice(0, 160)}`);
  }
}
return [...new Set(found)].slice(0, 5);
