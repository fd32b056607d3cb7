// The package in vitest.
import { afterAll, expect, test } from "vitest";
import { startSteward } from "steward-server";

const server = await startSteward();
afterAll(() => server.close());

test("an organization for each test", async () => {
  const { url, auth, project } = await server.organization();
  const response = await fetch(`${url}/api/projects/${project}/dashboards/`, { headers: auth });
  expect([response.status, (await response.json()).count]).toEqual([200, 0]);
});
