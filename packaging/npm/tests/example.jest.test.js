// The package in jest.
const { startSteward } = require("steward-server");

let server;
beforeAll(async () => { server = await startSteward(); });
afterAll(() => server.close());

test("an organization for each test", async () => {
  const { url, auth, project } = await server.organization();
  const response = await fetch(`${url}/api/projects/${project}/dashboards/`, { headers: auth });
  expect([response.status, (await response.json()).count]).toEqual([200, 0]);
});
