/** Integers beyond the range of JavaScript numbers: `this.sql` returns bigints; JSON contains them as text. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RawClient } from "../support/agents.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    file: { agents: { modules: [join(import.meta.dirname, "../fixtures/admission-agents.ts")] } },
  });
});
afterAll(() => server.stop());

const call = (method: string) => server.api("POST", `/agents/exact/box/rpc/${method}`, []);

it("large integers are read as stored, other integers are numbers, and a statement with RETURNING writes once", async () => {
  expect((await call("store")).body.result).toBe(true);
  expect((await call("kinds")).body.result).toEqual(["number", "bigint"]);
});

it("results of methods contain large integers as text, over HTTP, WebSockets and streams", async () => {
  const rows = [{ n: 7 }, { n: "9007199254740993" }];
  expect((await call("rows")).body.result).toEqual(rows);
  const client = await new RawClient(`${server.url}/agents/exact/box`).opened();
  expect(await client.call("rows")).toMatchObject({ success: true, result: rows });
  client.send({ type: "rpc", id: "s", method: "streamRows", args: [] });
  expect(await client.next((frame) => frame.id === "s")).toMatchObject({ result: { n: 7 } });
  expect(await client.next((frame) => frame.id === "s")).toMatchObject({ result: { n: "9007199254740993" } });
  client.close();
});

it("a state with a large integer is refused, because states are stored as JSON", async () => {
  const { status, body } = await call("putInState");
  expect(status).toBe(500);
  expect(body.errors[0].message).toContain("the state is not JSON");
  expect((await call("kinds")).status).toBe(200);
});
