/** Guessing credentials is slowed down, valid credentials are not; authenticated responses are not cached. */
import { afterEach, expect, it } from "vitest";
import { generateToken } from "@signalbox/protocol";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
/** Stands still: wrong credentials are counted by the minute. */
const clock = { now: () => 1_800_000_000_000 };
afterEach(() => server.stop());

it("repeated wrong tokens at the management API get 429 with Retry-After; valid tokens never do", async () => {
  server = await startTestServer({ steadyClock: clock });
  const guess = () => server.api("GET", "/accounts", undefined, generateToken());
  let answer = await guess();
  let count = 1;
  for (; answer.status === 401 && count < 1000; count++) answer = await guess();
  expect([answer.status, answer.body.errors[0].code]).toEqual([429, 10004]);
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(count).toBeGreaterThan(100);
  expect((await server.api("GET", "/accounts")).status).toBe(200);
  expect((await server.api("GET", "/accounts", undefined, null)).status).toBe(401);
  expect((await guess()).status).toBe(429);
});

it("wrong logins and login codes get 429 earlier, and a valid login still works", async () => {
  server = await startTestServer({ steadyClock: clock });
  const headers = { origin: server.url };
  const login = (token: string) =>
    fetch(`${server.url}/dashboard/session`, { method: "POST", headers, body: JSON.stringify({ token }) });
  const statuses: number[] = [];
  for (let n = 0; n < 30; n++) statuses.push((await login(generateToken())).status);
  expect(statuses.slice(0, 5)).toEqual([401, 401, 401, 401, 401]);
  expect(statuses.at(-1)).toBe(429);
  expect((await login(ROOT_TOKEN)).status).toBe(200);
  const link = await fetch(`${server.url}/dashboard/login?code=guess`, { redirect: "manual" });
  expect([link.status, Number(link.headers.get("retry-after")) > 0]).toEqual([429, true]);
  const good = await fetch(await server.service.createLoginLink(), { redirect: "manual" });
  expect(good.headers.get("location")).toBe("/dashboard/");
});

it("management responses, errors included, have no-store and nosniff", async () => {
  server = await startTestServer();
  for (const [path, token] of [
    ["/accounts", ROOT_TOKEN],
    ["/accounts/default/tags/keys", ROOT_TOKEN],
    ["/accounts", null],
    ["/accounts/nobody", ROOT_TOKEN],
    ["/dashboard/session", null],
  ] as const) {
    const { headers } = await server.api("GET", path, undefined, token);
    expect([path, headers.get("cache-control"), headers.get("x-content-type-options")]).toEqual([
      path,
      "no-store",
      "nosniff",
    ]);
  }
});
