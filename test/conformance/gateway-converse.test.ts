/** Models of Amazon Bedrock that are not Claude's: the doors reach them through Converse. */
import { crc32 } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { readLogs, send } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let peer: ProviderPeer;
let server: TestServer;

const MODEL = "aws-bedrock/us.amazon.nova-pro-v1:0";
const USAGE = { inputTokens: 30, outputTokens: 12, totalTokens: 52, cacheReadInputTokens: 10 };
const ANSWER = {
  output: {
    message: {
      role: "assistant",
      content: [
        { reasoningContent: { reasoningText: { text: "hm" } } },
        { text: "Hello" },
        { toolUse: { toolUseId: "t1", name: "read", input: { path: "a" } } },
      ],
    },
  },
  stopReason: "tool_use",
  usage: USAGE,
};
const EVENTS: readonly (readonly [type: string, payload: object])[] = [
  ["messageStart", { role: "assistant" }],
  ["contentBlockDelta", { contentBlockIndex: 0, delta: { reasoningContent: { text: "hm" } } }],
  ["contentBlockStop", { contentBlockIndex: 0 }],
  ["contentBlockDelta", { contentBlockIndex: 1, delta: { text: "Hel" } }],
  ["contentBlockDelta", { contentBlockIndex: 1, delta: { text: "lo" } }],
  ["contentBlockStop", { contentBlockIndex: 1 }],
  ["contentBlockStart", { contentBlockIndex: 2, start: { toolUse: { toolUseId: "t1", name: "read" } } }],
  ["contentBlockDelta", { contentBlockIndex: 2, delta: { toolUse: { input: '{"path":' } } }],
  ["contentBlockDelta", { contentBlockIndex: 2, delta: { toolUse: { input: '"a"}' } } }],
  ["contentBlockStop", { contentBlockIndex: 2 }],
  ["messageStop", { stopReason: "tool_use" }],
  ["metadata", { usage: USAGE, metrics: { latencyMs: 5 } }],
];

beforeAll(async () => {
  peer = await startProvider((request, response) => {
    if (!request.url.endsWith("/converse-stream")) {
      sendJson(response, 200, ANSWER);
      return;
    }
    response.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" });
    response.end(Buffer.concat(EVENTS.map(([type, payload]) => message({ ":event-type": type }, payload))));
  });
  server = await startTestServer({
    file: { providers: { "aws-bedrock": { baseUrl: peer.url, region: "eu-west-1" } } },
  });
});

beforeEach(() => {
  peer.requests.length = 0;
});

afterAll(async () => {
  await server.stop();
  await peer.close();
});

/** A message of the binary event stream. */
function message(headers: Readonly<Record<string, string>>, payload: object): Buffer {
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(value.length);
      return Buffer.concat([
        Buffer.from([name.length]),
        Buffer.from(name),
        Buffer.from([7]),
        length,
        Buffer.from(value),
      ]);
    }),
  );
  const body = Buffer.from(JSON.stringify(payload));
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(16 + head.length + body.length, 0);
  prelude.writeUInt32BE(head.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const all = Buffer.concat([prelude, head, body]);
  const end = Buffer.alloc(4);
  end.writeUInt32BE(crc32(all));
  return Buffer.concat([all, end]);
}

function call(path: string, body: object) {
  return send(server, "POST", path, {
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", authorization: "Bearer ABSK-key" },
  });
}

const sent = () => JSON.parse(peer.requests[0]?.body ?? "");
const TOOL = { name: "read", description: "Reads", parameters: { type: "object", properties: {} } };

