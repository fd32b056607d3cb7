// Improves pages that work without it. Nothing here decides who may do what.
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const on = (type, selector, act) => document.addEventListener(type, (event) => {
  const element = event.target.closest?.(selector);
  if (element) act(element, event);
});
// What a screen reader says. What everybody has to know is visible too, until something else is said.
const say = (text, isVisible = false) => {
  const element = document.getElementById("say");
  element.textContent = text;
  element.className = isVisible ? "toast" : "vh";
};

// A button copies the text of the element that it names, or of the one before it.
on("click", "[data-copy]", async (button) => {
  const source = button.dataset.copy ? document.getElementById(button.dataset.copy) : button.previousElementSibling;
  try {
    await navigator.clipboard.writeText(source.textContent.trim());
  } catch {
    // Over plain HTTP under a name, browsers give no access to the clipboard.
    getSelection().selectAllChildren(source);
    say("The text is selected. Press Ctrl-C to copy it.", true);
    return;
  }
  const icon = button.querySelector("use"), before = icon.getAttribute("href");
  icon.setAttribute("href", before.replace("#copy", "#check"));
  say("Copied");
  setTimeout(() => icon.setAttribute("href", before), 1500);
});

// One menu serves all rows of a list. Without scripts, the pages that the rows lead to offer the same actions.
const offerMenus = () => all("td[data-menu]:empty").forEach((cell) => {
  const link = cell.parentElement.querySelector("a"), button = document.createElement("button");
  button.className = "b bare";
  button.type = "button";
  button.textContent = "…";
  button.ariaLabel = `More for ${link.textContent}`;
  button.setAttribute("popovertarget", "row-menu");
  Object.assign(button.dataset, { menu: cell.dataset.menu, id: link.pathname.split("/").at(-2) });
  cell.append(button);
});
offerMenus();
let opener;
on("click", "[popovertarget]", (button) => {
  const menu = button.popoverTargetElement, before = opener;
  opener = button;
  if (!button.dataset.menu) return;
  if (before !== button && menu.matches(":popover-open")) menu.hidePopover();
  for (const item of all("[data-for]", menu)) {
    const isOffered = item.dataset.for.split(" ").includes(button.dataset.menu);
    item.parentElement.hidden = !isOffered;
    if (item.dataset.href) { item.href = item.dataset.href.replace("ID", button.dataset.id); continue; }
    item.type = isOffered ? "submit" : "button";
    item.name = isOffered ? "only" : "";
    item.value = item.dataset.value.replace("ID", button.dataset.id);
  }
});

// The palette lists the links of the navigation, of the menus and of the list on the page, and filters them. Enter without a
// choice searches the dashboards.
const palette = document.getElementById("palette");
if (palette) {
  const field = palette.querySelector("input"), list = palette.querySelector("ul");
  const options = () => all("[role=option]:not([hidden])", list);
  const chosen = () => list.querySelector("[aria-selected=true]");
  const choose = (option) => {
    chosen()?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    if (option) field.setAttribute("aria-activedescendant", option.id);
    else field.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  };
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const option of all("[role=option]", list)) {
      option.hidden = !words.every((word) => option.textContent.toLowerCase().includes(word));
    }
    choose(options()[0]);
  };
  const option = (part, link, at) => {
    const [item, name, kind] = ["li", "bdi", "span"].map((tag) => document.createElement(tag));
    const icon = (part.dataset.icon ? document.querySelector("[data-palette] svg") : link.querySelector("svg")).cloneNode(true);
    if (part.dataset.icon) icon.firstElementChild.setAttribute("href", part.dataset.icon);
    name.textContent = link.textContent;
    kind.textContent = part.dataset.kind;
    kind.className = "kind";
    item.role = "option";
    item.ariaSelected = "false";
    item.id = `target-${at}`;
    item.dataset.href = link.getAttribute("href");
    item.append(icon, name, kind);
    return item;
  };
  const fill = () => {
    const parts = [...all("[data-kind]:not(main *)"), ...all("main [data-kind]")];
    const links = parts.flatMap((part) => all("nav li a, a:has(> bdi)", part).map((link) => [part, link]));
    list.replaceChildren(...links.map(([part, link], at) => option(part, link, at)));
  };
  const open = () => { fill(); field.value = ""; palette.showModal(); filter(); };
  on("click", "[data-palette]", (_, event) => { event.preventDefault(); open(); });
  on("click", "#palette [role=option]", (option) => location.assign(option.dataset.href));
  field.addEventListener("input", filter);
  field.form.addEventListener("submit", (event) => {
    if (!chosen()) return;
    event.preventDefault();
    location.assign(chosen().dataset.href);
  });
  document.addEventListener("keydown", (event) => {
    if ((event.metaKey || event.ctrlKey) && event.key === "k") { event.preventDefault(); open(); }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!palette.open || !step) return;
    event.preventDefault();
    const shown = options(), at = shown.indexOf(chosen());
    choose(shown[(at + step + shown.length) % shown.length]);
  });
}

