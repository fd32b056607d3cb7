"use strict";
// A Steward server for one test run. See index.d.ts.

const { spawn } = require("node:child_process");
const { accessSync, constants } = require("node:fs");
const path = require("node:path");

/** How long a server may take to end, in milliseconds, before it is killed. */
const PATIENCE = 60_000;

/** Returns the path of the program: that of the variable `STEWARD_BIN`, or the one of this platform's package. */
function findSteward() {
  const named = process.env.STEWARD_BIN;
  if (named) {
    try {
      accessSync(named, constants.X_OK);
    } catch {
      throw new Error(`The variable STEWARD_BIN names no program: ${named}`);
    }
    return named;
  }
  const name = `steward-server-${process.platform}-${process.arch}`;
  try {
    return path.join(path.dirname(require.resolve(`${name}/package.json`)), "steward");
  } catch {
    throw new Error(
      `The package ${name} is not installed. Install it, without --omit=optional, or set the variable STEWARD_BIN to the path of ` +
        "the program. There are packages for linux-x64 and linux-arm64.",
    );
  }
}

/** An error of the control plane. */
class ControlError extends Error {
  constructor(status, body) {
    super(`${status}: ${body.attr ? `${body.attr}: ` : ""}${body.detail}`);
    this.name = "ControlError";
    this.status = status;
    this.body = body;
  }
}

/** The clock of a server. */
class Clock {
  #server;
  constructor(server) {
    this.#server = server;
  }
  async now() {
    return (await this.#server.control("GET", "clock")).now;
  }
  async isFrozen() {
    return (await this.#server.control("GET", "clock")).frozen;
  }
  advance(by) {
    return this.#set({ advance: by });
  }
  set(now) {
    return this.#set({ now });
  }
  freeze() {
    return this.#set({ frozen: true });
  }
  run() {
    return this.#set({ frozen: false });
  }
  async #set(change) {
    return (await this.#server.control("POST", "clock", change)).due;
  }
}

/** What a server and an organization have in common. */
class Place {
  get auth() {
    return { Authorization: `Bearer ${this.key}` };
  }
  get clock() {
    return new Clock(this.server);
  }
  mails(to) {
    return this.#results("mails", { to });
  }
  requests(filters = {}) {
    return this.#results("requests", filters);
  }
  async waitFor(match, { count = 1, timeoutMs = 5000 } = {}) {
    const body = { match, count, timeout_ms: timeoutMs };
    return (await this.server.control("POST", "requests/wait", body)).results;
  }
  async faults(...rules) {
    return (await this.server.control("PUT", "faults", { results: rules })).results;
  }
  async createKey(email, scopes, limits = {}) {
    return (await this.server.control("POST", "keys", { email, scopes, ...limits })).value;
  }
  async dns(name, answer) {
    await this.server.control("PUT", `dns/${encodeURIComponent(name)}`, answer);
  }
  async #results(list, filters) {
    const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== undefined));
    return (await this.server.control("GET", `${list}?${query}`)).results;
  }
}

class Organization extends Place {
  constructor(server, made) {
    super();
    this.server = server;
    this.url = server.url;
    this.organizationId = made.organization_id;
    this.name = made.name;
    this.projects = made.projects;
    this.project = made.projects[0].id;
    this.owner = made.owner;
    this.key = made.owner.api_key;
    this.members = made.members;
  }
}

class Server extends Place {
  #process;
  #ended;
  #log;
  constructor(child, ended, log, ready) {
    super();
    this.#process = child;
    this.#ended = ended;
    this.#log = log;
    this.server = this;
    this.ready = ready;
    this.url = ready.url;
    this.testUrl = ready.test_url;
    this.organizationId = ready.organization_id;
    this.project = ready.project_id;
    this.key = ready.user.api_key;
    this.memberKey = ready.member ? ready.member.api_key : null;
  }
  get log() {
    return this.#log.text;
  }
  async reset() {
    await this.control("POST", "reset");
  }
  async snapshot(name) {
    await this.control("PUT", `snapshots/${encodeURIComponent(name)}`);
  }
  async restore(name) {
    await this.control("POST", `snapshots/${encodeURIComponent(name)}/restore`);
  }
  async organization(asked = {}) {
    return new Organization(this, await this.control("POST", "organizations", asked));
  }
  async control(method, path, body) {
    const headers = { "Content-Type": "application/json" };
    const text = body === undefined ? undefined : JSON.stringify(body);
    const call = async () => {
      const response = await fetch(this.testUrl + path, { method, headers, body: text });
      return [response, await response.text()];
    };
    const answered = await Promise.race([call().catch((error) => error), this.#ended]);
    if (!Array.isArray(answered)) {
      // A connection fails a moment before the end of the process is known.
      await Promise.race([this.#ended, new Promise((resolve) => { setTimeout(resolve, 1000); })]);
      const ended = this.#process.exitCode ?? this.#process.signalCode;
      throw ended === null ? answered : new Error(howItEnded(this.#process, this.#log));
    }
    const [response, answer] = answered;
    if (!response.ok) throw new ControlError(response.status, JSON.parse(answer));
    return answer ? JSON.parse(answer) : {};
  }
  async close() {
    this.#process.ref();
    this.#process.stdin.end();
    const late = setTimeout(() => this.#process.kill("SIGKILL"), PATIENCE);
    await this.#ended;
    clearTimeout(late);
  }
  async [Symbol.asyncDispose]() {
    await this.close();
  }
}

function howItEnded(child, log) {
  return `steward test ended with ${child.exitCode ?? child.signalCode}: ${log.text.trim()}`;
}

/** Starts a server. */
async function startSteward({ data, now, random, strict = false, args = [], binary } = {}) {
  const flags = Object.entries({ "--from": data, "--now": now, "--random": random });
  const given = flags.filter(([, value]) => value !== undefined).map(([flag, value]) => `${flag}=${value}`);
  const all = ["test", "--json", "--until-stdin-closes", ...given, ...(strict ? ["--strict"] : []), ...args];
  const program = binary ?? findSteward();
  accessSync(program, constants.X_OK);
  // In a session of its own, an interrupt from the terminal ends the tests before it ends the server.
  const child = spawn(program, all, { stdio: ["pipe", "pipe", "pipe"], detached: true });
  const log = { text: "" };
  child.stderr.setEncoding("utf8").on("data", (text) => { log.text += text; });
  // It ends with stdin, also while it is written to.
  child.stdin.on("error", () => {});
  const ended = new Promise((resolve, reject) => child.once("close", resolve).once("error", reject));
  const line = new Promise((resolve) => {
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (part) => {
      text += part;
      if (text.includes("\n")) resolve(text);
    });
  });
  const first = await Promise.race([line, ended]);
  if (typeof first !== "string") throw new Error(howItEnded(child, log));
  let ready;
  try {
    ready = JSON.parse(first);
  } catch {
    child.kill("SIGKILL");
    throw new Error(`${program} is not Steward: ${first.trim()}`);
  }
  // A test that forgets to close the server ends all the same, and the server with it.
  for (const part of [child, child.stdin, child.stdout, child.stderr]) part.unref();
  return new Server(child, ended, log, ready);
}

module.exports = { ControlError, findSteward, startSteward };
