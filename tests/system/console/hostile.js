// Returns what is wrong on a page with hostile texts, and which of the texts it shows.
const wrong = [];
if (ran.length) wrong.push(`a script ran: ${ran}`);
for (const element of document.querySelectorAll("*")) {
  if (element.matches("x-hacked, img, iframe, object, embed, base, script:not([src]), [autofocus][onfocus]")) wrong.push(element.outerHTML);
  for (const { name, value } of element.attributes) {
    if (name.startsWith("on")) wrong.push(`${element.tagName} ${name}=${value}`);
    const isLink = ["href", "src", "action", "formaction", "data-href"].includes(name);
    if (isLink && /^\s*(javascript|vbscript|data:text)/i.test(value)) wrong.push(`${element.tagName} ${name}=${value}`);
  }
}
if (document.documentElement.textContent.includes("62615533")) wrong.push("a template was evaluated");
const isVisible = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
const shown = [document.title];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const { data, parentElement } = walker.currentNode;
  if (!isVisible(parentElement)) continue;
  shown.push(data);
  // A text that turns the direction must not turn what stands beside it.
  if (data.includes("\u202e") && !parentElement.closest("bdi, [dir]")) wrong.push(`not isolated: ${parentElement.outerHTML}`);
}
for (const field of document.querySelectorAll("input:not([type=hidden]), textarea, select")) {
  if (isVisible(field)) shown.push(field.matches("select") ? field.selectedOptions[0]?.text ?? "" : field.value);
}
const plain = (text) => text.replace(/\s+/g, " ").trim();
// Displayed JSON has no character that turns the direction or breaks a line.
const escaped = (one) => `\\u${one.codePointAt(0).toString(16)}`;
const asJson = (text) => JSON.stringify(text).slice(1, -1).replace(/[\u2028\u202e]/g, escaped);
const all = shown.map(plain).join("\n");
return [wrong, texts.flatMap((text, at) => [text, asJson(text)].some((text) => all.includes(plain(text))) ? [at] : [])];