// The current entry of the column is in sight.
const column = document.getElementById("nav"), entry = column?.querySelector("[aria-current]");
if (entry && entry.getBoundingClientRect().bottom > column.getBoundingClientRect().bottom) {
  column.scrollTop += entry.getBoundingClientRect().bottom - column.getBoundingClientRect().bottom + 48;
}

// The code of a sign-in link moves from the fragment into the form. It then leaves the history.
const link = document.querySelector("form[data-code-from-fragment]");
if (link && location.hash.length > 1) {
  link.elements.code.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  link.requestSubmit();
}

// A form that is answered in place: the new content replaces the old, and what is equal stays as it is. The form may name the
// part of the page that it replaces, so that what is typed in other parts stays.
const policy = globalThis.trustedTypes?.createPolicy("steward", { createHTML: (html) => html })
  ?? { createHTML: (html) => html };
on("submit", "form[data-in-place]", async (form, event) => {
  // A field of the form may be named like a property of forms.
  const isGet = form.getAttribute("method") === "get", part = form.dataset.inPlace;
  // The new content would replace what is typed in other forms. The browser leaves the page instead, and asks first.
  if (isGet && !part && hasUnsaved()) return;
  event.preventDefault();
  const fields = new URLSearchParams(new FormData(form, event.submitter)), url = new URL(form.getAttribute("action"), location.href);
  if (isGet) url.search = fields;
  const find = (root) => part ? root.getElementById(part) : root.querySelector("main");
  form.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(url, isGet ? {} : { method: "POST", body: fields });
    const page = new DOMParser().parseFromString(policy.createHTML(await answer.text()), "text/html");
    const content = find(page);
    // Another page, such as that of the sign-in, has another frame. A form that is sent by itself does not leave the page.
    if (!page.getElementById("nav") || !content) {
      if (!event.submitter) delete form.dataset.repeat;
      else if (answer.redirected || isGet) location.assign(answer.url);
      else say(page.querySelector("main")?.textContent.trim() ?? "The request failed.", true);
      return;
    }
    Idiomorph.morph(find(document), content, { morphStyle: "outerHTML" });
    if (isGet && answer.url !== location.href) { history.pushState(null, "", answer.url); shown = answer.url; }
    showAges();
    offerMenus();
    if (event.submitter) say(document.title);
  } catch {
    if (event.submitter) say(UNREACHABLE, true);
  } finally {
    form.removeAttribute("aria-busy");
  }
});

// Sends a form in the background. Returns the page that answers it, or nothing if `element` has asked again since.
const turns = new WeakMap();
const answerTo = async (element, form, fields) => {
  const turn = (turns.get(element) ?? 0) + 1;
  turns.set(element, turn);
  const answer = await fetch(form.getAttribute("action"), { method: "POST", body: new URLSearchParams(fields) });
  const page = new DOMParser().parseFromString(policy.createHTML(await answer.text()), "text/html");
  return turns.get(element) === turn ? page : null;
};
const UNREACHABLE = "The service cannot be reached. Try again.";

// Fills an element with the command of a form, or with the reason why there is none.
const showCommand = async (result, form, submitter) => {
  const fields = new FormData(form, submitter);
  fields.set("_show", "command");
  const page = await answerTo(result, form, fields);
  if (!page) return false;
  const error = () => page.querySelector("main .error, main [role=alert]") ?? page.querySelector("h1");
  result.replaceChildren(page.getElementById("commands") ?? error());
  result.firstElementChild.removeAttribute("id");
  return true;
};

