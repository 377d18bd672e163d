/** SQL console queries that exceed the limits. The limits of their processes are tested beside the code. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    file: { agents: { modules: [join(import.meta.dirname, "../fixtures/admission-agents.ts")] } },
  });
  await server.api("POST", "/agents/exact/box/rpc/store", []);
});
afterAll(() => server.stop());

const query = (sql: string) =>
  server.api("POST", "/accounts/default/agents/exact/instances/box/sql", { sql });
const MANY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 900)";

it("a result with too many bytes is truncated and marked as truncated", async () => {
  const { status, body } = await query(`${MANY} SELECT i, hex(zeroblob(50000)) AS text FROM n`);
  expect(status).toBe(200);
  expect(body.result.truncated).toBe(true);
  expect(body.result.rows.length).toBeGreaterThan(30);
  expect(JSON.stringify(body).length).toBeLessThan(5 * 1024 * 1024);
});

it("blobs count with their size in the response", async () => {
  const { body } = await query(`${MANY} SELECT randomblob(100000) AS bytes FROM n`);
  expect(body.result.truncated).toBe(true);
  expect(JSON.stringify(body).length).toBeLessThan(5 * 1024 * 1024);
});

it.each([
  ["one value", "SELECT zeroblob(500000000) AS x", /too big/],
  [
    "one row",
    `SELECT ${Array.from({ length: 8 }, (_, i) => `hex(zeroblob(900000)) AS c${i}`).join(", ")}`,
    /a row has more than/,
  ],
])("a query that needs too much is refused: %s", async (_title, sql, reason) => {
  const { status, body } = await query(sql);
  expect(status).toBe(400);
  expect(body.errors[0].code).toBe(3011);
  expect(body.errors[0].message).toMatch(reason);
});

it("integers beyond 2^53 are text, all others are numbers", async () => {
  const { body } = await query("SELECT n FROM number ORDER BY n");
  expect(body.result.rows).toEqual([{ n: 7 }, { n: "9007199254740993" }]);
});
