/** `env.AI` through the gateway: the published provider with the AI SDK, and the log with the object that called. */
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";

let server: WorkerServer;
let provider: ProviderPeer;
beforeAll(async () => {
  provider = await startProvider(answer);
  server = await startWorker("ai/src/server.ts", {
    env: { OPENAI_API_KEY: "sk-test" },
    file: {
      agents: {
        access: "worker",
        ai: {
          models: {
            "@cf/meta/*": "echo/echo",
            "@cf/tools/*": "openai/tools-1",
            "@cf/embed": "openai/embed-1",
          },
        },
      },
      providers: { openai: { baseUrl: provider.url } },
    },
  });
  // A gateway that requires a token: calls of the program have the server's own.
  await api("PUT", "/accounts/default/ai-gateway/gateways/default", { authentication: true });
});
afterAll(async () => {
  await server.remove();
  await provider.close();
});

interface ChatRequest {
  readonly input?: readonly string[];
  readonly messages?: readonly { readonly role: string; readonly content: string }[];
}

/** A model that calls its tool once, embeds by length, and refuses one word. */
function answer(request: { url: string; body: string }, response: Parameters<typeof sendJson>[0]): void {
  const body = JSON.parse(request.body) as ChatRequest;
  if (request.url.endsWith("/embeddings")) {
    const data = body.input?.map((text, index) => ({ index, embedding: [text.length, 1] }));
    sendJson(response, 200, { data, usage: { prompt_tokens: 3, total_tokens: 3 } });
    return;
  }
  const last = body.messages?.at(-1);
  if (last?.content === "refuse") {
    sendJson(response, 429, { error: { message: "slow down" } });
    return;
  }
  const call = { id: "call_1", type: "function", function: { name: "add", arguments: '{"a":2,"b":3}' } };
  const message =
    last?.role === "tool"
      ? { role: "assistant", content: `The tool said ${last.content}` }
      : { role: "assistant", content: null, tool_calls: [call] };
  const reason = last?.role === "tool" ? "stop" : "tool_calls";
  sendJson(response, 200, {
    choices: [{ index: 0, message, finish_reason: reason }],
    usage: { prompt_tokens: 5, completion_tokens: 2 },
  });
}

async function api(method: string, path: string, body?: unknown): Promise<{ result: unknown }> {
  const response = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await response.json()) as { result: unknown };
}

async function think(name: string, method: string, ...args: unknown[]): Promise<unknown> {
  const response = await fetch(`${server.url}/think/${name}/${method}`, {
    method: "POST",
    body: JSON.stringify(args),
  });
  return response.json();
}

const LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast";

test("the AI SDK generates and streams with the published provider", async () => {
  const generated = (await think("sdk", "generate", LLAMA, "hello there")) as { text: string; input: number };
  expect(generated.text).toContain("hello there");
  expect(generated.input).toBeGreaterThan(0);
  const streamed = (await think("sdk", "stream", LLAMA, "hello stream")) as {
    pieces: string[];
    usage: number;
  };
  expect(streamed.pieces.join("")).toBe(generated.text.replace("hello there", "hello stream"));
  expect(streamed.usage).toBeGreaterThan(0);
});

test("tools are called, and embeddings made", async () => {
  expect(await think("sdk", "withTool", "@cf/tools/one")).toEqual({
    text: 'The tool said {"sum":5}',
    called: [[2, 3]],
  });
  expect(await think("sdk", "embed", "@cf/embed", ["a", "abc"])).toEqual([
    [1, 1],
    [3, 1],
  ]);
});

test("the binding answers in the originals' form", async () => {
  const plain = (await think("raw", "run", LLAMA, { prompt: "plain" })) as {
    result: { response: string };
    log: string;
  };
  expect(plain.result.response).toContain("plain");
  expect(plain.log).toMatch(/^[0-9A-Z]{26}$/);
  const { stream } = (await think("raw", "run", LLAMA, { prompt: "streamed", stream: true })) as {
    stream: string;
  };
  const events = stream.split("\n").filter((line) => line.startsWith("data: {"));
  const text = events.map((line) => (JSON.parse(line.slice(6)) as { response: string }).response).join("");
  expect(text).toContain("streamed");
  expect(stream).toContain("data: [DONE]");
  const raw = await think(
    "raw",
    "run",
    "echo/echo",
    { messages: [{ role: "user", content: "raw" }] },
    { returnRawResponse: true },
  );
  expect(raw).toMatchObject({ status: 200, logId: true, text: expect.stringContaining('"choices"') });
});

test("errors keep the provider's status; unknown models and inputs say what to do", async () => {
  expect(await think("raw", "run", "@cf/tools/one", { prompt: "refuse" })).toEqual({
    error: "3040: 429 slow down",
    name: "AiError",
    status: 429,
  });
  expect(await think("raw", "run", "@cf/none/x", { prompt: "x" })).toMatchObject({
    error: expect.stringContaining("add it to agents.ai.models"),
  });
  expect(await think("raw", "run", LLAMA, { image: [1] })).toMatchObject({
    error: expect.stringContaining("5004: "),
  });
});