// The command of a form and the preview of a text follow what is typed. The server renders them.
const showPart = async (details) => {
  const form = details.closest("form"), button = details.querySelector("[name=_show]");
  try {
    if (button.value === "command") { await showCommand(details.querySelector("[data-result]"), form, button); return; }
    const page = await answerTo(details, form, new FormData(form, button));
    const found = page?.getElementById(form.getAttribute("id"))?.querySelector(`details[data-shown=${details.dataset.shown}]`);
    if (found) Idiomorph.morph(details, found, { morphStyle: "outerHTML" });
    else if (page) form.requestSubmit(button);
  } catch {
    say(UNREACHABLE, true);
  }
};
on("click", "[name=_show]", (button, event) => { event.preventDefault(); showPart(button.closest("details")); });
document.addEventListener("toggle", ({ target }) => {
  if (target.matches?.("details[data-shown]") && target.open && !target.querySelector("[data-result]")?.hasChildNodes()) showPart(target);
}, true);
document.addEventListener("change", ({ target }) => {
  if (target.form) all("details[data-shown][open]", target.form).forEach(showPart);
});

// Buttons show their command before they act, if the user has switched that on in this tab.
if (document.querySelector(".shell")) {
  document.getElementById("main").insertAdjacentHTML("afterend", policy.createHTML(`<footer class="commands">
<label class="check"><input type="checkbox">Buttons show their command</label><p role="status"></p>
<label class="check"><input type="checkbox" id="exact">Exact times</label></footer>
<dialog class="commands" aria-labelledby="commands-title"><form method="dialog" class="form"><h2 id="commands-title">As a command</h2>
<div data-result></div><div class="bar"><button class="b go" value="send">Do it</button><button class="b">Close</button></div></form></dialog>`));
  const first = document.querySelector("footer.commands input"), dialog = document.querySelector("dialog.commands");
  const KEPT = "steward-commands-first";
  let isConfirmed = false;
  const tell = () => {
    const text = first.checked ? "Buttons show their command first. Nothing changes until you choose Do it." : "";
    document.querySelector("footer.commands [role=status]").textContent = text;
  };
  first.checked = sessionStorage.getItem(KEPT) !== null;
  tell();
  first.addEventListener("change", () => {
    if (first.checked) sessionStorage.setItem(KEPT, "");
    else sessionStorage.removeItem(KEPT);
    tell();
  });
  document.addEventListener("submit", async (event) => {
    const { target: form, submitter } = event;
    const isAction = form.getAttribute("method") === "post" && form.getAttribute("action") !== "/console/sign_out/";
    if (!first.checked || isConfirmed || leaving === form || !isAction) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    try {
      if (!await showCommand(dialog.querySelector("[data-result]"), form, submitter)) return;
    } catch {
      say(UNREACHABLE, true);
      return;
    }
    dialog.returnValue = "";
    dialog.onclose = () => {
      (submitter?.closest("[popover]") ? opener : submitter)?.focus();
      if (dialog.returnValue !== "send") return;
      isConfirmed = true;
      form.requestSubmit(submitter);
      isConfirmed = false;
    };
    dialog.showModal();
  }, true);
}

// A button that only shows something: its answer replaces a part of the page. A live one follows what is typed.
const replacePart = async (button) => {
  try {
    const page = await answerTo(button, button.form, new FormData(button.form, button));
    if (!page) return;
    const part = document.getElementById(button.dataset.part), found = page.getElementById(part.id);
    if (found) Idiomorph.morph(part, found, { morphStyle: "outerHTML" });
    else button.form.requestSubmit(button);
  } catch {
    say(UNREACHABLE, true);
  }
};
on("click", "[data-part]", (button, event) => { event.preventDefault(); replacePart(button); });
document.addEventListener("change", ({ target }) => {
  all("[data-part][data-live]").filter((button) => button.form === target.form).forEach(replacePart);
});

// Fields that differ from what is stored are marked. The server marks those that were sent.
const initial = (input) => input.options
  ? (all("option", input).find((option) => option.defaultSelected) ?? input.options[0])?.value
  : input.defaultValue;
const isTouched = (input) => input.type === "checkbox" ? input.checked !== input.defaultChecked
  : input.value !== (input.matches("input") ? initial(input).replace(/[\r\n]/g, "") : initial(input));
document.addEventListener("input", ({ target }) => {
  const field = target.closest("form[data-change] .field");
  if (!field) return;
  field.dataset.sent ??= "changed" in field.dataset;
  const isChanged = field.dataset.sent === "true" || all("input, select, textarea", field).some(isTouched);
  field.toggleAttribute("data-changed", isChanged);
});

