// Tests of the package with node:test.
"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { ControlError, startSteward } = require("steward-server");

async function send(place, method, path, { body, key = place.key } = {}) {
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const response = await fetch(place.url + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  return [response.status, text ? JSON.parse(text) : null];
}
const dashboards = (place) => `/api/projects/${place.project}/dashboards/`;
const count = async (place) => (await send(place, "GET", dashboards(place)))[1].count;

test("an organization is private", async () => {
  const server = await startSteward();
  try {
    const one = await server.organization();
    const other = await server.organization({ name: "Other", projects: ["A", "B"], members: [{ level: 8 }] });
    assert.deepEqual([other.name, other.projects.map(({ name }) => name), other.members[0].level], ["Other", ["A", "B"], 8]);
    assert.equal((await send(one, "POST", dashboards(one), { body: { name: "A" } }))[0], 201);
    assert.equal((await send(other, "GET", dashboards(one)))[0], 403);
    assert.deepEqual(one.auth, { Authorization: `Bearer ${one.owner.api_key}` });
  } finally {
    await server.close();
  }
});

test("state goes back", async () => {
  const server = await startSteward({ random: 3 });
  await send(server, "POST", dashboards(server), { body: { name: "A" } });
  await server.snapshot("one");
  await send(server, "POST", dashboards(server), { body: { name: "B" } });
  assert.equal(await count(server), 2);
  await server.restore("one");
  assert.equal(await count(server), 1);
  await server.reset();
  assert.equal(await count(server), 0);
  const [, me] = await send(server, "GET", "/api/users/@me/", { key: server.memberKey });
  assert.equal(me.email, "member@example.com");
  assert.equal(server.ready.random, 3);
  assert.equal(server.log, "");
  await server[Symbol.asyncDispose]();
  assert.throws(() => process.kill(server.ready.pid, 0), { code: "ESRCH" });
});

test("requests, faults, mails and time are in the hands of a test", async () => {
  const server = await startSteward({ now: "2026-03-01T00:00:00Z", strict: true });
  try {
    const path = `/api/organizations/${server.organizationId}/invites/`;
    const [rule] = await server.faults({ match: { method: "POST", path }, times: 1, effect: { status: 503 } });
    assert.deepEqual([rule.id, rule.applied], [1, 0]);
    const body = { target_email: "ann@example.com" };
    assert.equal((await send(server, "POST", path, { body }))[0], 503);
    assert.equal((await send(server, "POST", path, { body }))[0], 201);
    const found = await server.waitFor({ path, method: "POST" }, { count: 2 });
    assert.deepEqual(found.map(({ status }) => status), [503, 201]);
    assert.equal((await server.requests({ path, status: 503 })).length, 1);
    const [mail] = await server.mails("ann@example.com");
    assert.equal(mail.kind, "invite");
    await assert.rejects(server.waitFor({ path: "/api/nowhere/" }, { timeoutMs: 0 }), (error) => {
      return error instanceof ControlError && error.status === 408;
    });
    const key = await server.createKey("owner@example.com", ["*"], { expires_at: "2026-03-02" });
    assert.equal((await server.clock.advance("72h")).keys, 1);
    assert.equal((await send(server, "GET", "/api/users/@me/", { key }))[0], 401);
    await assert.rejects(server.clock.set("2026-03-01"), /now: The clock only moves forward/);
    await server.clock.run();
    assert.equal(await server.clock.isFrozen(), false);
    await server.dns("example.com", { txt: ["a text"] });
    assert.equal((await send(server, "POST", dashboards(server), { body: { name: "A", nonsense: 1 } }))[0], 400);
  } finally {
    await server.close();
  }
});

test("a server that cannot start says why", async () => {
  await assert.rejects(startSteward({ data: "absent" }), /ended with 2: .*--from: absent does not exist/);
  await assert.rejects(startSteward({ binary: "/absent" }), { code: "ENOENT" });
});

test("a server that is gone is named", async () => {
  const server = await startSteward();
  process.kill(server.ready.pid, "SIGKILL");
  await assert.rejects(server.reset(), /ended with SIGKILL/);
});

test("a variable that names no program is named", async () => {
  const before = process.env.STEWARD_BIN;
  process.env.STEWARD_BIN = "/absent";
  await assert.rejects(startSteward(), /STEWARD_BIN names no program: \/absent/);
  if (before === undefined) delete process.env.STEWARD_BIN;
  else process.env.STEWARD_BIN = before;
  await assert.rejects(startSteward({ binary: "/bin/echo" }), /\/bin\/echo is not Steward/);
});

test("a server that nobody closes does not keep its process", async () => {
  await startSteward();
});
