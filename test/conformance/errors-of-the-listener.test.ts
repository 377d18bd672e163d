import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

it("answers an unknown path with 404 and code 7003 in the envelope", async () => {
  const { status, body, headers } = await server.api("GET", "/nowhere");
  expect(status).toBe(404);
  expect(body).toEqual({
    success: false,
    errors: [{ code: 7003, message: "Not found" }],
    messages: [],
    result: null,
  });
  expect(headers.get("x-request-id")).toMatch(/\S+/);
});
