/** One account, or callers without a token, take all they can get. The others still find memory, places and senders. */
import { createServer, request, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { type RealtimePeer, startRealtimePeer } from "../peers/realtime.ts";
import { callPath, CHAT, type RawAnswer, send } from "../support/gateway.ts";
import { readMetric } from "../support/read-metric.ts";
import { openSession, refusedSession } from "../support/realtime.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const BUDGET = 8 * 1024 * 1024;
const LARGE = "x".repeat(512 * 1024);
const SESSIONS = 6;
const REFUSED = 503;
const ACCOUNTS = ["greedy", "other"] as const;

let provider: ProviderPeer;
let peer: RealtimePeer;
let server: TestServer;
const tokens = new Map<string, string>();
const ends: (() => void)[] = [];

beforeAll(async () => {
  provider = await startProvider(() => undefined);
  peer = await startRealtimePeer();
  server = await startTestServer({
    file: {
      providers: {
        openai: { baseUrl: provider.url },
        anthropic: { baseUrl: provider.url },
        grok: { baseUrl: `${peer.url}/v1` },
      },
      gateway: { maxBufferedBytes: BUDGET, realtime: { maxSessions: SESSIONS } },
      outgoing: { allowPrivateHosts: true },
    },
  });
  for (const account of ACCOUNTS) {
    await server.api("POST", "/accounts", { id: account, name: account });
    await server.api("POST", `/accounts/${account}/ai-gateway/gateways`, { id: "default" });
    const { body } = await server.api("POST", `/accounts/${account}/tokens`, {
      name: account,
      permissions: ["gateway.run", "gateway.edit"],
    });
    tokens.set(account, (body as { result: { token: string } }).result.token);
  }
});
afterAll(async () => {
  await server.stop();
  await provider.close();
  await peer.close();
});
beforeEach(() => {
  provider.answer = () => undefined;
});
afterEach(async () => {
  for (const end of ends.splice(0)) end();
  await expect.poll(() => readMetric(server, "signalbox_gateway_buffered_bytes")).toBe(0);
});

const bearer = (account: string) => {
  const token = tokens.get(account);
  return token === undefined ? {} : { "gw-aig-authorization": `Bearer ${token}` };
};
/** Sends a call that nobody reads or ends; resolves with its status as soon as there is a response. */
function hold(account: string, body: string): { status: number | null } {
  const held: { status: number | null } = { status: null };
  const path = callPath("openai/chat/completions", "default", tokens.has(account) ? account : "default");
  const sent = request(server.url + path, {
    method: "POST",
    agent: false,
    headers: { "content-type": "application/json", ...bearer(account) },
  });
  // A refused upload is cut; the response may be lost with the connection.
  sent.on("error", () => (held.status ??= REFUSED));
  sent.on("response", (response) => (held.status = response.statusCode ?? 0));
  sent.end(body);
  ends.push(() => sent.destroy());
  return held;
}
const call = (account: string, body: string, path = "openai/chat/completions"): Promise<RawAnswer> =>
  send(server, "POST", callPath(path, "default", account), {
    body,
    headers: { "content-type": "application/json", ...bearer(account) },
  });
const chat = (text: string) => CHAT.replace("Hello", text);

/** Fills the holder's share with calls that get no answer, until one is refused. */
async function takeAll(account: string): Promise<number> {
  const calls: { status: number | null }[] = [];
  while (!calls.some(({ status }) => status === REFUSED)) {
    const arrived = provider.requests.length;
    const one = hold(account, chat(LARGE));
    calls.push(one);
    await expect.poll(() => provider.requests.length > arrived || one.status !== null).toBe(true);
  }
  return calls.length - 1;
}

describe.each([
  ["an account", "greedy"],
  ["callers without a token", "stranger"],
])("%s fills the memory for bodies", (_, greedy) => {
  it("another account's calls are served, large ones too, and its own are refused", async () => {
    expect(await takeAll(greedy)).toBeGreaterThan(5);
    provider.answer = (_request, response) => sendJson(response, 200, { ok: true });
    for (const text of ["Hello", LARGE]) expect((await call("other", chat(text))).status).toBe(200);
    const refused = hold(greedy, chat(LARGE));
    await expect.poll(() => refused.status).toBe(REFUSED);
  });
});

const ANSWER = (text: string) => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude",
  content: [{ type: "text", text }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 2 },
});

