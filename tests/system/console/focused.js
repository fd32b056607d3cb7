// Returns the controls of the page that are hidden behind the header while they have the focus.
const found = [], header = document.querySelector("header.top");
const controls = [...document.querySelectorAll("main :is(a[href], button, input, select, textarea, summary, [tabindex='0'])")];
for (const control of controls.reverse()) {
  if (control.disabled || !control.checkVisibility({ visibilityProperty: true }) || control.closest("[popover]:not(:popover-open)")) continue;
  control.focus({ focusVisible: true });
  if (document.activeElement !== control) continue;
  const box = control.getBoundingClientRect(), edge = header?.getBoundingClientRect().bottom ?? 0;
  const isShort = box.height < innerHeight - edge;
  if ((isShort ? box.top < edge - 4 : box.bottom < edge + 20) || box.top > innerHeight - 1) found.push(`${control.outerHTML.slice(0, 160)} at ${box.top} below ${edge}`);
}
document.activeElement.blur();
scrollTo(0, 0);
return found.slice(0, 5);
