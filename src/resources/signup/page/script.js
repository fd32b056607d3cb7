"use strict";
const at = (id) => document.getElementById(id);
const id = location.pathname.split("/").filter(Boolean).pop();
const token = new URLSearchParams(location.search).get("token") || "";
const api = `../api/signup/${encodeURIComponent(id)}/`;

function say(text, bad) {
  at("status").textContent = text;
  at("status").className = bad ? "bad" : "";
}

async function ask(path, options) {
  const answer = await fetch(new URL(path, location.origin + location.pathname.replace(/\/$/, "")), options);
  const body = await answer.json();
  return { ok: answer.ok, body };
}

function invite(offer) {
  at("title").textContent = `Join ${offer.organization_name}`;
  document.title = at("title").textContent;
  say(`${offer.target_email} is invited to ${offer.organization_name}.`);
  at("first_name").value = offer.first_name;
  at("form").hidden = false;
}

function askForKey(text) {
  say(text);
  at("names").hidden = true;
  at("first_name").required = false;
  at("account").hidden = false;
  at("key").required = true;
  at("form").hidden = false;
}

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

// Offers two choices: join with the account's API key, or take over the account.
function offerTakeover(offer) {
  const account = offer.unproven_account;
  const since = account.created_at.slice(0, 10);
  askForKey(
    `${offer.target_email} is invited to ${offer.organization_name}. An account with this address ` +
      `was created on ${since} with a link. To join with it, enter an API key of that account.`,
  );
  const ends = [
    `revokes its ${counted(account.api_keys, "API key")}`,
    `deletes its ${counted(account.organizations, "membership")}`,
  ];
  if (account.organizations_deleted > 0) {
    const deleted = counted(account.organizations_deleted, "organization");
    ends.push(`deletes ${deleted} of which it is the only member, with all projects and dashboards`);
  }
  at("ends").textContent =
    `Alternatively, take over the account. This ${ends.slice(0, -1).join(", ")} and ${ends.at(-1)}. ` +
    "Organizations of which it is the only owner will have no owner. This cannot be undone.";
  at("takeover").hidden = false;
  at("take_over").addEventListener("click", () => {
    at("account").hidden = true;
    at("key").required = false;
    at("names").hidden = false;
    at("first_name").required = true;
    at("take_over").hidden = true;
    at("join").textContent = "Take over and join";
    invite(offer);
  });
}

async function begin() {
  const { ok, body } = await ask(`${api}?token=${encodeURIComponent(token)}`);
  if (ok && body.unproven_account) offerTakeover(body);
  else if (ok) invite(body);
  else if (body.code === "account_exists") {
    askForKey("An account with this address exists. To join with it, enter an API key of that account.");
  } else say(body.detail, true);
}

async function join(event) {
  event.preventDefault();
  const button = at("form").querySelector("button");
  button.disabled = true;
  const headers = { "Content-Type": "application/json" };
  const sent = { token };
  if (at("account").hidden) {
    sent.first_name = at("first_name").value;
    sent.last_name = at("last_name").value;
    sent.take_over = at("take_over").hidden;
  } else {
    headers.Authorization = `Bearer ${at("key").value.trim()}`;
  }
  const answer = ask(api, { method: "POST", headers, body: JSON.stringify(sent) });
  const { ok, body } = await answer.finally(() => { button.disabled = false; });
  if (!ok) return say(body.detail, true);
  at("form").hidden = true;
  at("takeover").hidden = true;
  at("title").textContent = `Welcome to ${body.organization.name}`;
  say(`You have joined as ${body.email}.`);
  if (body.personal_api_key) {
    at("value").textContent = body.personal_api_key.value;
    at("made").hidden = false;
  }
  await signIn(body.personal_api_key ? body.personal_api_key.value : at("key").value.trim());
}

// Signs in to the console, which answers with a redirection. Without a console, or under a name that it does not answer to,
// the page leads nowhere.
async function signIn(key) {
  const sent = { method: "POST", body: new URLSearchParams({ key }), redirect: "manual" };
  const answer = await fetch("/console/sign_in/", sent).catch(() => null);
  if (answer && [404, 421].includes(answer.status)) return;
  if (answer?.type !== "opaqueredirect") at("continue").textContent = "Sign in to the console";
  at("next").hidden = false;
}

at("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(at("value").textContent);
    at("copy").textContent = "Copied";
  } catch {
    // Over plain HTTP under a name, browsers give no access to the clipboard.
    getSelection().selectAllChildren(at("value"));
    say("The key is selected. Press Ctrl-C to copy it.");
  }
});

const failed = () => say("The server cannot be reached. Try again later.", true);
at("form").addEventListener("submit", (event) => join(event).catch(failed));
begin().catch(failed);
