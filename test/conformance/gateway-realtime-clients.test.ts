/** Unmodified clients of realtime APIs through the gateway, against another project's mock of these APIs. */
import { LLMock } from "@copilotkit/aimock";
import { GoogleGenAI, type LiveServerMessage, Modality } from "@google/genai";
import { Agent as HttpsAgent } from "node:https";
import { connect } from "node:net";
import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";
import { ResponsesWS } from "openai/resources/responses/ws";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readLogs, setGateway } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const mock = new LLMock({ port: 0 });
let server: TestServer;
let token: string;
let base: string;
beforeAll(async () => {
  mock.onMessage("hello", {
    content: "Hi there!",
    usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
  });
  await mock.start();
  server = await startTestServer({
    file: {
      providers: {
        openai: { baseUrl: `${mock.url}/v1` },
        "google-ai-studio": { baseUrl: mock.url },
      },
    },
  });
  await setGateway(server, { authentication: true });
  for (const provider of ["openai", "google-ai-studio"]) {
    await server.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", {
      provider_slug: provider,
      secret: "stored-key",
    });
  }
  token = await server.token(["gateway.run"]);
  base = `${server.url}/v1/default/default`;
});
afterAll(async () => {
  await server.stop();
  await mock.stop();
});

/** OpenAI's class speaks TLS only. In front of the service is usually a proxy; here the connection is made without TLS. */
class PlainAgent extends HttpsAgent {
  override createConnection(): ReturnType<typeof connect> {
    return connect(Number(new URL(server.url).port), "127.0.0.1");
  }
}

const rows = (count: number) =>
  waitUntil(
    () => readLogs(server),
    (found) => found.length >= count,
  );

it.each([
  ["a provider's path", () => `${base}/openai`],
  ["the unified door", () => `${server.url}/v1`],
])("OpenAIRealtimeWS talks through %s", async (_, at) => {
  const before = (await readLogs(server)).length;
  const openai = new OpenAI({ apiKey: token, baseURL: at() });
  const realtime = new OpenAIRealtimeWS(
    { model: "gpt-realtime", options: { agent: new PlainAgent() } },
    openai,
  );
  let text = "";
  const done = new Promise<void>((resolve, reject) => {
    realtime.on("error", reject);
    realtime.on("session.created", () => {
      realtime.send({
        type: "session.update",
        session: { type: "realtime", output_modalities: ["text"], instructions: "Be short." },
      });
      realtime.send({
        type: "conversation.item.create",
        item: { type: "message", role: "user", content: [{ type: "input_text", text: "hello" }] },
      });
      realtime.send({ type: "response.create" });
    });
    realtime.on("response.output_text.delta", ({ delta }) => (text += delta));
    realtime.on("response.done", () => resolve());
  });
  await done;
  const closed = new Promise<number>((resolve) => realtime.socket.on("close", resolve));
  realtime.close();
  expect(await closed).toBe(1000);
  expect(text).toBe("Hi there!");
  const [row] = await rows(before + 1);
  expect(row).toMatchObject({
    provider: "openai",
    model: "gpt-realtime",
    request_type: "realtime",
    success: true,
  });
});

it("ResponsesWS talks through a provider's path", async () => {
  const before = (await readLogs(server)).length;
  const openai = new OpenAI({ apiKey: token, baseURL: `${base}/openai` });
  const responses = new ResponsesWS(openai);
  let text = "";
  const done = new Promise<void>((resolve, reject) => {
    responses.on("error", reject);
    responses.on("response.output_text.delta", ({ delta }) => (text += delta));
    responses.on("response.completed", () => resolve());
  });
  responses.send({ type: "response.create", model: "gpt-4o", input: "hello" });
  await done;
  responses.close();
  expect(text).toBe("Hi there!");
  const [row] = await rows(before + 1);
  expect(row).toMatchObject({
    provider: "openai",
    model: "gpt-4o",
    request_type: "responses",
    success: true,
  });
});

it("@google/genai's live connection talks through the gateway", async () => {
  const before = (await readLogs(server)).length;
  const google = new GoogleGenAI({
    apiKey: token,
    httpOptions: { baseUrl: `${base}/google-ai-studio` },
  });
  const messages: LiveServerMessage[] = [];
  const session = await google.live.connect({
    model: "gemini-2.0-flash-live",
    config: { responseModalities: [Modality.TEXT] },
    callbacks: { onmessage: (message) => messages.push(message) },
  });
  session.sendClientContent({ turns: [{ role: "user", parts: [{ text: "hello" }] }], turnComplete: true });
  await waitUntil(
    () => messages,
    (all) => all.some(({ serverContent }) => serverContent?.turnComplete === true),
  );
  session.close();
  expect(messages.map(({ text }) => text ?? "").join("")).toBe("Hi there!");
  const [row] = await rows(before + 1);
  expect(row).toMatchObject({
    provider: "google-ai-studio",
    model: "gemini-2.0-flash-live",
    request_type: "realtime",
    success: true,
  });
});
