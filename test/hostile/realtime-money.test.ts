/** Responses over WebSockets under a budget: a session allows no more than the same requests over HTTP. gpt-4o writes 128,000 tokens for 1.28 dollars. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { type RealtimePeer, send, startRealtimePeer } from "../peers/realtime.ts";
import { setGateway } from "../support/gateway.ts";
import { openSession, type RealtimeClient } from "../support/realtime.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const MODEL = "gpt-4o";
let peer: RealtimePeer;
let server: TestServer;
beforeAll(async () => {
  peer = await startRealtimePeer();
  server = await startTestServer({ file: { providers: { openai: { baseUrl: `${peer.url}/v1` } } } });
  await setGateway(server, { authentication: true });
  await server.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", {
    provider_slug: "openai",
    secret: "stored-key",
  });
});
afterAll(async () => {
  await server.stop();
  await peer.close();
});
beforeEach(() => {
  peer.sessions.length = 0;
  // Responses begin and do not end.
  peer.serve = ({ socket }) =>
    socket.on("message", (data: Buffer) => {
      const { type } = JSON.parse(data.toString()) as { type: string };
      if (type === "response.create") send(socket, { type: "response.created", response: {} });
    });
});

async function openSessions(limit: number, count: number): Promise<RealtimeClient[]> {
  const { body } = await server.api("POST", "/accounts/default/tokens", {
    name: "text",
    permissions: ["gateway.run"],
    budgets: [{ limit, window: 30 * 86_400 }],
  });
  const { token } = body.result as { token: string };
  const headers = { "gw-aig-authorization": `Bearer ${token}` };
  const open = () => openSession(`${server.url}/v1/default/default/openai/responses`, { headers });
  return Promise.all(Array.from({ length: count }, open));
}

/** Messages that start a response and reached the provider, once every client has its answer. */
async function started(clients: readonly RealtimeClient[]): Promise<number> {
  const isAnswered = ({ events }: RealtimeClient) =>
    events.some(({ type }) => type === "response.created" || type === "error");
  await waitUntil(
    () => clients.every(isAnswered),
    (all) => all,
  );
  const messages = peer.sessions.flatMap((session) => session.messages);
  return messages.filter((text) => text.includes("response.create")).length;
}

const close = (clients: readonly RealtimeClient[]) => {
  for (const { socket } of clients) socket.close();
};

it("many sessions without an output limit exceed a budget by one response at most", async () => {
  const clients = await openSessions(0.5, 8);
  for (const client of clients) client.send({ type: "response.create", model: MODEL, input: "x" });
  expect(await started(clients)).toBe(1);
  close(clients);
});

it.each([
  ["an earlier response", { previous_response_id: "resp_1" }],
  ["a conversation", { conversation: "conv_1" }],
  ["a prompt", { prompt: { id: "pmpt_1" } }],
  ["a hosted tool", { tools: [{ type: "web_search" }] }],
  ["a file", { input: [{ role: "user", content: [{ type: "input_file", file_id: "file_1" }] }] }],
])("a request that refers to %s reserves the whole context window", async (_, members) => {
  const clients = await openSessions(0.1, 2);
  for (const client of clients)
    client.send({ type: "response.create", model: MODEL, max_output_tokens: 10, input: "x", ...members });
  expect(await started(clients)).toBe(1);
  close(clients);
});

it.each([
  ["of settings that this API does not read", '"response":{"max_output_tokens":1}', 1],
  ["inf", '"max_output_tokens":"inf"', 1],
  ["below zero", '"max_output_tokens":-1', 1],
  ["that stands twice", '"max_output_tokens":1,"max_output_tokens":128000', 0],
  ["that stands twice, in two cases", '"max_output_tokens":1,"MAX_OUTPUT_TOKENS":128000', 0],
  ["that is one", '"max_output_tokens":10', 2],
])("an output limit %s is read as the dearest that a provider may read", async (_, member, count) => {
  const clients = await openSessions(0.5, 2);
  for (const { socket } of clients)
    socket.send(`{"type":"response.create","model":"${MODEL}","input":"x",${member}}`);
  expect(await started(clients)).toBe(count);
  close(clients);
});

it("a limit of the session, which the provider may refuse, does not bound its responses", async () => {
  const clients = await openSessions(0.5, 2);
  for (const client of clients) {
    client.send({ type: "session.update", session: { max_output_tokens: 1 } });
    client.send({ type: "response.create", model: MODEL, input: "x" });
  }
  expect(await started(clients)).toBe(1);
  close(clients);
});

it.each([
  ["two models: the dearer one counts", '"model":"gpt-4o-mini","model":"gpt-4o","max_output_tokens":5000'],
  [
    "work in the background, which the session may not show, counts in full",
    '"model":"gpt-4o","max_output_tokens":10,"background":true,"previous_response_id":"r"',
  ],
])("%s", async (_, members) => {
  const clients = await openSessions(0.01, 1);
  clients[0]?.socket.send(`{"type":"response.create","input":"x",${members}}`);
  expect(await started(clients)).toBe(0);
  close(clients);
});
