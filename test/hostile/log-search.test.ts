/** Searches and exports of stored calls with hostile texts, by clients that do not read or leave. */
import { connect } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { callEcho } from "../support/send-request.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

const LOGS = "/accounts/default/ai-gateway/logs";
const TEXTS = [
  '"',
  "'",
  "*",
  "NEAR(a b)",
  "a OR b",
  "prompt:fox",
  "fox*",
  "-fox",
  "%",
  "_",
  "\\",
  "\u0000",
  "a\u0000b",
  "{",
  "}",
  "(",
  "[a-z]+",
  "$where",
  "'; DROP TABLE call; --",
  "\u202e",
  "\ud800",
  "é",
  "😀",
  " ",
  "x".repeat(256),
];

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

async function call(text: string): Promise<string> {
  const response = await fetch(`${server.url}/v1/default/default/echo/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "echo", messages: [{ role: "user", content: text }] }),
  });
  await response.text();
  return response.headers.get("gw-aig-log-id") ?? "";
}

const find = (text: string, token?: string, account = "default") =>
  server.api("GET", `/accounts/${account}/ai-gateway/logs?q=${encodeURIComponent(text)}`, undefined, token);

it("a text is searched literally, whatever it means elsewhere", async () => {
  const ids = new Map<string, string>();
  for (const text of ["100% (sure) [a-z]+", 'it\'s "quoted" \\ back', "fox* OR dog", "😀 é"])
    ids.set(text, await call(text));
  for (const [text, id] of ids) {
    const { status, body } = await find(text);
    expect(status, text).toBe(200);
    expect(
      (body.result as { id: string }[]).map((row) => row.id),
      text,
    ).toEqual([id]);
  }
  for (const text of TEXTS) {
    const encoded = encodeURIComponent(text.toWellFormed());
    const { status } = await server.api("GET", `${LOGS}?q=${encoded}`);
    expect([200, 400], text).toContain(status);
  }
  const long = await fetch(`${server.url}${LOGS}?q=${"x".repeat(100_000)}`, {
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  expect([400, 414, 431]).toContain(long.status);
});

it("the token of another account finds nothing, in neither account", async () => {
  await call("only for the first account");
  await server.api("POST", "/accounts", { id: "second" });
  await server.api("POST", "/accounts/second/ai-gateway/gateways", { id: "default" });
  const foreign = await server.token(["gateway.read"], { account: "second" });
  expect((await find("only for the first", foreign)).status).toBe(403);
  expect((await find("only for the first", foreign, "second")).body.result).toEqual([]);
});

it("cells of a CSV export are no formulas", async () => {
  for (const text of ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1"]) await call(text);
  const response = await fetch(`${server.url}${LOGS}/export?format=csv`, {
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  const cells = (await response.text()).split(/,|\r\n/).map((cell) => cell.replace(/^"/, ""));
  expect(cells.filter((cell) => /^[=+\-@\t]/.test(cell) && !/^-?\d+(?:\.\d+)?$/.test(cell))).toEqual([]);
  expect(cells).toContain("'=1+1");
});

it("clients that do not read an export or leave keep nothing busy", async () => {
  const text = "long text ".repeat(20_000);
  for (let i = 0; i < 20; i++) await call(`${i} ${text}`);
  const { port } = new URL(server.url);
  const sockets = Array.from({ length: 20 }, () => connect(Number(port), "127.0.0.1"));
  for (const socket of sockets) {
    socket.on("error", () => undefined);
    socket.pause();
    socket.write(
      `GET ${LOGS}/export?bodies=true HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${ROOT_TOKEN}\r\n\r\n`,
    );
  }
  // Others are served meanwhile, and a complete export is complete.
  expect((await find("19 long text")).body.result).toHaveLength(1);
  const response = await fetch(`${server.url}${LOGS}/export?bodies=true`, {
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  const lines = (await response.text()).trimEnd().split("\n");
  expect(lines.filter((line) => line.includes("long text")).length).toBe(20);
  for (const socket of sockets) socket.destroy();
  expect((await callEcho(server)).status).toBe(200);
});