test("guardrails hold for the binding: blocked prompts and answers, masks that are put back, streams", async () => {
  const path = "/accounts/default/ai-gateway/gateways/default/guardrails";
  const rules = [
    { id: "animals", on: ["prompt"], type: "words", words: ["zebra"], action: "block" },
    { id: "sea", on: ["response"], type: "words", words: ["walrus"], action: "block" },
    { id: "mail", on: ["prompt"], type: "pii", kinds: ["email"], action: "mask" },
  ];
  await api("PUT", path, { rules });
  onTestFinished(async () => {
    await api("PUT", path, { rules: [] });
  });
  const run = (prompt: string, stream = false) => think("guarded", "run", LLAMA, { prompt, stream });
  expect(await run("a zebra")).toMatchObject({ error: expect.stringContaining("animals") as string });
  expect(await run("a walrus")).toMatchObject({ error: expect.stringContaining("sea") as string });
  expect(await run("to ada@example.org")).toMatchObject({
    result: { response: expect.stringContaining("to ada@example.org") as string },
  });
  expect(JSON.stringify(await run("a zebra", true))).toContain("animals");
  // A stream that has begun is broken off behind its last event, which a program that reads all of it never sees as whole.
  const blocked = await run("here comes a walrus, and sings", true);
  expect(blocked).toMatchObject({ error: expect.any(String) as string });
  expect(JSON.stringify(blocked)).not.toMatch(/walrus|sings/);
  const { result } = (await api("GET", "/accounts/default/ai-gateway/gateways/default/logs?per_page=50")) as {
    result: { guardrail_action?: string; metadata: unknown }[];
  };
  const actions = result
    .filter(({ metadata }) => JSON.stringify(metadata).includes("guarded"))
    .map(({ guardrail_action: action }) => String(action));
  expect(actions.toSorted()).toEqual(["block", "block", "block", "block", "mask"]);
});

test("gateways can be called by name, and their log read and rated", async () => {
  expect(await think("raw", "gateway")).toEqual({
    status: 200,
    url: `${server.url}/v1/default/default/openai`,
    provider: "echo",
    score: 7,
  });
  expect(await think("raw", "others")).toMatchObject({
    names: ["@cf/meta/*", "@cf/tools/*", "@cf/embed"],
    markdown: expect.stringContaining("not available on Signalbox"),
  });
});

test("each call is in the log with the object that made it", async () => {
  await think("logged/one", "generate", LLAMA, "x").catch(() => undefined);
  await think("logged-1", "generate", LLAMA, "for the log");
  await fetch(`${server.url}/outside`);
  const { result } = (await api("GET", "/accounts/default/ai-gateway/gateways/default/logs?per_page=5")) as {
    result: { metadata: unknown; tokens_in: number }[];
  };
  const metadata = result.map((row) =>
    typeof row.metadata === "string" ? (JSON.parse(row.metadata) as unknown) : row.metadata,
  );
  expect(metadata).toContainEqual({ agent: "thinker/logged-1" });
  expect(metadata).toContainEqual({ a: "b" });
});

test("a spend limit holds for each object by itself", async () => {
  const rule = {
    id: "per-agent",
    limitType: "cost",
    limit: 2,
    window: 30 * 86_400,
    metadata: { agent: { mode: "partition" } },
  };
  await api("PUT", "/accounts/default/ai-gateway/gateways/default", {
    authentication: true,
    spend_limits: { enabled: true, rules: [rule] },
  });
  onTestFinished(async () => {
    await api("PUT", "/accounts/default/ai-gateway/gateways/default", {
      authentication: true,
      spend_limits: { enabled: false, rules: [] },
    });
  });
  // Objects that have spent nothing, also in a second try.
  const [rich, other] = [`rich-${crypto.randomUUID()}`, `other-${crypto.randomUUID()}`];
  const spend = (name: string) =>
    think(
      name,
      "run",
      LLAMA,
      { prompt: "x" },
      { extraHeaders: { "cf-aig-custom-cost": '{"total_cost":2}' } },
    );
  expect(await spend(rich)).toMatchObject({ result: { response: expect.any(String) as string } });
  expect(await spend(rich)).toMatchObject({
    status: 429,
    error: expect.stringContaining("per-agent") as string,
  });
  expect(await spend(other)).toMatchObject({ result: { response: expect.any(String) as string } });
  // A model without a price cannot be called under a limit of cost.
  expect(await think("unpriced", "run", "@cf/tools/any", { prompt: "x" })).toHaveProperty("error");
});

test("a chat streams its answer, keeps the transcript, and survives kill -9", async () => {
  const room = `room-${crypto.randomUUID()}`;
  const reply = await chat(room, "first", "hello chat");
  expect(reply).toContain("hello chat");
  server = await server.killAndRestart();
  const messages = (await (await fetch(`${server.url}/agents/chat/${room}/get-messages`)).json()) as {
    role: string;
  }[];
  expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
});

/** Sends a message as the chat client does, and returns the text of the answer. */
async function chat(room: string, id: string, text: string): Promise<string> {
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/agents/chat/${room}`);
  const message = { id: `m-${id}`, role: "user", parts: [{ type: "text", text }] };
  socket.on("open", () =>
    socket.send(
      JSON.stringify({
        type: "cf_agent_use_chat_request",
        id,
        init: { method: "POST", body: JSON.stringify({ messages: [message] }) },
      }),
    ),
  );
  return new Promise((resolve, reject) => {
    let reply = "";
    socket.on("error", reject);
    socket.on("message", (data: Buffer) => {
      const frame = JSON.parse(data.toString()) as {
        type: string;
        id: string;
        body?: string;
        done?: boolean;
      };
      if (frame.type !== "cf_agent_use_chat_response" || frame.id !== id) return;
      const part =
        frame.body === undefined || frame.body === "" ? {} : (JSON.parse(frame.body) as { delta?: string });
      reply += part.delta ?? "";
      if (frame.done !== true) return;
      socket.close();
      resolve(reply);
    });
  });
}
