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

function askForKey() {
  say("There is an account for this address. To join with it, give an API key of that account.");
  at("names").hidden = true;
  at("first_name").required = false;
  at("account").hidden = false;
  at("key").required = true;
  at("form").hidden = false;
}

async function begin() {
  const { ok, body } = await ask(`${api}?token=${encodeURIComponent(token)}`);
  if (ok) invite(body);
  else if (body.code === "account_exists") askForKey();
  else say(body.detail, true);
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
  } else {
    headers.Authorization = `Bearer ${at("key").value.trim()}`;
  }
  const { ok, body } = await ask(api, { method: "POST", headers, body: JSON.stringify(sent) });
  button.disabled = false;
  if (!ok) return say(body.detail, true);
  at("form").hidden = true;
  at("title").textContent = `Welcome to ${body.organization.name}`;
  say(`You have joined as ${body.email}.`);
  if (body.personal_api_key) {
    at("value").textContent = body.personal_api_key.value;
    at("made").hidden = false;
  }
}

const failed = () => say("The service cannot be reached. Try again in a moment.", true);
at("form").addEventListener("submit", (event) => join(event).catch(failed));
begin().catch(failed);