// A search shows only the matching fields of a form, with their headings.
for (const bar of all("[data-filter]").filter((bar) => document.getElementById(bar.dataset.filter))) {
  bar.hidden = false;
  bar.addEventListener("input", ({ target }) => {
    const words = target.value.toLowerCase().split(/\s+/);
    let heading, count = 0;
    for (const part of all("h2, .field", document.getElementById(bar.dataset.filter))) {
      if (part.matches("h2")) { heading = part; heading.hidden = true; continue; }
      const names = all("[name]", part).map((one) => one.name).join(" ");
      const text = `${heading?.textContent ?? ""} ${part.textContent} ${names}`.toLowerCase();
      part.hidden = !words.every((word) => text.includes(word));
      if (part.hidden) continue;
      count += 1;
      if (heading) heading.hidden = false;
    }
    say(count === 1 ? "1 field matches" : `${count} fields match`);
  });
}

// The box above a list selects all of its rows.
for (const label of all("[data-select-all]")) {
  label.hidden = false;
  label.querySelector("input").addEventListener("change", ({ target }) => {
    // A field of the form may be named `id`, so that the property is not the attribute.
    all(`input.pick[form=${target.form.getAttribute("id")}]`).forEach((box) => { box.checked = target.checked; });
  });
}

// Tiles are moved and resized by the mouse or by the keyboard. The numbers of the form follow, and the form saves them.
// After each step tiles move up as far as there is room, and the moved tile goes first.
const arranged = document.querySelector("[data-arrange]");
if (arranged) {
  const form = document.getElementById(arranged.dataset.arrange), keys = ["x", "y", "w", "h"];
  const field = (tile, key) => form.elements[`${key}-${tile.id}`];
  const tiles = all("[data-tile]", arranged).map((element) => ({ element, id: element.dataset.tile }));
  const tileOf = (node) => tiles.find(({ element }) => element.contains(node));
  const places = () => tiles.map(({ x, y, w, h }) => ({ x, y, w, h }));
  const read = () => tiles.forEach((tile) => keys.forEach((key, at) => { tile[key] = Number(field(tile, key).value) - (at < 2 ? 1 : 0) || 0; }));
  const overlap = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
  const EDGE = 72, SPEED = 8;
  let held = null, before = [];
  const settle = (first) => {
    const others = tiles.filter((tile) => tile !== first).sort((a, b) => a.y - b.y || a.x - b.x), done = first ? [first] : [];
    for (const tile of others) {
      while (tile.y > 0 && !done.some((other) => overlap({ ...tile, y: tile.y - 1 }, other))) tile.y--;
      while (done.some((other) => overlap(tile, other))) tile.y++;
      done.push(tile);
    }
    for (const tile of tiles) {
      tile.element.style.gridArea = `${tile.y + 1} / ${tile.x + 1} / span ${tile.h} / span ${tile.w}`;
      keys.forEach((key, at) => { field(tile, key).value = tile[key] + (at < 2 ? 1 : 0); });
    }
  };
  const put = (tile, x, y, w, h) => {
    tile.w = Math.min(12, Math.max(1, w));
    tile.h = Math.min(50, Math.max(1, h));
    tile.x = Math.min(12 - tile.w, Math.max(0, x));
    tile.y = Math.max(0, y);
    settle(tile);
  };
  const tell = (tile) => {
    say(`Column ${tile.x + 1}, row ${tile.y + 1}, ${tile.w} wide, ${tile.h} high`);
  };
  // A tile that is moved by keys stays on the screen, or at least its handle.
  const follow = (tile) => {
    for (const part of [tile.element, tile.element.querySelector(".handle")]) part.scrollIntoView({ block: "nearest" });
  };
  const lift = (tile) => { held = tile; before = places(); tile.element.classList.add("held"); };
  const drop = () => { held?.element.classList.remove("held"); held = null; settle(); };
  const cancel = () => { tiles.forEach((tile, at) => Object.assign(tile, before[at])); drop(); say("Put back"); };
  read();
  all("[data-script]").forEach((element) => { element.hidden = false; });
  form.addEventListener("change", () => { read(); settle(); });
  arranged.addEventListener("keydown", (event) => {
    const tile = event.target.closest(".grip") && tileOf(event.target);
    if (!tile) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (held) { drop(); say("Put down. Save to keep it."); } else { lift(tile); say("Lifted"); }
    }
    if (!held) return;
    if (event.key === "Escape") cancel();
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    if (event.shiftKey) put(tile, tile.x, tile.y, tile.w + step[0], tile.h + step[1]);
    else put(tile, tile.x + step[0], tile.y + step[1], tile.w, tile.h);
    tell(tile);
    follow(tile);
  });
  arranged.addEventListener("focusout", (event) => { if (held && held === tileOf(event.target) && event.target.closest(".grip")) drop(); });
  arranged.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest(".grip, .corner"), tile = handle && tileOf(handle);
    // A second finger moves nothing. A tile that keys have lifted is put down first.
    if (!tile || event.button || !event.isPrimary) return;
    if (held) drop();
    const isCorner = handle.matches(".corner"), start = { ...tile }, from = { x: event.clientX, y: event.clientY + scrollY };
    const style = getComputedStyle(arranged), gap = parseFloat(style.columnGap) || 0;
    const column = (arranged.clientWidth + gap) / 12, row = parseFloat(style.gridAutoRows) + gap;
    event.preventDefault();
    lift(tile);
    handle.setPointerCapture(event.pointerId);
    let pointer = event, hasMoved = false;
    const place = () => {
      const dx = Math.round((pointer.clientX - from.x) / column), dy = Math.round((pointer.clientY + scrollY - from.y) / row);
      if (isCorner) put(tile, start.x, start.y, start.w + dx, start.h + dy);
      else put(tile, start.x + dx, start.y + dy, start.w, start.h);
      tell(tile);
    };
    const move = (event) => { pointer = event; hasMoved = true; place(); };
    // Near the edges of the screen the page follows the pointer.
    const scroll = () => {
      if (held !== tile) return;
      const by = pointer.clientY < EDGE ? -SPEED : pointer.clientY > innerHeight - EDGE / 2 ? SPEED : 0;
      if (hasMoved && by !== 0) { scrollBy(0, by); place(); }
      requestAnimationFrame(scroll);
    };
    requestAnimationFrame(scroll);
    const end = (finish) => () => { handle.removeEventListener("pointermove", move); if (held) finish(); };
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", end(drop), { once: true });
    handle.addEventListener("pointercancel", end(cancel), { once: true });
  });
}

