/** Commands print text of strangers: none of it can control the terminal. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCommand } from "../support/run-cli.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
const EVIL = "\u001b]0;PWNED\u0007\u001b[2J\u009b31m\u202emodel\u2066\r\nforged line";
const ACTIVE = /(?!\n)[\p{Cc}\u202a-\u202e\u2066-\u2069]/u;

beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

const run = (...args: string[]) => runCommand(server, args, { isTTY: true });

it("tables, single entries and stored bodies are printed without control characters, one line each", async () => {
  const response = await fetch(`${server.url}/v1/default/default/echo/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: EVIL, messages: [{ role: "user", content: "\u202eraw\u009b" }] }),
  });
  const id = response.headers.get("gw-aig-log-id") ?? "";
  await response.arrayBuffer();
  for (const args of [
    ["logs", "list"],
    ["logs", "show", id],
    ["logs", "show", id, "--request"],
  ]) {
    const { out, code } = await run(...args);
    expect([args, code]).toEqual([args, 0]);
    expect(out).not.toMatch(ACTIVE);
    expect(out).not.toMatch(/^forged line/m);
  }
  expect((await run("logs", "list")).out).toContain("PWNED");
});

it("--json prints the exact values", async () => {
  const [call] = JSON.parse((await run("logs", "list", "--json")).out) as { model: string }[];
  expect(call?.model).toBe(EVIL);
});

it("names of tokens and messages of a server are sanitized, too", async () => {
  await server.api("POST", "/accounts/default/tokens", { name: EVIL, permissions: ["tags.read"] });
  const { out } = await run("token", "list");
  expect(out).toContain("PWNED");
  expect(out).not.toMatch(ACTIVE);
  const failed = await run("gateway", "show", "x\u001b[2J");
  expect(failed.code).not.toBe(0);
  expect(failed.err).not.toMatch(ACTIVE);
});