describe("a chat", () => {
  it("is sent as Converse, with tools, results, pictures and marks of the cache", async () => {
    const answer = await call("/v1/chat/completions", {
      model: MODEL,
      max_tokens: 50,
      temperature: 0.5,
      stop: ["END"],
      tools: [{ type: "function", function: TOOL }],
      messages: [
        { role: "system", content: "Be brief" },
        {
          role: "user",
          content: [
            { type: "text", text: "Look" },
            { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
          ],
        },
        {
          role: "assistant",
          content: "",
          tool_calls: [{ id: "c1", type: "function", function: { name: "read", arguments: '{"path":"x"}' } }],
        },
        { role: "tool", tool_call_id: "c1", content: "text" },
      ],
    });
    expect(answer.status).toBe(200);
    expect(peer.requests[0]?.url).toBe("/model/us.amazon.nova-pro-v1%3A0/converse");
    const point = { cachePoint: { type: "default" } };
    expect(sent()).toEqual({
      system: [{ text: "Be brief" }, point],
      messages: [
        {
          role: "user",
          content: [{ text: "Look" }, { image: { format: "png", source: { bytes: "AAAA" } } }, point],
        },
        {
          role: "assistant",
          content: [{ toolUse: { toolUseId: "c1", name: "read", input: { path: "x" } } }],
        },
        { role: "user", content: [{ toolResult: { toolUseId: "c1", content: [{ text: "text" }] } }, point] },
      ],
      inferenceConfig: { maxTokens: 50, temperature: 0.5, stopSequences: ["END"] },
      toolConfig: {
        tools: [{ toolSpec: { name: "read", description: "Reads", inputSchema: { json: TOOL.parameters } } }],
      },
    });
    const { choices, usage } = JSON.parse(answer.body);
    expect(choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: {
        content: "Hello",
        tool_calls: [{ id: "t1", function: { name: "read", arguments: '{"path":"a"}' } }],
      },
    });
    expect(usage).toMatchObject({ prompt_tokens: 40, completion_tokens: 12 });
    const [row] = await readLogs(server);
    expect(row).toMatchObject({ model: "us.amazon.nova-pro-v1:0", tokens_in: 40, tokens_out: 12 });
    expect(row?.["cost"]).toBeGreaterThan(0);
  });

  it("has no limit and no marks that the model may refuse", async () => {
    await call("/v1/chat/completions", {
      model: "bedrock/meta.llama4-maverick-17b-instruct-v1:0",
      messages: [
        { role: "user", content: "a" },
        { role: "assistant", content: "b" },
        { role: "user", content: "c" },
      ],
    });
    expect(sent()).toEqual({
      messages: [
        { role: "user", content: [{ text: "a" }] },
        { role: "assistant", content: [{ text: "b" }] },
        { role: "user", content: [{ text: "c" }] },
      ],
      inferenceConfig: {},
    });
  });

  it("with the address of a picture is refused: the API takes data", async () => {
    const answer = await call("/v1/chat/completions", {
      model: MODEL,
      messages: [
        { role: "user", content: [{ type: "image_url", image_url: { url: "https://a.test/b.png" } }] },
      ],
    });
    expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([400, "2002"]);
    expect(peer.requests).toEqual([]);
  });
});

it.each([
  [
    "/v1/messages",
    { max_tokens: 9, messages: [{ role: "user", content: "Hi" }] },
    /"partial_json":"\{\\"path\\":/,
  ],
  ["/v1/chat/completions", { messages: [{ role: "user", content: "Hi" }] }, /\[DONE\]/],
  ["/v1/responses", { input: "Hi" }, /response\.completed/],
])("a stream at %s is whole, and metered", async (path, body, expected) => {
  const answer = await call(path, { model: MODEL, stream: true, ...body });
  expect(peer.requests[0]?.url).toBe("/model/us.amazon.nova-pro-v1%3A0/converse-stream");
  expect(answer.headers["content-type"]).toContain("text/event-stream");
  expect(answer.body).toContain("Hel");
  expect(answer.body).toMatch(expected);
  expect(answer.body).not.toContain('"error":{');
  const [row] = await readLogs(server);
  expect(row).toMatchObject({ tokens_in: 40, tokens_out: 12, usage: "reported" });
});

it("an exception of the provider is an error of the client's format", async () => {
  const answered = peer.answer;
  peer.answer = (_, response) =>
    sendJson(response, 400, { message: "Malformed input" }, { "x-amzn-errortype": "ValidationException" });
  const answer = await call("/v1/chat/completions", {
    model: MODEL,
    messages: [{ role: "user", content: "Hi" }],
  });
  peer.answer = answered;
  expect([answer.status, JSON.parse(answer.body).error.message]).toEqual([400, "Malformed input"]);
});

it("OpenAI's open models keep their own API", async () => {
  await call("/v1/chat/completions", {
    model: "bedrock/openai.gpt-oss-120b-1:0",
    messages: [{ role: "user", content: "Hi" }],
  });
  expect(peer.requests[0]?.url).toBe("/openai/v1/chat/completions");
});