// A form is sent once, even if its button is pressed twice. The browser enables it again when the page is shown again. A
// form leaves the page only if the service answers, so that what is typed stays.
let leaving = null, sent = null;
document.addEventListener("submit", async (event) => {
  const { target: form, submitter } = event, buttons = () => [...form.elements].filter((one) => one.matches("button:not([type=button])"));
  if (event.defaultPrevented || form.method !== "post") return;
  if (leaving === form) {
    sent = form;
    // If another form has changes, the browser asks. The buttons still work for those who then stay.
    if (!hasUnsaved()) setTimeout(() => buttons().forEach((button) => { button.disabled = true; }));
    return;
  }
  event.preventDefault();
  if (form.matches("[aria-busy]")) return;
  form.setAttribute("aria-busy", "true");
  try {
    await fetch(document.querySelector("link[rel=stylesheet]").href, { method: "HEAD", cache: "no-store" });
    leaving = form;
    form.requestSubmit(submitter);
  } catch {
    say("The service cannot be reached. What you typed is still here. Try again.", true);
  } finally {
    leaving = null;
    form.removeAttribute("aria-busy");
  }
});
addEventListener("pageshow", ({ persisted }) => {
  if (!persisted) return;
  sent = null;
  all("form[method=post] button").forEach((button) => { button.disabled = false; });
});

// Leaving a page asks first if a form has changes that were not sent: those that are typed, and those that the server has
// shown again. A question before a deletion has none, and a selection of rows is none.
const FORMS = "main :is(form.form, td form)[method=post]:not([data-question])";
const isUnsaved = (form) => form !== sent
  && ("unsaved" in form.dataset || [...form.elements].some((one) => one.name && one.matches("input:not([type=hidden]), select, textarea") && isTouched(one)));
const hasUnsaved = () => all(FORMS).some(isUnsaved);
addEventListener("beforeunload", (event) => {
  if (!hasUnsaved()) return;
  event.preventDefault();
  sent = null;
});

// A session that is about to end says so. Opening a page extends a session that ends for lack of use.
const WARNING = 5 * 60_000;
const warn = () => {
  const ending = document.getElementById("ending"), left = new Date(document.querySelector(".shell")?.dataset.ends) - Date.now();
  if (!ending || !ending.hidden || Number.isNaN(left)) return;
  if (left <= WARNING) ending.hidden = false;
  else setTimeout(warn, Math.min(left - WARNING, 86_400_000));
};
warn();
document.addEventListener("visibilitychange", warn);

// The notice of a form is shown once: a reload does not repeat it.
if (document.querySelector("[data-notice]")) {
  const url = new URL(location.href);
  for (const name of ["done", "count", "undo", "unsaved"]) url.searchParams.delete(name);
  history.replaceState(null, "", url);
}

