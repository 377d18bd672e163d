/** One account, or callers without a token, hold all the WebSockets, requests and instances they can get. Others are served all the same. */
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { RawSocket } from "../support/raw-socket.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

const PLACES = 60;
const INSTANCES = 18;
const AGENTS = join(import.meta.dirname, "../fixtures/roaming-agents.ts");
const OVERLOADED = 1013;

let server: TestServer;
const tokens: Record<string, string> = { none: "" };
const held: { close(): void }[] = [];

beforeAll(async () => {
  server = await startTestServer({
    file: {
      agents: { modules: [AGENTS], access: "public", maxActiveInstances: INSTANCES },
      listener: { maxConnections: PLACES },
    },
  });
  for (const account of ["greedy", "other"]) {
    await server.api("POST", "/accounts", { id: account, name: account });
    const permissions = ["agents.read", "agents.edit"];
    const { body } = await server.api("POST", `/accounts/${account}/tokens`, { name: account, permissions });
    tokens[account] = (body as { result: { token: string } }).result.token;
  }
});
afterAll(() => server.stop());
afterEach(() => {
  for (const one of held.splice(0)) one.close();
});

function bearer(holder: string): Record<string, string> {
  const token = tokens[holder];
  return token === "" ? {} : { authorization: `Bearer ${token}` };
}

/** Resolves with 0 when the WebSocket has its first frame, or with the code by which it was refused. */
async function openSocket(holder: string): Promise<number> {
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/agents/roamer/one`, {
    headers: bearer(holder),
  });
  held.push({ close: () => socket.terminate() });
  socket.on("error", () => undefined);
  const first = once(socket, "message").then(() => 0);
  const closed = once(socket, "close").then(([code]) => Number(code));
  return Promise.race([first, closed]);
}

/** The status of a response whose body never ends. */
async function openStream(
  holder: string,
  name = "one",
  path = `/agents/roamer/${name}/endless`,
): Promise<number> {
  const raw = new RawSocket(server.url);
  held.push({ close: () => raw.destroy() });
  const authorization = holder === "none" ? "" : `Authorization: Bearer ${tokens[holder]}\r\n`;
  raw.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n${authorization}\r\n`);
  await raw.until("\r\n\r\n");
  return Number(raw.received.toString("latin1", 9, 12));
}

async function isOperatorServed(): Promise<boolean> {
  const raw = new RawSocket(server.url);
  raw.write(`GET /accounts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ROOT_TOKEN}\r\n\r\n`);
  await raw.until("\r\n\r\n");
  raw.destroy();
  return raw.received.toString("latin1", 9, 12) === "200";
}

describe.each(["greedy", "none"])("held by %s", (holder) => {
  it("WebSockets take two thirds at most; others connect", async () => {
    const codes: number[] = [];
    for (let i = 0; i < PLACES; i++) codes.push(await openSocket(holder));
    expect(codes.filter((code) => code === 0)).toHaveLength((PLACES * 2) / 3);
    expect(new Set(codes)).toEqual(new Set([0, OVERLOADED]));
    expect(await openSocket("other")).toBe(0);
    expect(await isOperatorServed()).toBe(true);
  });

  it("requests take two thirds at most; others are answered", async () => {
    const statuses: number[] = [];
    for (let i = 0; i < PLACES; i++) statuses.push(await openStream(holder));
    expect(statuses.filter((status) => status === 200)).toHaveLength((PLACES * 2) / 3);
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
    expect(await openStream("other")).toBe(200);
    expect(await isOperatorServed()).toBe(true);
  });

  it("all places are free again when they have left", async () => {
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < PLACES / 3; i++) {
        await expect.poll(() => openSocket(holder)).toBe(0);
      }
      for (const one of held.splice(0)) one.close();
    }
  });
});

it("busy instances of an account take two thirds of memory at most; idle ones are no obstacle", async () => {
  for (let i = 0; i < 2 * INSTANCES; i++) {
    const name = `idle${i}`;
    const path = `/agents/roamer/${name}/increment`;
    const response = await fetch(server.url + path, { headers: bearer("greedy") });
    expect([response.status, await response.json()]).toEqual([200, { count: 1 }]);
  }
  const statuses: number[] = [];
  for (let i = 0; i < INSTANCES; i++) statuses.push(await openStream("greedy", `busy${i}`));
  expect(statuses.filter((status) => status === 200)).toHaveLength((INSTANCES * 2) / 3);
  expect(new Set(statuses)).toEqual(new Set([200, 503]));
  expect(await openStream("other", "first")).toBe(200);
  expect(await openSocket("other")).toBe(0);
});

it("streams of the management interface take two thirds at most; others are answered", async () => {
  const streamOf = (account: string) =>
    openStream(account, "", `/accounts/${account}/agents/roamer/instances/one/events`);
  const statuses: number[] = [];
  for (let i = 0; i < PLACES; i++) statuses.push(await streamOf("greedy"));
  expect(statuses.filter((status) => status === 200)).toHaveLength((PLACES * 2) / 3);
  expect(new Set(statuses)).toEqual(new Set([200, 503]));
  expect(await streamOf("other")).toBe(200);
  expect(await isOperatorServed()).toBe(true);
});