describe("an account sends bodies that take long to translate", () => {
  const messages = Array.from({ length: 5000 }, (_, i) => ({
    role: i % 2 === 0 ? "user" : "assistant",
    content: [{ type: "text", text: "some words that somebody said, and no more than that" }],
  }));
  const conversation = JSON.stringify({ model: "anthropic/claude-x", messages });

  it("calls of another account are answered between them", async () => {
    provider.answer = (_request, response) => sendJson(response, 200, ANSWER("yes"));
    let isOver = false;
    const sendThree = async () => {
      const statuses: number[] = [];
      for (let i = 0; i < 3; i++)
        statuses.push((await call("greedy", conversation, "compat/chat/completions")).status);
      return statuses;
    };
    const greedy = Promise.all(Array.from({ length: 5 }, sendThree)).finally(() => (isOver = true));
    let answered = 0;
    while (!isOver) {
      expect((await call("other", CHAT)).status).toBe(200);
      answered += 1;
    }
    expect((await greedy).flat()).toEqual(Array.from({ length: 15 }, () => 200));
    // Without their turns, the translations would follow each other, and a call that needs several moments would get one of them after each round.
    expect(answered).toBeGreaterThan(15);
  });
});

describe("answers that are translated", () => {
  const ask = (account: string) =>
    call(
      account,
      JSON.stringify({ model: "anthropic/claude-x", messages: [{ role: "user", content: "hi" }] }),
      "compat/chat/completions",
    );

  it("count in the share of the caller: one that does not fit is refused with 503, and nothing stays counted", async () => {
    provider.answer = (_request, response) => sendJson(response, 200, ANSWER("x".repeat(BUDGET / 2)));
    const refused = await ask("greedy");
    expect([refused.status, refused.headers["retry-after"]]).toEqual([503, expect.any(String)]);
    provider.answer = (_request, response) => sendJson(response, 200, ANSWER("x".repeat(BUDGET / 8)));
    expect((await ask("greedy")).status).toBe(200);
  });
});

describe("an account opens all the realtime sessions it can", () => {
  it("another account still finds a place", async () => {
    const url = (account: string) => `${server.url}/v1/${account}/default/grok/realtime?model=grok-voice`;
    const open = async (account: string) => {
      const session = await openSession(url(account), { headers: bearer(account) });
      ends.push(() => session.socket.terminate());
    };
    let opened = 0;
    for (; opened < SESSIONS; opened++) {
      const status = await open("greedy").then(
        () => 101,
        () => 503,
      );
      if (status !== 101) break;
    }
    expect(opened).toBe(4);
    expect((await refusedSession(url("greedy"), { headers: bearer("greedy") })).status).toBe(503);
    await open("other");
  });
});

describe("notices of alerts", () => {
  let silent: Server;
  let receiver: Server;
  let received = 0;
  beforeAll(async () => {
    silent = createServer(() => undefined).listen(0, "127.0.0.1");
    receiver = createServer((_, response) => {
      received += 1;
      response.end();
    }).listen(0, "127.0.0.1");
    await Promise.all([once(silent, "listening"), once(receiver, "listening")]);
  });
  afterAll(() => {
    for (const one of [silent, receiver]) {
      one.closeAllConnections();
      one.close();
    }
  });
  const urlOf = (one: Server) => `http://127.0.0.1:${(one.address() as AddressInfo).port}/`;

  async function createAlert(account: string, target: Server): Promise<string> {
    const { body } = await server.api("POST", `/accounts/${account}/alerts`, {
      name: account,
      metric: "error_rate",
      threshold: 0.5,
      receivers: Array.from({ length: 5 }, () => ({ type: "webhook", url: urlOf(target) })),
    });
    return (body as { result: { id: string } }).result.id;
  }

  it("receivers of one account that stay silent do not delay those of another; its tests are refused in time", async () => {
    const greedy = await createAlert("greedy", silent);
    const statuses: number[] = [];
    const tests = Array.from({ length: 14 }, () =>
      server
        .api("POST", `/accounts/greedy/alerts/${greedy}/test`)
        .then(({ status }) => statuses.push(status)),
    );
    await expect.poll(() => statuses.includes(503)).toBe(true);
    const other = await createAlert("other", receiver);
    expect((await server.api("POST", `/accounts/other/alerts/${other}/test`)).status).toBe(200);
    expect(received).toBe(5);
    silent.closeAllConnections();
    await Promise.all(tests);
  });
});