let shown = location.href;
addEventListener("popstate", () => { if (withoutFragment(location.href) !== withoutFragment(shown)) location.reload(); });
const withoutFragment = (url) => url.split("#")[0];

// Times are shown relative to now, or exactly and in the reader's zone: the title has the other one. A click or a tap on a time,
// or the switch at the end of the page, changes all of them, and the tab keeps the choice.
const EXACT = "steward-exact-times";
const ages = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto" });
function showAges() {
  for (const element of all("time[data-ago]")) {
    const then = new Date(element.dateTime), seconds = (then - Date.now()) / 1000, size = Math.abs(seconds);
    const [unit, length] = size < 90 ? ["second", 1] : size < 5400 ? ["minute", 60]
      : size < 129600 ? ["hour", 3600] : ["day", 86400];
    const age = ages.format(Math.round(seconds / length), unit), exact = then.toLocaleString();
    const isExact = sessionStorage.getItem(EXACT) !== null;
    [element.textContent, element.title] = isExact ? [exact, age] : [age, exact];
  }
}
const showExact = (isExact) => {
  if (isExact) sessionStorage.setItem(EXACT, "");
  else sessionStorage.removeItem(EXACT);
  for (const box of all("#exact")) box.checked = isExact;
  showAges();
};
on("click", "time[data-ago]", () => showExact(sessionStorage.getItem(EXACT) === null));
on("change", "#exact", (box) => showExact(box.checked));
showExact(sessionStorage.getItem(EXACT) !== null);
setInterval(showAges, 30_000);

// New entries of the activity log. One visible tab asks every 15 seconds, and the others learn from it. A page that nobody
// uses stops asking, so that it does not keep its session alive.
const PAUSE = 15_000, UNATTENDED = 30 * 60_000;
const tabs = new BroadcastChannel("steward-news");
const news = () => document.querySelector("form[data-news]");
let due = Date.now() + PAUSE, used = Date.now(), asked, tag;
async function askForNews(isFirst) {
  const form = news();
  if (!form || document.visibilityState !== "visible") return;
  due = Date.now() + PAUSE;
  const url = new URL(form.dataset.news, location.href), tell = (isNew) => tabs.postMessage({ url: url.href, isNew });
  if (isFirst) tell(false);
  const since = form.dataset.since;
  if (asked !== url.href + since) { asked = url.href + since; tag = ""; }
  const page = new URL(url);
  page.searchParams.set("since", since);
  try {
    const answer = await fetch(page, { headers: tag ? { "If-None-Match": tag } : {}, redirect: "manual" });
    if (answer.type === "opaqueredirect") {
      due = Infinity;
      say("Your session has ended. Sign in again to see new entries.", true);
    }
    if (!answer.ok || asked !== url.href + since) return;
    tag = answer.headers.get("ETag");
    const { count } = await answer.json(), text = count === 1 ? "1 new entry" : `${count} new entries`;
    form.hidden = count === 0;
    if (count === 0) return;
    form.querySelector("button").textContent = text;
    say(text);
    if (isFirst) tell(true);
  } catch {
    // The service cannot be reached. The next attempt may succeed.
  }
}
tabs.addEventListener("message", ({ data }) => {
  const form = news();
  if (!form || data.url !== new URL(form.dataset.news, location.href).href) return;
  if (data.isNew) askForNews(false);
  else due = Date.now() + PAUSE + Math.random() * 2_000;
});
for (const type of ["pointerdown", "keydown", "scroll"]) addEventListener(type, () => { used = Date.now(); }, { passive: true });
document.addEventListener("visibilitychange", () => { used = Date.now(); askForNews(true); });
setInterval(() => { if (Date.now() >= due && Date.now() - used < UNATTENDED) askForNews(true); }, 1_000);

// A form that asks for something that will change is sent by itself, less often while nothing does.
let asks = 0, askedAt = Date.now(), version;
setInterval(() => {
  const form = document.querySelector("form[data-repeat]");
  if (!form) { asks = 0; askedAt = Date.now(); return; }
  if (form.dataset.version !== version) { asks = 0; version = form.dataset.version; }
  const pause = form.dataset.repeat * 1000 * Math.min(1.1 ** asks, 10);
  if (Date.now() - askedAt < pause || document.visibilityState !== "visible" || Date.now() - used > UNATTENDED) return;
  asks += 1;
  askedAt = Date.now();
  form.requestSubmit();
}, 1_000);
