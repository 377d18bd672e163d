/** Guardrails: every door, both directions, streams, masks, what cannot be read, the cache, money and the rows. */
import { crc32 } from "node:zlib";
import { once } from "node:events";
import { type IncomingMessage, request as httpRequest, type ServerResponse } from "node:http";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { DOOR_ENDPOINTS, GEMINI_METHODS } from "../../packages/signalbox/src/gateway/door/door-path.ts";
import { type ProviderPeer, type ProviderRequest, sendJson, startProvider } from "../peers/provider.ts";
import { type RawAnswer, readLogs, send } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const GATEWAY = "guarded";
const PATH = `/accounts/default/ai-gateway/gateways/${GATEWAY}/guardrails`;
const EMAIL = "ada@example.org";
const RULES = [
  { id: "animals", on: ["prompt"], type: "words", words: ["zebra"], action: "block" },
  { id: "sea", on: ["response"], type: "words", words: ["walrus"], action: "block" },
  { id: "mail", on: ["prompt"], type: "pii", kinds: ["email"], action: "mask" },
  { id: "colours", type: "regex", pattern: "mauve|teal", action: "flag" },
];

let peer: ProviderPeer;
let server: TestServer;
/** What the provider says to a request. */
let say: (request: ProviderRequest) => string;

const maskIn = ({ body }: ProviderRequest) =>
  /<EMAIL_\d+>/.exec(body.replaceAll("\\u003c", "<"))?.[0] ?? "nobody";

beforeAll(async () => {
  peer = await startProvider((request, response) => answerAsAsked(request, response));
  const baseUrl = peer.url;
  server = await startTestServer({
    file: {
      gateway: {
        prices: { openai: { "*": { in: 1000, out: 1000 } } },
        auto: { models: ["openai/m", "anthropic/m"] },
        hosts: { "guarded.example.com": `default/${GATEWAY}` },
        guardrails: { safetyModel: "openai/guard-safety", injectionModel: "openai/guard-injection" },
      },
      outgoing: { allowPrivateHosts: true },
      providers: {
        openai: { baseUrl: `${baseUrl}/v1` },
        anthropic: { baseUrl },
        "google-ai-studio": { baseUrl },
        "aws-bedrock": { baseUrl, region: "eu-west-1" },
        "workers-ai": { baseUrl: `${baseUrl}/client/v4` },
        ollama: { baseUrl },
      },
    },
    environment: { OPENAI_API_KEY: "stored", ANTHROPIC_API_KEY: "stored" },
  });
  await server.api("POST", "/accounts/default/ai-gateway/gateways", {
    id: GATEWAY,
    allow_anonymous_keys: true,
  });
  for (const provider of ["openai", "anthropic"]) {
    await server.api("POST", `/accounts/default/ai-gateway/gateways/${GATEWAY}/provider_configs`, {
      provider_slug: provider,
      alias: "default",
      default_config: true,
      secret_id: `${provider.toUpperCase()}_API_KEY`,
    });
  }
});

afterAll(async () => {
  await server.stop();
  await peer.close();
});

beforeEach(async () => {
  peer.requests.length = 0;
  say = (request) => `I wrote to ${maskIn(request)}.`;
  judge = judgeSays((body) => (/volcano|eruption/.test(body) ? "unsafe\nS9,S2" : "safe"));
  await setRules(RULES);
});

async function setRules(rules: readonly object[]): Promise<void> {
  const { status, body } = await server.api("PUT", PATH, { rules });
  expect([status, body]).toEqual([200, body]);
}

const event = (data: object, name?: string) =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;

/** A message of the binary event stream. */
function awsMessage(type: string, payload: object): Buffer {
  const uint = (value: number, bytes: number) =>
    Buffer.from(value.toString(16).padStart(bytes * 2, "0"), "hex");
  const text = (value: string) => Buffer.concat([uint(value.length, 2), Buffer.from(value)]);
  const head = Buffer.concat(
    [":event-type", ":message-type"].flatMap((name, i) => [
      uint(name.length, 1),
      Buffer.from(name),
      uint(7, 1),
      text(i === 0 ? type : "event"),
    ]),
  );
  const body = Buffer.from(JSON.stringify(payload));
  const prelude = Buffer.concat([uint(16 + head.length + body.length, 4), uint(head.length, 4)]);
  const start = Buffer.concat([prelude, uint(crc32(prelude), 4), head, body]);
  return Buffer.concat([start, uint(crc32(start), 4)]);
}

/** What a judging model says; tests replace it. */
let judge: (request: ProviderRequest, response: ServerResponse) => void;
/** The model, the system's message, and the message that is judged. */
const lastOf = ({ body }: ProviderRequest) => {
  const asked = JSON.parse(body) as { model: string; messages: { role: string; content: string }[] };
  const system = asked.messages.find(({ role }) => role === "system")?.content ?? "";
  return `${asked.model} ${system} ${asked.messages.at(-1)?.content ?? ""}`;
};
const isJudge = ({ body }: ProviderRequest) => body.includes('"model":"guard');
const judgeSays =
  (verdict: (body: string) => string) => (request: ProviderRequest, response: ServerResponse) =>
    sendJson(response, 200, {
      id: "j",
      object: "chat.completion",
      model: "guard",
      choices: [
        {
          index: 0,
          finish_reason: "stop",
          message: { role: "assistant", content: verdict(lastOf(request)) },
        },
      ],
      usage: { prompt_tokens: 100, completion_tokens: 2, total_tokens: 102 },
    });

/** Answers in the dialect of the path, character by character where a stream was asked for. */
function answerAsAsked(request: ProviderRequest, response: ServerResponse): void {
  const { url, body } = request;
  if (isJudge(request)) return judge(request, response);
  const text = say(request);
  if (/\/(?:content|results)$/.test(url)) {
    // What a batch has written: an answer in each line.
    const lines = ["Calm", text].map((content, i) => ({
      custom_id: String(i),
      response: { status_code: 200, body: { choices: [{ index: 0, message: { content } }] } },
    }));
    response.writeHead(200, { "content-type": "application/octet-stream" });
    response.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    return;
  }
  const isStream = /"stream": ?true|stream/i.test(body.includes('"stream":true') ? "stream" : url);
  const characters = Array.from(text);
  const stream = (parts: readonly string[]) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(parts.join(""));
  };
  if (url.includes("/chat/completions")) {
    const choice = (delta: object, finish: string | null = null) =>
      event({
        id: "c",
        object: "chat.completion.chunk",
        model: "m",
        choices: [{ index: 0, delta, finish_reason: finish }],
      });
    const argument = (part: string, i: number) =>
      choice({
        tool_calls: [
          {
            index: 0,
            ...(i === 0 ? { id: "t", type: "function" } : {}),
            function: { ...(i === 0 ? { name: "f" } : {}), arguments: part },
          },
        ],
      });
    if (isStream)
      return stream([
        ...characters.map((part) => choice({ content: part })),
        ...Array.from(JSON.stringify({ to: text })).map(argument),
        choice({}, "stop"),
        event({
          id: "c",
          object: "chat.completion.chunk",
          model: "m",
          choices: [],
          usage: { prompt_tokens: 10, completion_tokens: 20 },
        }),
        "data: [DONE]\n\n",
      ]);
    return sendJson(response, 200, {
      id: "c",
      object: "chat.completion",
      model: "m",
      choices: [
        {
          index: 0,
          finish_reason: "stop",
          message: {
            role: "assistant",
            content: text,
            tool_calls: [
              { id: "t", type: "function", function: { name: "f", arguments: JSON.stringify({ to: text }) } },
            ],
          },
        },
      ],
      usage: { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 },
    });
  }
  if (url.endsWith("/completions")) {
    const choice = (words: string, finish: string | null) => ({
      id: "c",
      object: "text_completion",
      model: "m",
      choices: [{ index: 0, text: words, finish_reason: finish }],
      usage: { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 },
    });
    if (isStream)
      return stream([
        ...characters.map((part) => event(choice(part, null))),
        event(choice("", "stop")),
        "data: [DONE]\n\n",
      ]);
    return sendJson(response, 200, choice(text, "stop"));
  }
  if (url.includes("/messages") && !url.includes("batches")) {
    const usage = { input_tokens: 10, output_tokens: 20 };
    const message = { id: "m", type: "message", role: "assistant", model: "m", stop_sequence: null };
    if (isStream)
      return stream([
        event(
          { type: "message_start", message: { ...message, content: [], stop_reason: null, usage } },
          "message_start",
        ),
        event(
          { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
          "content_block_start",
        ),
        ...characters.map((part) =>
          event(
            { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: part } },
            "content_block_delta",
          ),
        ),
        event({ type: "content_block_stop", index: 0 }, "content_block_stop"),
        event(
          {
            type: "content_block_start",
            index: 1,
            content_block: { type: "tool_use", id: "t", name: "f", input: {} },
          },
          "content_block_start",
        ),
        ...Array.from(JSON.stringify({ to: text })).map((part) =>
          event(
            {
              type: "content_block_delta",
              index: 1,
              delta: { type: "input_json_delta", partial_json: part },
            },
            "content_block_delta",
          ),
        ),
        event({ type: "content_block_stop", index: 1 }, "content_block_stop"),
        event(
          { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage },
          "message_delta",
        ),
        event({ type: "message_stop" }, "message_stop"),
      ]);
    return sendJson(response, 200, {
      ...message,
      content: [
        { type: "text", text },
        { type: "tool_use", id: "t", name: "f", input: { to: text } },
      ],
      stop_reason: "end_turn",
      usage,
    });
  }
  if (url.includes("/responses")) {
    const done = {
      id: "resp_1",
      object: "response",
      status: "completed",
      model: "m",
      output: [
        {
          type: "message",
          id: "msg_1",
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text, annotations: [] }],
        },
      ],
      usage: { input_tokens: 10, output_tokens: 20, total_tokens: 30 },
    };
    const place = { item_id: "msg_1", output_index: 0, content_index: 0 };
    if (isStream)
      return stream([
        event(
          { type: "response.created", response: { ...done, status: "in_progress", output: [] } },
          "response.created",
        ),
        ...characters.map((delta) =>
          event({ type: "response.output_text.delta", ...place, delta }, "response.output_text.delta"),
        ),
        event({ type: "response.output_text.done", ...place, text }, "response.output_text.done"),
        event({ type: "response.completed", response: done }, "response.completed"),
      ]);
    return sendJson(response, 200, done);
  }
  if (url.includes("enerateContent")) {
    const part = (words: string, finish?: string) => ({
      candidates: [
        {
          content: { role: "model", parts: [{ text: words }] },
          ...(finish === undefined ? {} : { finishReason: finish }),
        },
      ],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 20, totalTokenCount: 30 },
    });
    if (url.includes("streamGenerateContent"))
      return stream([...characters.map((words) => event(part(words))), event(part("", "STOP"))]);
    return sendJson(response, 200, part(text, "STOP"));
  }
  if (url.includes("/converse-stream")) {
    response.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" });
    response.end(
      Buffer.concat([
        awsMessage("messageStart", { role: "assistant" }),
        ...characters.map((words) =>
          awsMessage("contentBlockDelta", { contentBlockIndex: 0, delta: { text: words }, p: "abcdefgh" }),
        ),
        awsMessage("contentBlockStop", { contentBlockIndex: 0 }),
        awsMessage("messageStop", { stopReason: "end_turn" }),
        awsMessage("metadata", {
          usage: { inputTokens: 10, outputTokens: 20, totalTokens: 30 },
          metrics: { latencyMs: 5 },
        }),
      ]),
    );
    return;
  }
  if (url.includes("/invoke-with-response-stream")) {
    const chunk = (document: object) =>
      awsMessage("chunk", { bytes: Buffer.from(JSON.stringify(document)).toString("base64"), p: "abcd" });
    response.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" });
    response.end(
      Buffer.concat([
        chunk({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
        ...characters.map((words) =>
          chunk({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: words } }),
        ),
        chunk({ type: "content_block_stop", index: 0 }),
        chunk({ type: "message_stop" }),
      ]),
    );
    return;
  }
  if (url.endsWith("/invoke"))
    return sendJson(response, 200, {
      type: "message",
      role: "assistant",
      content: [{ type: "text", text }],
      stop_reason: "end_turn",
      usage: { input_tokens: 10, output_tokens: 20 },
    });
  if (url.includes("/converse")) {
    return sendJson(response, 200, {
      output: { message: { role: "assistant", content: [{ text }] } },
      stopReason: "end_turn",
      usage: { inputTokens: 10, outputTokens: 20, totalTokens: 30 },
    });
  }
  if (url.includes("/api/chat")) {
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    response.end(
      characters
        .map((content) => `${JSON.stringify({ message: { role: "assistant", content }, done: false })}\n`)
        .join(""),
    );
    return;
  }
  if (url.includes("/ai/run"))
    return sendJson(response, 200, { result: { response: text }, success: true, errors: [], messages: [] });
  if (url.includes("/embeddings"))
    return sendJson(response, 200, {
      object: "list",
      model: "m",
      data: [{ object: "embedding", index: 0, embedding: [0.1] }],
      usage: { prompt_tokens: 1, total_tokens: 1 },
    });
  if (url.includes("/transcriptions")) {
    response.writeHead(200, { "content-type": "text/plain" });
    response.end(text);
    return;
  }
  sendJson(response, 200, { id: "x", data: [{ url: "https://files.example/1", revised_prompt: text }] });
}

interface Door {
  readonly path: string;
  readonly body: (text: string) => string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The answer says what the provider says. */
  readonly isSpoken?: false;
}

const own = `/v1/default/${GATEWAY}`;
const json = (body: (text: string) => unknown) => (text: string) => JSON.stringify(body(text));
const messages = (content: string) => [{ role: "user", content }];
const gatewayHeader = { "gw-aig-gateway-id": GATEWAY };
const FORM = "multipart/form-data; boundary=edge";
const form = (fields: Readonly<Record<string, string>>) =>
  `${Object.entries(fields)
    .map(([name, value]) => `--edge\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
    .join("")}--edge--\r\n`;

/** Every entrance of the data plane that takes a text. */
const DOORS: Readonly<Record<string, Door>> = {
  "the chat API of a provider": {
    path: `${own}/openai/chat/completions`,
    body: json((text) => ({ model: "m", messages: messages(text) })),
  },
  "the chat API of a provider, as a stream": {
    path: `${own}/openai/chat/completions`,
    body: json((text) => ({ model: "m", stream: true, messages: messages(text) })),
  },
  "a resumable stream": {
    path: `${own}/openai/chat/completions`,
    headers: { "gw-aig-resumable": "true" },
    body: json((text) => ({ model: "m", stream: true, messages: messages(text) })),
  },
  "the auto router": {
    path: `${own}/compat/chat/completions`,
    body: json((text) => ({ model: "cloudflare/auto", messages: messages(text) })),
  },
  "the auto router, as a stream": {
    path: `${own}/compat/chat/completions`,
    body: json((text) => ({
      model: "auto",
      stream: true,
      reasoning_effort: "high",
      messages: messages(text),
    })),
  },
  "a host name of a gateway": {
    path: "/openai/chat/completions",
    headers: { host: "guarded.example.com" },
    body: json((text) => ({ model: "m", messages: messages(text) })),
  },
  "a tool's result in the chat API": {
    path: `${own}/openai/chat/completions`,
    body: json((text) => ({ model: "m", messages: [{ role: "tool", tool_call_id: "t", content: text }] })),
  },
  "a tool's arguments in the chat API": {
    path: `${own}/openai/chat/completions`,
    body: json((text) => ({
      model: "m",
      messages: [
        {
          role: "assistant",
          tool_calls: [
            { id: "t", type: "function", function: { name: "f", arguments: JSON.stringify({ to: text }) } },
          ],
        },
      ],
    })),
  },
  "the messages API": {
    path: `${own}/anthropic/v1/messages`,
    body: json((text) => ({ model: "m", max_tokens: 5, messages: messages(text) })),
  },
  "the messages API, as a stream": {
    path: `${own}/anthropic/v1/messages`,
    body: json((text) => ({ model: "m", max_tokens: 5, stream: true, messages: messages(text) })),
  },
  "a tool's input in the messages API": {
    path: `${own}/anthropic/v1/messages`,
    body: json((text) => ({
      model: "m",
      max_tokens: 5,
      messages: [
        {
          role: "assistant",
          content: [{ type: "tool_use", id: "t", name: "f", input: { deep: [{ to: text }] } }],
        },
      ],
    })),
  },
  "a batch of messages": {
    path: `${own}/anthropic/v1/messages/batches`,
    body: json((text) => ({
      requests: [{ custom_id: "1", params: { model: "m", max_tokens: 5, messages: messages(text) } }],
    })),
  },
  "the responses API": {
    path: `${own}/openai/responses`,
    body: json((text) => ({ model: "m", input: text })),
  },
  "the responses API, as a stream": {
    path: `${own}/openai/responses`,
    body: json((text) => ({
      model: "m",
      stream: true,
      input: [{ role: "user", content: [{ type: "input_text", text }] }],
    })),
  },
  "Gemini's API": {
    path: `${own}/google-ai-studio/v1beta/models/m:generateContent`,
    body: json((text) => ({ contents: [{ parts: [{ text }] }] })),
  },
  "Gemini's API, as a stream": {
    path: `${own}/google-ai-studio/v1beta/models/m:streamGenerateContent?alt=sse`,
    body: json((text) => ({ contents: [{ parts: [{ text }] }] })),
  },
  "Bedrock's Converse": {
    path: `${own}/aws-bedrock/bedrock-runtime/eu-west-1/model/m/converse`,
    body: json((text) => ({ messages: [{ role: "user", content: [{ text }] }] })),
  },
  "Bedrock's Converse, as a binary stream": {
    path: `${own}/aws-bedrock/bedrock-runtime/eu-west-1/model/m/converse-stream`,
    body: json((text) => ({ messages: [{ role: "user", content: [{ text }] }] })),
  },
  "a model of Bedrock as it is": {
    path: `${own}/aws-bedrock/bedrock-runtime/eu-west-1/model/m/invoke`,
    body: json((text) => ({ anthropic_version: "x", max_tokens: 5, messages: messages(text) })),
  },
  "a model of Bedrock as it is, as a binary stream with events in base64": {
    path: `${own}/aws-bedrock/bedrock-runtime/eu-west-1/model/m/invoke-with-response-stream`,
    body: json((text) => ({ anthropic_version: "x", max_tokens: 5, messages: messages(text) })),
  },
  completions: {
    path: `${own}/openai/completions`,
    body: json((prompt) => ({ model: "m", prompt })),
  },
  "completions, as a stream": {
    path: `${own}/openai/completions`,
    body: json((prompt) => ({ model: "m", stream: true, prompt })),
  },
  moderations: {
    path: `${own}/openai/moderations`,
    body: json((input) => ({ model: "m", input })),
  },
  "a provider with lines of JSON": {
    path: `${own}/openai/api/chat`,
    body: json((text) => ({ model: "m", messages: messages(text) })),
  },
  "a path that nobody knows": {
    path: `${own}/openai/v9/thoughts`,
    body: json((text) => ({ any: { thing: [text] } })),
  },
  "plain text at a path that nobody knows": {
    path: `${own}/openai/v9/thoughts`,
    body: (text) => text,
    headers: { "content-type": "text/plain" },
  },
  pictures: { path: `${own}/openai/images/generations`, body: json((prompt) => ({ model: "m", prompt })) },
  speech: { path: `${own}/openai/audio/speech`, body: json((input) => ({ model: "m", input, voice: "v" })) },
  "a transcription with a prompt": {
    path: `${own}/openai/audio/transcriptions`,
    body: (prompt) => form({ model: "m", prompt }),
    headers: { "content-type": FORM },
  },
  "the input lines of a batch": {
    path: `${own}/openai/files`,
    body: (text) =>
      form({
        purpose: "batch",
        file: `${JSON.stringify({ custom_id: "1", body: { messages: messages(text) } })}\n${JSON.stringify({ custom_id: "2" })}`,
      }),
    headers: { "content-type": FORM },
  },
  embeddings: {
    path: `${own}/openai/embeddings`,
    body: json((text) => ({ model: "m", input: ["one", text] })),
    isSpoken: false,
  },
  "the universal endpoint": {
    path: own,
    body: json((text) => [
      {
        provider: "openai",
        endpoint: "chat/completions",
        headers: { authorization: "Bearer k" },
        query: { model: "m", messages: messages(text) },
      },
    ]),
  },
  "the unified chat door, translated": {
    path: `${own}/compat/chat/completions`,
    body: json((text) => ({ model: "anthropic/m", max_tokens: 5, messages: messages(text) })),
  },
  "the unified chat door, translated, as a stream": {
    path: `${own}/compat/chat/completions`,
    body: json((text) => ({ model: "anthropic/m", max_tokens: 5, stream: true, messages: messages(text) })),
  },
  "the unified chat door, as it is": {
    path: `${own}/compat/chat/completions`,
    body: json((text) => ({ model: "openai/m", messages: messages(text) })),
  },
  "the bare door of chat": {
    path: "/v1/chat/completions",
    headers: gatewayHeader,
    body: json((text) => ({ model: "openai/m", messages: messages(text) })),
  },
  "the bare door of completions": {
    path: "/v1/completions",
    headers: gatewayHeader,
    body: json((prompt) => ({ model: "openai/m", prompt })),
  },
  "the bare door of completions, as a stream": {
    path: "/v1/completions",
    headers: gatewayHeader,
    body: json((prompt) => ({ model: "openai/m", stream: true, prompt })),
  },
  "the bare door of embeddings": {
    path: "/v1/embeddings",
    headers: gatewayHeader,
    body: json((input) => ({ model: "openai/m", input })),
    isSpoken: false,
  },
  "the bare door of moderations": {
    path: "/v1/moderations",
    headers: gatewayHeader,
    body: json((input) => ({ model: "openai/m", input })),
  },
  "the bare door of rankings": {
    path: "/v1/rerank",
    headers: gatewayHeader,
    body: json((text) => ({ model: "openai/m", query: "q", documents: ["one", text] })),
  },
  "the bare door of pictures": {
    path: "/v1/images/generations",
    headers: gatewayHeader,
    body: json((prompt) => ({ model: "openai/m", prompt })),
  },
  "the bare door of edited pictures": {
    path: "/v1/images/edits",
    headers: { ...gatewayHeader, "content-type": FORM },
    body: (prompt) => form({ model: "openai/m", prompt }),
  },
  "the bare door of variations": {
    path: "/v1/images/variations",
    headers: { ...gatewayHeader, "content-type": FORM },
    body: (user) => form({ model: "openai/m", user }),
  },
  "the bare door of speech": {
    path: "/v1/audio/speech",
    headers: gatewayHeader,
    body: json((input) => ({ model: "openai/m", input, voice: "v" })),
  },
  "the bare door of transcriptions": {
    path: "/v1/audio/transcriptions",
    headers: { ...gatewayHeader, "content-type": FORM },
    body: (prompt) => form({ model: "openai/m", prompt }),
  },
  "the bare door of translated sound": {
    path: "/v1/audio/translations",
    headers: { ...gatewayHeader, "content-type": FORM },
    body: (prompt) => form({ model: "openai/m", prompt }),
  },
  "the bare door of files": {
    path: "/v1/files",
    headers: { ...gatewayHeader, "content-type": FORM },
    body: (text) => form({ purpose: "batch", file: JSON.stringify({ body: { messages: messages(text) } }) }),
  },
  "the bare door of batches": {
    path: "/v1/batches",
    headers: gatewayHeader,
    body: json((text) => ({
      input_file_id: "file-1",
      endpoint: "/v1/chat/completions",
      completion_window: "24h",
      metadata: { text },
    })),
  },
  "the bare door of batches of messages": {
    path: "/v1/messages/batches",
    headers: gatewayHeader,
    body: json((text) => ({
      requests: [{ custom_id: "1", params: { model: "m", max_tokens: 5, messages: messages(text) } }],
    })),
  },
  "the bare door that counts tokens": {
    path: "/v1/messages/count_tokens",
    headers: gatewayHeader,
    body: json((text) => ({ model: "anthropic/m", messages: messages(text) })),
  },
  "the door of Gemini that counts tokens": {
    path: "/v1beta/models/google-ai-studio%2Fm:countTokens",
    headers: { ...gatewayHeader, "x-goog-api-key": "key" },
    body: json((text) => ({ contents: [{ parts: [{ text }] }] })),
    isSpoken: false,
  },
  "the door of Gemini that embeds": {
    path: "/v1beta/models/openai%2Fm:embedContent",
    headers: gatewayHeader,
    body: json((text) => ({ content: { parts: [{ text }] } })),
    isSpoken: false,
  },
  "the door of Gemini that embeds lists": {
    path: "/v1beta/models/openai%2Fm:batchEmbedContents",
    headers: gatewayHeader,
    body: json((text) => ({ requests: [{ content: { parts: [{ text }] } }] })),
    isSpoken: false,
  },
  "ai/v1": {
    path: "/accounts/default/ai/v1/chat/completions",
    headers: gatewayHeader,
    body: json((text) => ({ model: "openai/m", messages: messages(text) })),
  },
  "the door of messages, translated": {
    path: "/v1/messages",
    headers: gatewayHeader,
    body: json((text) => ({ model: "openai/m", max_tokens: 5, messages: messages(text) })),
  },
  "the door of messages, translated, as a stream": {
    path: "/v1/messages",
    headers: gatewayHeader,
    body: json((text) => ({ model: "openai/m", max_tokens: 5, stream: true, messages: messages(text) })),
  },
  "the door of responses, translated": {
    path: "/v1/responses",
    headers: gatewayHeader,
    body: json((text) => ({ model: "anthropic/m", input: text })),
  },
  "the door of responses, translated, as a stream": {
    path: "/v1/responses",
    headers: gatewayHeader,
    body: json((text) => ({ model: "anthropic/m", stream: true, input: text })),
  },
  "the door of Gemini, translated": {
    path: "/v1beta/models/openai%2Fm:generateContent",
    headers: gatewayHeader,
    body: json((text) => ({ contents: [{ role: "user", parts: [{ text }] }] })),
  },
  "the door of Gemini, translated, as a stream": {
    path: "/v1beta/models/openai%2Fm:streamGenerateContent?alt=sse",
    headers: gatewayHeader,
    body: json((text) => ({ contents: [{ role: "user", parts: [{ text }] }] })),
  },
  "a model of Converse at the chat door": {
    path: `${own}/compat/chat/completions`,
    body: json((text) => ({ model: "aws-bedrock/us.amazon.nova-pro-v1:0", messages: messages(text) })),
  },
  "a model of Converse at the chat door, as a stream": {
    path: `${own}/compat/chat/completions`,
    body: json((text) => ({
      model: "aws-bedrock/us.amazon.nova-pro-v1:0",
      stream: true,
      messages: messages(text),
    })),
  },
  "ai/run": {
    path: "/accounts/default/ai/run/openai/m",
    headers: gatewayHeader,
    body: json((text) => ({ messages: messages(text) })),
  },
};

/** What arrives, also of an answer that breaks off. */
async function call(
  door: Door,
  text: string,
  headers: Readonly<Record<string, string>> = {},
  method = "POST",
): Promise<RawAnswer> {
  const request = httpRequest(`${server.url}${door.path}`, {
    method,
    agent: false,
    headers: { "content-type": "application/json", authorization: "Bearer key", ...door.headers, ...headers },
  });
  request.end(door.body(text));
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const chunks: Buffer[] = [];
  response.on("data", (chunk: Buffer) => chunks.push(chunk));
  response.on("error", () => undefined);
  await new Promise((resolve) => response.once("close", resolve));
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: Buffer.concat(chunks)
      .toString()
      .replaceAll(/"bytes":"([A-Za-z0-9+/=]+)"/g, (_, bytes: string) =>
        Buffer.from(bytes, "base64").toString(),
      ),
  };
}

/** All texts of an answer, without what stands between the pieces of a stream. */
function spoken(body: string): string {
  return [
    ...body.matchAll(
      /"(?:content|text|delta|partial_json|arguments|revised_prompt|response|to)":\s?"((?:[^"\\]|\\.)*)"/g,
    ),
  ]
    .map(([, text = ""]) => text.replaceAll("\\", ""))
    .join("");
}

/** Bodies that the provider got. A job also reads files there. */
const sentTexts = () => peer.requests.filter(({ method }) => method === "POST").map(({ body }) => body);

describe.each(Object.entries(DOORS))("%s", (_, door) => {
  it("sends no blocked prompt, and writes a row that costs nothing", async () => {
    const answer = await call(door, "Draw a ze\u200bbra!");
    expect([answer.status, sentTexts()]).toEqual([424, []]);
    expect(answer.body).toContain("animals");
    expect(answer.body).not.toContain("Draw");
    const id = answer.headers["gw-aig-log-id"];
    const row = (await readLogs(server, GATEWAY)).find((one) => one["id"] === id);
    expect(row).toMatchObject({ status_code: 424, success: false, cost: 0, guardrail_action: "block" });
  });

  it("masks a text for the provider, and puts it back into the answer", async () => {
    const answer = await call(door, `Write to ${EMAIL}, please`);
    expect([answer.status, answer.body]).toEqual([200, answer.body]);
    const [sent = "", ...others] = sentTexts();
    expect(others).toEqual([]);
    expect(sent).not.toContain("ada@");
    expect(sent).toMatch(/(?:<|\\u003c)EMAIL_\d/);
    expect(answer.body).not.toMatch(/EMAIL_\d/);
    if (door.isSpoken !== false) expect(`${spoken(answer.body)}${answer.body}`).toContain(EMAIL);
  });

  // An answer without words has nothing to block.
  if (door.isSpoken === false) return;

  it("passes no blocked answer on, not even a part of the found text", async () => {
    say = () => "The walrus sings";
    const answer = await call(door, "Sing");
    expect(answer.body).not.toMatch(/walrus|sings/);
    expect(spoken(answer.body)).not.toMatch(/wal|sings/);
    expect(answer.body).toContain("sea");
    if (answer.headers["content-type"]?.startsWith("application/json"))
      expect(answer.status).toBe(door.path.includes("/ai/run/") ? 422 : 424);
  });
});

const CHAT_DOOR: Door = {
  path: `${own}/openai/chat/completions`,
  body: json((text) => ({ model: "m", messages: messages(text) })),
};

/** Paths at which an answer is read that was made earlier, or by a batch. */
const READS: Readonly<Record<string, Pick<Door, "path" | "headers">>> = {
  "the file of a batch": { path: `${own}/openai/files/file-1/content` },
  "the results of a batch of messages": { path: `${own}/anthropic/v1/messages/batches/b-1/results` },
  "the bare door of files": { path: "/v1/files/file-1/content", headers: gatewayHeader },
  "the bare door of batches": { path: "/v1/batches/batch-1", headers: gatewayHeader },
  "the bare door of batches of messages": {
    path: "/v1/messages/batches/b-1/results",
    headers: gatewayHeader,
  },
  "a response that the provider keeps": { path: "/v1/responses/resp_1", headers: gatewayHeader },
};

describe.each(Object.entries(READS))("what is read at %s", (_, read) => {
  it("has no blocked text", async () => {
    const door = { ...read, body: () => "" };
    say = () => "Calm";
    const calm = await call(door, "", {}, "GET");
    expect([calm.status, calm.body]).toEqual([200, expect.stringContaining("Calm")]);
    say = () => "The walrus sings";
    const answer = await call(door, "", {}, "GET");
    expect([answer.status, answer.body]).toEqual([424, expect.stringContaining("sea")]);
    expect(answer.body).not.toMatch(/walrus|sings/);
  });
});

describe("the list of doors", () => {
  const paths = Object.values(DOORS).map(({ path }) => path);

  it("has a case for each endpoint of the unified doors", () => {
    // A new endpoint gets a case here: what it sends and receives must pass the rules.
    const hasCase = (endpoint: string) =>
      paths.includes(`/v1/${endpoint}`) ||
      Object.values(READS).some(({ path }) => path.startsWith(`/v1/${endpoint.replace("{id}", "")}`));
    // The gateway lists models itself.
    expect(DOOR_ENDPOINTS.filter((endpoint) => !hasCase(endpoint))).toEqual(["models"]);
    const calls = (method: string) =>
      paths.some((path) => path.startsWith("/v1beta/") && path.replace(/\?.*/, "").endsWith(`:${method}`));
    expect(GEMINI_METHODS.filter((method) => !calls(method))).toEqual([]);
  });
});

describe("rules", () => {
  it("of the gateway can be read and written back, and a stale change is refused", async () => {
    const read = await server.api("GET", PATH);
    const { result } = read.body as { result: { rules: object[] } };
    expect(result.rules).toHaveLength(RULES.length);
    expect(result.rules[0]).toMatchObject({ ...RULES[0], on_failure: "block", enabled: true });
    expect((await server.api("PUT", PATH, result)).status).toBe(200);
    const wrong = await server.api("PUT", PATH, {
      rules: [{ id: "x", type: "regex", pattern: "(", action: "block" }],
    });
    expect([wrong.status, JSON.stringify(wrong.body)]).toEqual([400, expect.stringContaining("RE2")]);
    const gateway = await server.api("GET", `/accounts/default/ai-gateway/gateways/${GATEWAY}`);
    expect(gateway.body).not.toHaveProperty("result.guardrail_rules");
  });

  it("of the account apply to all gateways", async () => {
    const path = "/accounts/default/ai-gateway/guardrails";
    await setRules([]);
    expect((await call(CHAT_DOOR, "a zebra")).status).toBe(200);
    await server.api("PUT", path, { rules: [RULES[0]] });
    expect((await call(CHAT_DOOR, "a zebra")).status).toBe(424);
    await server.api("PUT", path, { rules: [] });
    expect((await call(CHAT_DOOR, "a zebra")).status).toBe(200);
  });

  it("of a token apply to its calls, and the strictest action wins", async () => {
    await setRules([{ id: "seen", type: "words", words: ["otter"], action: "flag" }]);
    const { body } = await server.api("POST", "/accounts/default/tokens", {
      name: "guarded",
      permissions: ["gateway.run"],
      guardrails: [{ id: "own", type: "words", words: ["otter"], action: "block" }],
    });
    const { token } = (body as { result: { token: string } }).result;
    expect((await call(CHAT_DOOR, "an otter")).status).toBe(200);
    const refused = await call(CHAT_DOOR, "an otter", { "gw-aig-authorization": `Bearer ${token}` });
    expect([refused.status, refused.body]).toEqual([424, expect.stringContaining("own")]);
  });

  it("can be tried on a text", async () => {
    const { body } = await server.api("POST", "/accounts/default/ai-gateway/guardrails/try", {
      rules: RULES,
      text: `mauve, ${EMAIL}`,
    });
    expect(body).toMatchObject({
      result: { action: "mask", text: "mauve, <EMAIL_1>", findings: [{ rule: "colours" }, { rule: "mail" }] },
    });
  });
});

describe("rows", () => {
  it("have what was found and never the text, and can be filtered by it", async () => {
    say = () => "It is teal";
    const answer = await call(CHAT_DOOR, `mauve ${EMAIL}`);
    const logs = `/accounts/default/ai-gateway/gateways/${GATEWAY}/logs`;
    const { body } = await server.api(
      "GET",
      `${logs}?filters.key=guardrail_action&filters.operator=eq&filters.value=mask&per_page=50`,
    );
    const { result } = body as { result: Record<string, string>[] };
    const row = result.find(({ id }) => id === answer.headers["gw-aig-log-id"]);
    expect(row?.["guardrail_action"]).toBe("mask");
    expect(row?.["guardrails"]).not.toContain("ada@");
    expect(JSON.parse(row?.["guardrails"] ?? "")).toMatchObject([
      { rule: "colours", owner: "gateway", place: "prompt", action: "flag", count: 1 },
      { rule: "mail", place: "prompt", action: "mask", kind: "EMAIL" },
      { rule: "colours", place: "response", action: "flag" },
    ]);
  });

  it("of a prompt that cannot be masked say that it was blocked", async () => {
    const url = `data:text/plain;base64,${Buffer.from(`write to ${EMAIL}`).toString("base64")}`;
    const answer = await call(CHAT_DOOR, url);
    expect([answer.status, peer.requests]).toEqual([424, []]);
    expect(answer.headers["gw-aig-guardrails"]).toBe("window");
    const id = answer.headers["gw-aig-log-id"];
    const row = (await readLogs(server, GATEWAY)).find((one) => one["id"] === id);
    expect(row).toMatchObject({ status_code: 424, cost: 0, guardrail_action: "block" });
  });

  it("of a blocked answer are charged with what the answer used", async () => {
    say = () => "The walrus sings";
    for (const stream of [false, true]) {
      const door = { ...CHAT_DOOR, body: json((text) => ({ model: "m", stream, messages: messages(text) })) };
      const answer = await call(door, "Sing");
      const row = await waitUntil(
        async () =>
          (await readLogs(server, GATEWAY)).find(({ id }) => id === answer.headers["gw-aig-log-id"]),
        (found) => found !== undefined,
      );
      expect(row).toMatchObject({ success: false, guardrail_action: "block" });
      expect(Number(row?.["cost"])).toBeGreaterThan(0);
      if (!stream) expect(row).toMatchObject({ status_code: 424, tokens_in: 10, tokens_out: 20 });
    }
  });
});

describe("stored calls", () => {
  const ACCOUNT = "/accounts/default/ai-gateway";
  const STREAM_DOOR: Door = {
    ...CHAT_DOOR,
    body: json((text) => ({ model: "m", stream: true, messages: messages(text) })),
  };
  const logs = `${ACCOUNT}/gateways/${GATEWAY}/logs`;
  type Found = Record<"block" | "mask" | "flag" | "calls" | "incomplete", number> & {
    rules: { rule: string; place: string; calls: number; count: number }[];
    samples: { id: string; action: string; findings: object[] }[];
  };
  const tryCalls = async (rules: readonly object[], query = "", token?: string) => {
    const path = `${ACCOUNT}/guardrails/try/calls?${query}`;
    const { status, body } = await server.api("POST", path, { rules }, token);
    const { result, result_info: info } = body as { result: Found; result_info: { cursor: string | null } };
    return { status, result, cursor: info?.cursor, text: JSON.stringify(body) };
  };

  it("show what other rules would have done, by rule and place, and never a text", async () => {
    await setRules([]);
    say = () => `the numbat sends 4111 1111 1111 1111 to ${EMAIL}`;
    const ids: (string | string[] | undefined)[] = [];
    for (const [door, text] of [
      [CHAT_DOOR, "quagga one"],
      [STREAM_DOOR, `quagga two of ${EMAIL} and bob@example.org`],
      [CHAT_DOOR, "quagga three"],
    ] as const)
      ids.push((await call(door, text)).headers["gw-aig-log-id"]);
    await waitUntil(
      () => readLogs(server, GATEWAY),
      (rows) => ids.every((id) => rows.some((row) => row["id"] === id)),
    );
    const tried = await tryCalls(
      [
        { id: "three", on: ["prompt"], type: "words", words: ["three"], action: "block" },
        { id: "numbats", on: ["response"], type: "words", words: ["numbat"], action: "flag" },
        { id: "mail", type: "pii", kinds: ["email", "card"], action: "mask" },
        { id: "off", type: "words", words: ["quagga"], action: "block", enabled: false },
      ],
      "q=quagga",
    );
    expect(tried.result).toMatchObject({ calls: 3, incomplete: 0, block: 1, mask: 2, flag: 0 });
    expect(tried.cursor).toBe(null);
    const counts = tried.result.rules.map(({ rule, place, calls, count }) => [rule, place, calls, count]);
    expect(counts).toEqual(
      expect.arrayContaining([
        ["three", "prompt", 1, 1],
        ["mail", "prompt", 1, 2],
        ["numbats", "response", 2, expect.any(Number)],
      ]),
    );
    expect(tried.result.samples.map(({ id, action }) => [id, action])).toEqual([
      [ids[2], "block"],
      [ids[1], "mask"],
      [ids[0], "mask"],
    ]);
    expect(tried.text).not.toMatch(/ada@|4111|numbat sends/);
    // Nothing was called, and the rows are as they were.
    const rows = await readLogs(server, GATEWAY);
    expect(rows.find(({ id }) => id === ids[2])).not.toHaveProperty("guardrail_action");
    const first = await tryCalls(
      [{ id: "a", type: "words", words: ["quagga"], action: "flag" }],
      "q=quagga&limit=2",
    );
    expect([first.result.calls, first.cursor]).toEqual([2, expect.any(String)]);
    const rest = await tryCalls(
      [{ id: "a", type: "words", words: ["quagga"], action: "flag" }],
      `q=quagga&limit=2&cursor=${first.cursor}`,
    );
    expect([rest.result.calls, rest.cursor]).toEqual([1, null]);
  });

  it("are tried for those who may read them, and without asking anybody", async () => {
    const rule = { id: "a", type: "words", words: ["quagga"], action: "flag" };
    await server.api("POST", `${ACCOUNT}/gateways`, { id: "apart" });
    const bound = await server.token(["gateway.read"], { gateway_id: "apart" });
    expect((await tryCalls([rule], "q=quagga", bound)).result.calls).toBe(0);
    expect((await tryCalls([rule], `gateway_id=${GATEWAY}`, bound)).status).toBe(403);
    const alone = { rules: [rule], text: "a quagga" };
    const tried = await server.api("POST", `${ACCOUNT}/guardrails/try`, alone, bound);
    expect(tried.body).toMatchObject({ result: { action: "flag" } });
    expect((await tryCalls([rule], "", await server.token(["gateway.run"]))).status).toBe(403);
    const other = await server.api("POST", "/accounts", { id: "others", name: "Others" });
    expect(other.status).toBe(200);
    const stranger = await server.token(["gateway.read"], { account: "others" });
    expect((await tryCalls([rule], "", stranger)).status).toBe(403);
    const judging = { id: "j", type: "model", model: "openai/guard", action: "block" };
    expect((await tryCalls([judging])).status).toBe(400);
    expect((await tryCalls([rule], "filter=typo")).status).toBe(400);
    expect((await tryCalls([rule], "cursor=%00")).status).toBe(400);
  });

  it("are counted by what the rules found in them", async () => {
    await setRules([{ id: "aardvarks", type: "words", words: ["aardvark"], action: "flag" }]);
    say = () => "an aardvark";
    const answer = await call(CHAT_DOOR, "an aardvark and an aardvark");
    const found = await waitUntil(
      async () => {
        const { body } = await server.api(
          "GET",
          `${ACCOUNT}/guardrails/findings?gateway_id=${GATEWAY}&limit=10000&samples=100`,
        );
        return (body as { result: Found }).result;
      },
      ({ samples }) => samples.some(({ id }) => id === answer.headers["gw-aig-log-id"]),
    );
    expect(found.flag).toBeGreaterThan(0);
    expect(found.rules.filter(({ rule }) => rule === "aardvarks")).toMatchObject([
      { owner: "gateway", place: "prompt", action: "flag", calls: 1, count: 2 },
      { owner: "gateway", place: "response", action: "flag", calls: 1 },
    ]);
  });

  it("hold masks, wherever they are read, if a rule keeps its texts out of the log", async () => {
    await setRules([
      { id: "mail", type: "pii", kinds: ["email"], action: "mask", on: ["prompt"], logs: "masked" },
      { id: "secret", type: "words", words: ["okapi"], action: "flag", logs: "masked" },
      { id: "zoo", type: "words", words: ["zebra"], action: "block", on: ["prompt"], logs: "masked" },
    ]);
    say = (request) => `I wrote to ${maskIn(request)} of the okapi.`;
    for (const door of [
      CHAT_DOOR,
      STREAM_DOOR,
      DOORS["a model of Converse at the chat door"],
      DOORS["ai/run"],
    ] as readonly Door[]) {
      const answer = await call(door, `Tell the gnu of ${EMAIL} about an okapi`);
      expect(`${spoken(answer.body)}${answer.body}`).toContain(EMAIL);
      const id = String(answer.headers["gw-aig-log-id"]);
      await waitUntil(
        () => readLogs(server, GATEWAY),
        (rows) => rows.some((row) => row["id"] === id),
      );
      const bodies = await Promise.all(
        ["request", "response"].map((side) => server.api("GET", `${logs}/${id}/${side}`)),
      );
      for (const { status, text } of bodies.map(({ status: code, body }) => ({
        status: code,
        text: JSON.stringify(body),
      })))
        expect([status, text]).toEqual([200, expect.not.stringMatching(/example\.org|okapi/)]);
      expect(JSON.stringify(bodies[0]?.body)).toContain("<EMAIL_1>");
      const row = (await readLogs(server, GATEWAY)).find((one) => one["id"] === id);
      expect(row).toMatchObject({ guardrail_action: "mask", success: true });
    }
    const refused = await call(CHAT_DOOR, "a zebra of the gnu");
    expect(refused.status).toBe(424);
    await waitUntil(
      () => readLogs(server, GATEWAY),
      (rows) => rows.some((row) => row["id"] === refused.headers["gw-aig-log-id"]),
    );
    expect(
      JSON.stringify(
        (await server.api("GET", `${logs}/${String(refused.headers["gw-aig-log-id"])}/request`)).body,
      ),
    ).toContain("a <ZOO_1> of the gnu");
    for (const text of ["an okapi", `gnu of ${EMAIL}`]) {
      const { body } = await server.api("GET", `${ACCOUNT}/logs?q=${encodeURIComponent(text)}`);
      expect((body as { result: unknown[] }).result).toEqual([]);
    }
    const exported = await send(server, "GET", `${ACCOUNT}/logs/export?q=gnu&bodies=true`, {
      headers: { authorization: `Bearer ${await server.token(["gateway.read"])}` },
    });
    expect(exported.body).toContain("EMAIL_1");
    expect(exported.body).not.toMatch(/gnu of ada|okapi/);
    const curl = await send(server, "GET", `${logs}/${String(refused.headers["gw-aig-log-id"])}/curl`, {
      headers: { authorization: `Bearer ${await server.token(["gateway.read"])}` },
    });
    expect(curl.body).toContain("ZOO_1");
    expect(curl.body).not.toContain("zebra");
  });

  it("have no body in which a rule that keeps texts out of the log cannot be applied", async () => {
    const rule = { id: "secret", type: "words", words: ["okapi"], action: "flag", on_failure: "allow" };
    await setRules([{ ...rule, logs: "masked" }]);
    const hidden = `data:text/plain;base64,${Buffer.from("an okapi").toString("base64")}`;
    const judged = { id: "judge", on: ["prompt"], type: "model", model: "openai/guard", action: "flag" };
    for (const [rules, text] of [
      [[{ ...rule, logs: "masked" }], hidden],
      [[{ ...judged, logs: "masked" }], "a volcano"],
    ] as const) {
      await setRules(rules);
      const answer = await call(CHAT_DOOR, text);
      expect(answer.status).toBe(200);
      const id = String(answer.headers["gw-aig-log-id"]);
      await waitUntil(
        () => readLogs(server, GATEWAY),
        (rows) => rows.some((row) => row["id"] === id),
      );
      expect((await server.api("GET", `${logs}/${id}/request`)).status).toBe(404);
      expect((await server.api("GET", `${logs}/${id}/response`)).status).toBe(200);
    }
  });
});

describe("the header gw-aig-guardrails", () => {
  const asks = (value: string) => ({ "gw-aig-guardrails": value });
  it("adds rules to those that apply, and takes none away", async () => {
    const masked = await call(CHAT_DOOR, "card 4111 1111 1111 1111", asks("card=mask"));
    expect(masked.status).toBe(200);
    expect(peer.requests[0]?.body).toContain("<CARD_1>");
    const row = (await readLogs(server, GATEWAY)).find(({ id }) => id === masked.headers["gw-aig-log-id"]);
    expect(JSON.parse(String(row?.["guardrails"]))).toMatchObject([
      { rule: "card-mask", owner: "call", place: "prompt", action: "mask" },
    ]);
    expect((await call(CHAT_DOOR, "card 4111 1111 1111 1111", asks("pii=flag, card=block"))).status).toBe(
      424,
    );
    await setRules([{ id: "people", type: "pii", action: "block" }]);
    expect((await call(CHAT_DOOR, `to ${EMAIL}`, asks("pii=flag"))).status).toBe(424);
    await setRules([]);
    expect((await call(CHAT_DOOR, `to ${EMAIL}`)).status).toBe(200);
    for (const value of ["", "off", "pii=allow", "words=block", "pii", "__proto__=mask"])
      expect((await call(CHAT_DOOR, "Hello", asks(value))).status, value).toBe(400);
  });

  it("of any step of a universal request holds for the call, and other answers are not taken from the cache", async () => {
    await setRules([]);
    const step = { provider: "openai", endpoint: "chat/completions" };
    const query = { model: "m", messages: messages(`a caracal of ${EMAIL}`) };
    const headers = { authorization: "Bearer k" };
    const steps = [
      { ...step, headers, query },
      { ...step, headers: { ...headers, ...asks("email=block") }, query },
    ];
    const refused = await call({ path: own, body: () => JSON.stringify(steps) }, "");
    expect([refused.status, peer.requests]).toEqual([424, []]);
    const cached = { "gw-aig-cache-ttl": "60" };
    const status = async (more: Record<string, string>) =>
      (await call(CHAT_DOOR, "a caracal", { ...cached, ...more })).headers["gw-aig-cache-status"];
    expect([await status({}), await status({}), await status(asks("pii=mask"))]).toEqual([
      "MISS",
      "HIT",
      "MISS",
    ]);
  });
});

describe("the setting dlp of the original", () => {
  const path = `/accounts/default/ai-gateway/gateways/${GATEWAY}`;
  const card = "card 4111 1111 1111 1111";
  it("blocks or flags what its profiles mean, with the codes, the header and the filter of the original", async () => {
    await setRules([]);
    const policy = { id: "p1", enabled: true, action: "BLOCK", check: ["REQUEST"], profiles: ["financial"] };
    expect((await server.api("PUT", path, { dlp: { enabled: true, policies: [policy] } })).status).toBe(200);
    const refused = await call(CHAT_DOOR, card);
    expect([refused.status, refused.body]).toEqual([424, expect.stringContaining("2029")]);
    const finding = {
      policy_ids: ["p1"],
      check: "REQUEST",
      profile: { profile_id: "financial", entry_ids: ["card"] },
    };
    expect(JSON.parse(String(refused.headers["gw-aig-dlp"]))).toEqual({
      action: "BLOCK",
      findings: [finding],
    });
    say = () => card;
    expect((await call(CHAT_DOOR, "Hello")).status).toBe(200);
    await server.api("PUT", path, { dlp: { enabled: true, action: "BLOCK", profiles: ["financial"] } });
    const answer = await call(CHAT_DOOR, "Hello");
    expect([answer.status, answer.body]).toEqual([424, expect.stringContaining("2030")]);
    await server.api("PUT", path, { dlp: { enabled: true, action: "FLAG", profiles: ["financial"] } });
    const flagged = await call(CHAT_DOOR, card);
    expect([flagged.status, flagged.headers["cf-aig-dlp"]]).toEqual([
      200,
      expect.stringContaining('"action":"FLAG"'),
    ]);
    const { body } = await server.api(
      "GET",
      `${path}/logs?filters.key=dlp_action&filters.operator=eq&filters.value=FLAG`,
    );
    expect((body as { result: { id: string }[] }).result.map(({ id }) => id)).toEqual([
      flagged.headers["gw-aig-log-id"],
    ]);
    const unknown = await server.api("PUT", path, {
      dlp: { enabled: true, action: "BLOCK", profiles: ["x"] },
    });
    expect([unknown.status, JSON.stringify(unknown.body)]).toEqual([400, expect.stringContaining("dlp")]);
    expect(JSON.stringify(unknown.body)).toContain('dlp.profiles.0: \\"x\\" is not known');
    const sourceCode = await server.api("PUT", path, {
      dlp: {
        enabled: true,
        policies: [{ ...policy, profiles: ["financial", "0e1a3432-c838-4b28-b13e-2958047fad7c"] }],
      },
    });
    expect([sourceCode.status, JSON.stringify(sourceCode.body)]).toEqual([
      400,
      expect.stringContaining("Source Code"),
    ]);
    const theirs = ["0b7a9f1e-34b1-4b68-8a2f-1c5d9f0a7e11"];
    for (const dlp of [
      { enabled: false, action: "BLOCK", profiles: theirs },
      { enabled: false, policies: [{ ...policy, profiles: theirs }] },
      { enabled: true, policies: [{ ...policy, enabled: false, profiles: theirs }] },
    ]) {
      const kept = await server.api("PUT", path, { dlp });
      expect([kept.status, kept.body]).toMatchObject([200, { result: { dlp } }]);
      expect((await call(CHAT_DOOR, card)).status).toBe(200);
    }
    await server.api("PUT", path, { dlp: null });
  });
});

it.each([
  ["e91a2360-da51-4fdf-9711-bcdecd462614", "card 4111 1111 1111 1111", "card"],
  ["d658f520-6ecb-4a34-a725-ba37243c2d28", "ssn 123-45-6789", "id"],
  ["9111845c-6a77-4c6e-af7e-0d51960b48a4", `write to ${EMAIL}`, "email"],
  ["C8932CC4-3312-4152-8041-F3F257122DC4", "AKIAIOSFODNN7EXAMPLE", "key"],
])("the predefined profile %s of the original finds what it means there", async (profile, text, kind) => {
  const path = `/accounts/default/ai-gateway/gateways/${GATEWAY}`;
  await setRules([]);
  const policy = { id: "p", enabled: true, action: "BLOCK", check: ["REQUEST"], profiles: [profile] };
  const { status, body } = await server.api("PUT", path, { dlp: { enabled: true, policies: [policy] } });
  try {
    expect([status, body]).toMatchObject([200, { result: { dlp: { policies: [policy] } } }]);
    const refused = await call(CHAT_DOOR, text);
    expect([refused.status, refused.body]).toEqual([424, expect.stringContaining("2029")]);
    expect(JSON.parse(String(refused.headers["gw-aig-dlp"]))).toMatchObject({
      findings: [{ policy_ids: ["p"], profile: { profile_id: profile, entry_ids: [kind] } }],
    });
    expect((await call(CHAT_DOOR, "Hello")).status).toBe(200);
  } finally {
    await server.api("PUT", path, { dlp: null });
  }
});

describe("the cache", () => {
  const cached = { "gw-aig-cache-ttl": "60" };
  it("answers a call again under the same rules only, and keeps masked texts apart", async () => {
    const text = `unique question of ${EMAIL}`;
    const ask = async (words: string, headers: Record<string, string> = cached) =>
      (await call(CHAT_DOOR, words, headers)).headers["gw-aig-cache-status"];
    expect(await ask(text)).toBe("MISS");
    expect(await ask(text)).toBe("HIT");
    expect((await call(CHAT_DOOR, text, cached)).body).toContain(EMAIL);
    expect(await ask(text.replace("ada", "bob"))).toBe("MISS");
    const named = { ...cached, "gw-aig-cache-key": "one" };
    expect(await ask(text, named)).toBe("MISS");
    expect(await ask("nothing masked", named)).toBe("MISS");
    expect((await call(CHAT_DOOR, "a zebra", named)).status).toBe(424);
    await setRules([...RULES, { id: "more", type: "words", words: ["heron"], action: "flag" }]);
    expect(await ask(text)).toBe("MISS");
  });
});

describe("other ways to an answer", () => {
  it("a replay is searched under the rules of today", async () => {
    await setRules([]);
    const first = await call(CHAT_DOOR, "a zebra");
    await setRules(RULES);
    peer.requests.length = 0;
    const id = String(first.headers["gw-aig-log-id"]);
    const token = await server.token(["gateway.run", "gateway.read"]);
    const replay = await send(
      server,
      "POST",
      `/accounts/default/ai-gateway/gateways/${GATEWAY}/logs/${id}/replay`,
      { body: "{}", headers: { "content-type": "application/json", authorization: `Bearer ${token}` } },
    );
    expect(replay.body).toMatch(/424|2016/);
    expect(peer.requests).toEqual([]);
  });

  it("steps of a fallback are all searched, and a blocked answer has no fallback", async () => {
    say = () => "The walrus sings";
    const step = { provider: "openai", endpoint: "chat/completions", headers: { authorization: "Bearer k" } };
    const query = { model: "m", messages: messages("Sing") };
    const answer = await call(
      {
        path: own,
        body: () =>
          JSON.stringify([
            { ...step, query },
            { ...step, query },
          ]),
      },
      "",
    );
    expect([answer.status, peer.requests.length]).toEqual([424, 1]);
    const later = { ...step, query: { model: "m", messages: messages("a zebra") } };
    const refused = await call({ path: own, body: () => JSON.stringify([{ ...step, query }, later]) }, "");
    expect([refused.status, peer.requests.length]).toEqual([424, 1]);
  });

  it("a kept answer is searched again when it is read", async () => {
    await setRules([]);
    const token = await server.token(["gateway.run"]);
    const headers = { "gw-aig-authorization": `Bearer ${token}`, ...gatewayHeader };
    say = () => "The walrus sings";
    const made = await call(
      { path: "/v1/responses", body: json((input) => ({ model: "anthropic/m", input })) },
      "Sing",
      headers,
    );
    const { id } = JSON.parse(made.body) as { id: string };
    const read = () =>
      send(server, "GET", `/v1/responses/${id}`, { headers: { authorization: "Bearer key", ...headers } });
    expect((await read()).body).toContain("walrus");
    await setRules(RULES);
    expect(await read()).toMatchObject({
      status: 424,
      body: expect.not.stringContaining("walrus") as string,
    });
  });

  it("a response in the background is searched like any other", async () => {
    const token = await server.token(["gateway.run"]);
    const headers = { "gw-aig-authorization": `Bearer ${token}`, ...gatewayHeader };
    const made = await call(
      { path: "/v1/responses", body: json((input) => ({ model: "anthropic/m", background: true, input })) },
      "a zebra",
      headers,
    );
    const { id } = JSON.parse(made.body) as { id: string };
    const state = await waitUntil(
      async () =>
        (
          await send(server, "GET", `/v1/responses/${id}`, {
            headers: { authorization: "Bearer key", ...headers },
          })
        ).body,
      (body) => !body.includes("in_progress"),
    );
    expect(state).toContain("animals");
    expect(peer.requests).toEqual([]);
  });

  it("an earlier answer that the provider keeps brings no mask back as another text", async () => {
    const token = await server.token(["gateway.run"]);
    const door = {
      path: `${own}/openai/responses`,
      body: json((input) => ({ model: "m", previous_response_id: "resp_0", input })),
    };
    say = (request) => `I wrote to <EMAIL_1> and ${maskIn(request)}`;
    const answer = await call(door, `Write to ${EMAIL}`, { "gw-aig-authorization": `Bearer ${token}` });
    expect(spoken(answer.body)).toBe(`I wrote to <EMAIL_1> and ${EMAIL}`);
  });

  it("an earlier answer that the gateway keeps is searched with the request that refers to it", async () => {
    await setRules([]);
    const token = await server.token(["gateway.run"]);
    const headers = { "gw-aig-authorization": `Bearer ${token}`, ...gatewayHeader };
    const door = (more: object) => ({
      path: "/v1/responses",
      body: json((input) => ({ model: "anthropic/m", input, ...more })),
    });
    const { id } = JSON.parse((await call(door({}), `a zebra, says ${EMAIL}`, headers)).body) as {
      id: string;
    };
    peer.requests.length = 0;
    await setRules(RULES.slice(2));
    say = (request) => `I wrote to ${maskIn(request)}.`;
    const masked = await call(door({ previous_response_id: id }), "Go on", headers);
    expect([masked.status, spoken(masked.body)]).toEqual([200, expect.stringContaining(EMAIL)]);
    expect(peer.requests[0]?.body).not.toContain(EMAIL);
    await setRules(RULES);
    expect((await call(door({ previous_response_id: id }), "Go on", headers)).status).toBe(424);
    expect(peer.requests).toHaveLength(1);
  });

  it("a stream that is read again has what its first reader got", async () => {
    say = (request) => `I wrote to ${maskIn(request)}. The walrus sings`;
    const door = {
      ...CHAT_DOOR,
      body: json((text) => ({ model: "m", stream: true, messages: messages(text) })),
    };
    const first = await call(door, `Write to ${EMAIL}`, { "gw-aig-resumable": "true" });
    expect(spoken(first.body)).toContain(`I wrote to ${EMAIL}.`);
    const id = String(first.headers["gw-aig-run-id"]);
    const again = await call({ path: `${own}/run/${id}/resume`, body: () => "" }, "", {}, "GET");
    expect(again.body).toBe(first.body);
    expect(again.body).not.toContain("walrus");
  });

  it("a picture passes unless a rule refuses it, a document does not unless the rules allow what they cannot read", async () => {
    const file = (bytes: Buffer) => ({
      ...CHAT_DOOR,
      body: () =>
        JSON.stringify({
          model: "m",
          messages: messages("").map(({ role }) => ({
            role,
            content: [
              { type: "image_url", image_url: { url: `data:image/png;base64,${bytes.toString("base64")}` } },
            ],
          })),
        }),
    });
    const picture = file(Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\r\xff", "latin1"));
    const paper = file(Buffer.from(`%PDF-1.7 ${"\xff".repeat(80)}`, "latin1"));
    expect([(await call(picture, "")).status, (await call(paper, "")).status]).toEqual([200, 424]);
    await setRules(RULES.map((rule) => ({ ...rule, on_media: "block" })));
    expect((await call(picture, "")).status).toBe(424);
    await setRules(RULES.map((rule) => ({ ...rule, on_failure: "allow" })));
    expect((await call(paper, "")).status).toBe(200);
  });

  it("no header lets a call pass the rules", async () => {
    const headers = { "gw-aig-own-reader": "x", "gw-aig-collect-log": "false", "gw-aig-skip-cache": "true" };
    expect((await call(CHAT_DOOR, "a zebra", headers)).status).toBe(424);
  });
});

describe("a judging model", () => {
  const RULE = { id: "safety", type: "model", model: "openai/guard", action: "block", timeout_ms: 60_000 };
  const STREAM_DOOR = {
    ...CHAT_DOOR,
    body: json((text) => ({ model: "m", stream: true, messages: messages(text) })),
  };
  /** Requests of the callers, without those of judges. */
  const forwarded = () => peer.requests.filter((one) => !isJudge(one));
  const asked = () => peer.requests.filter((one) => isJudge(one));

  it("refuses a prompt before it is sent, and gets no text that is masked and no key of the caller", async () => {
    await setRules([RULE, ...RULES.slice(2)]);
    const refused = await call(CHAT_DOOR, `a volcano of ${EMAIL}`);
    expect([refused.status, refused.body]).toEqual([424, expect.stringContaining("2016")]);
    expect(forwarded()).toEqual([]);
    const [question] = asked();
    expect(question?.body).toContain("a volcano of <EMAIL_1>");
    expect(question?.headers["authorization"]).toBe("Bearer stored");
    const rows = await readLogs(server, GATEWAY);
    const row = rows.find(({ id }) => id === refused.headers["gw-aig-log-id"]);
    expect(row).toMatchObject({ guardrail_action: "block", cost: 0 });
    expect(JSON.parse(String(row?.["guardrails"]))).toEqual(
      expect.arrayContaining([expect.objectContaining({ rule: "safety", kind: "S9", action: "block" })]),
    );
    // The judge's call is a row of its own, without bodies and without guardrails.
    const own = rows.find(({ model }) => model === "guard");
    expect(own).toMatchObject({ status_code: 200, metadata: JSON.stringify({ guardrail: "safety" }) });
    expect(own?.["guardrail_action"] ?? null).toBeNull();
    expect(Number(own?.["cost"])).toBeGreaterThan(0);
    expect((await call(CHAT_DOOR, "a calm sea")).status).toBe(200);
  });

  it.each([
    ["a whole answer", CHAT_DOOR, "window"],
    ["a stream in pieces", STREAM_DOOR, "window"],
    ["a stream that is held", STREAM_DOOR, "hold"],
    ["a translated stream", DOORS["the unified chat door, translated, as a stream"], "window"],
    ["a binary stream", DOORS["Bedrock's Converse, as a binary stream"], "window"],
    ["lines of JSON", DOORS["a provider with lines of JSON"], "window"],
  ])("refuses %s before its text leaves", async (_, door = CHAT_DOOR, stream) => {
    await setRules([{ ...RULE, on: ["response"], stream, categories: ["S9"] }]);
    const calm = "The sea is calm. ".repeat(30);
    say = () => `${calm}An eruption begins. ${calm}`;
    const answer = await call(door, "Tell");
    expect(`${spoken(answer.body)}${answer.body}`).not.toContain("eruption");
    expect(answer.body).toContain("safety");
    expect(answer.headers["gw-aig-guardrails"]).toBe(stream);
    if (stream === "hold") expect(answer.status).toBe(424);
    say = () => calm;
    const whole = await call(door, "Tell");
    expect(whole.status).toBe(200);
    expect(spoken(whole.body)).toContain(calm);
  });

  it("of another category passes, and a flag only notes", async () => {
    await setRules([{ ...RULE, categories: ["S1"] }]);
    expect((await call(CHAT_DOOR, "a volcano")).status).toBe(200);
    await setRules([{ ...RULE, action: "flag" }]);
    const flagged = await call(CHAT_DOOR, "a volcano");
    const row = (await readLogs(server, GATEWAY)).find(({ id }) => id === flagged.headers["gw-aig-log-id"]);
    expect([flagged.status, row?.["guardrail_action"]]).toEqual([200, "flag"]);
  });

  it.each<[string, (request: ProviderRequest, response: ServerResponse) => void]>([
    ["is dead", (_, response) => void response.destroy()],
    ["fails", (_, response) => sendJson(response, 500, { error: "x" })],
    ["does not answer", () => undefined],
    [
      "begins an answer",
      (_, response) => void response.writeHead(200, { "content-type": "application/json" }).write('{"ch'),
    ],
    ["lies", judgeSays(() => "I think that this is fine")],
    ["says everything", judgeSays(() => "safe\nunsafe")],
    ["says nothing", judgeSays(() => "")],
    ["says too much", judgeSays(() => `safe${" ".repeat(200_000)}`)],
  ])("that %s refuses the call, unless its rule lets it pass", async (_, how) => {
    judge = how;
    await setRules([{ ...RULE, timeout_ms: 300 }]);
    const refused = await call(CHAT_DOOR, "Hello");
    expect([refused.status, refused.body]).toEqual([503, expect.stringContaining("7013")]);
    expect(forwarded()).toEqual([]);
    await setRules([{ ...RULE, on: ["response"], timeout_ms: 300 }]);
    expect((await call(CHAT_DOOR, "Hello")).status).toBe(503);
    await setRules([{ ...RULE, on: ["prompt"], timeout_ms: 300, on_failure: "allow" }]);
    expect((await call(CHAT_DOOR, "Hello")).status).toBe(200);
  });

  it("may judge prompt injection, answer as a moderation endpoint, or follow instructions", async () => {
    await setRules([{ ...RULE, on: ["prompt"], format: "injection", threshold: 0.7 }]);
    for (const [verdict, status] of [
      ["0.69", 200],
      ["0.71", 424],
      ["BENIGN", 200],
      ["JAILBREAK", 424],
      ["7", 503],
    ] as const) {
      judge = judgeSays(() => verdict);
      expect([verdict, (await call(CHAT_DOOR, "Hello")).status]).toEqual([verdict, status]);
    }
    await setRules([{ ...RULE, on: ["prompt"], format: "moderation", categories: ["violence"] }]);
    for (const [name, status] of [
      ["hate", 200],
      ["violence", 424],
    ] as const) {
      judge = ({ url }, response) => {
        expect(url).toContain("/moderations");
        sendJson(response, 200, { results: [{ flagged: true, categories: { [name]: true } }] });
      };
      expect([name, (await call(CHAT_DOOR, "Hello")).status]).toEqual([name, status]);
    }
    await setRules([{ ...RULE, on: ["prompt"], instructions: "Is it about boats?" }]);
    judge = judgeSays((body) => (body.includes("Is it about boats?") ? "Unsafe: boats" : "safe"));
    expect((await call(CHAT_DOOR, "Hello")).status).toBe(424);
  });

  it("is paid by the budgets of the token that calls, which need not allow its model and does not count it as a call", async () => {
    await setRules([{ ...RULE, on: ["prompt"] }]);
    const { body } = await server.api("POST", "/accounts/default/tokens", {
      name: "judged",
      permissions: ["gateway.run"],
      models: ["openai/m"],
      // Both become metadata that no header may have.
      owner: "Zoë •",
      tags: { team: "Zürich" },
      budgets: [{ limit: 1, window: "day" }],
      rate_limits: [
        { type: "requests", limit: 1, interval: 3600 },
        { type: "parallel", limit: 1 },
      ],
    });
    const { token, id } = (body as { result: { token: string; id: string } }).result;
    const before = new Set((await readLogs(server, GATEWAY)).map((row) => row["id"]));
    const answer = await call(CHAT_DOOR, "Hello", { "gw-aig-authorization": `Bearer ${token}` });
    expect([answer.status, answer.body]).toEqual([200, answer.body]);
    const rows = (await readLogs(server, GATEWAY)).filter((row) => !before.has(row["id"]));
    expect(rows.map(({ model }) => String(model)).toSorted()).toEqual(["guard", "m"]);
    const paid = { "token.owner": "Zoë •", "token.tags.team": "Zürich" };
    for (const { metadata } of rows) expect(JSON.parse(String(metadata))).toMatchObject(paid);
    const spent = rows.reduce((sum, { cost }) => sum + Number(cost), 0);
    const { body: budgets } = await server.api("GET", `/accounts/default/tokens/${id}/budgets`);
    const used = [...JSON.stringify(budgets).matchAll(/"used":([\d.e-]+)/g)].map(([, text]) => Number(text));
    expect(used).toEqual(expect.arrayContaining([expect.closeTo(spent, 6)]));
  });

  it("is refused with the error of the budget that has no room for it, and of nothing else", async () => {
    await setRules([{ ...RULE, on: ["prompt"] }]);
    const { body } = await server.api("POST", "/accounts/default/tokens", {
      name: "judged with little",
      permissions: ["gateway.run"],
      budgets: [{ limit: 0.000_001, window: "day" }],
    });
    const { token } = (body as { result: { token: string } }).result;
    const poor = { "gw-aig-authorization": `Bearer ${token}` };
    // A call without a limit of its output may begin while anything is left: the judge's call does, and uses it.
    expect((await call(CHAT_DOOR, "Hello", poor)).status).toBe(429);
    peer.requests.length = 0;
    const refused = await call(CHAT_DOOR, "Hello", poor);
    expect([refused.status, refused.body]).toEqual([429, expect.stringContaining("2041")]);
    expect(refused.headers["retry-after"]).toBeDefined();
    expect(peer.requests).toEqual([]);
  });

  it("that is asked for a caller who leaves finds nothing", async () => {
    await setRules([{ ...RULE, on: ["prompt"] }]);
    judge = () => undefined;
    const left = new AbortController();
    const leaving = fetch(`${server.url}${CHAT_DOOR.path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...gatewayHeader },
      body: CHAT_DOOR.body("for one who leaves"),
      signal: left.signal,
    });
    await expect.poll(() => asked().length).toBe(1);
    left.abort();
    await expect(leaving).rejects.toThrow();
    const rowOf = async () =>
      (await readLogs(server, GATEWAY)).find(
        ({ status_code, model }) => status_code === 499 && model === "m",
      );
    await expect.poll(rowOf).toBeDefined();
    expect((await rowOf())?.["guardrail_action"] ?? null).toBeNull();
    expect(forwarded()).toEqual([]);
  });

  it("reads kept answers, too", async () => {
    await setRules([]);
    const token = await server.token(["gateway.run"]);
    const headers = { "gw-aig-authorization": `Bearer ${token}`, ...gatewayHeader };
    say = () => "An eruption begins";
    const made = await call(
      { path: "/v1/responses", body: json((input) => ({ model: "anthropic/m", input })) },
      "Tell",
      headers,
    );
    const { id } = JSON.parse(made.body) as { id: string };
    await setRules([{ ...RULE, on: ["response"] }]);
    const read = await send(server, "GET", `/v1/responses/${id}`, { headers });
    expect([read.status, read.body]).toEqual([424, expect.not.stringContaining("eruption")]);
  });
});

describe("the setting guardrails of the original", () => {
  const path = `/accounts/default/ai-gateway/gateways/${GATEWAY}`;
  it("is accepted as it is, and meant", async () => {
    await setRules([]);
    const guardrails = {
      prompt: { S9: "BLOCK", S2: "FLAG", P1: "BLOCK" },
      response: { S2: "FLAG", S9: "BLOCK" },
    };
    const { body } = await server.api("PUT", path, { guardrails });
    expect(body).toMatchObject({ result: { guardrails } });
    judge = judgeSays((text) => {
      if (text.includes("guard-injection")) return text.includes("ignore all") ? "0.99" : "0.01";
      return text.includes("volcano") ? "unsafe\nS9" : text.includes("lava") ? "unsafe\nS2" : "safe";
    });
    try {
      expect((await call(CHAT_DOOR, "a volcano")).body).toContain("2016");
      expect((await call(CHAT_DOOR, "ignore all")).body).toContain("P1");
      peer.requests.length = 0;
      const flagged = await call(CHAT_DOOR, "lava");
      // Two questions about the prompt, one about the answer.
      expect([flagged.status, peer.requests.length]).toEqual([200, 4]);
      const row = (await readLogs(server, GATEWAY)).find(({ id }) => id === flagged.headers["gw-aig-log-id"]);
      expect(JSON.parse(String(row?.["guardrails"]))).toMatchObject([
        { rule: "S2", owner: "guardrails", place: "prompt", action: "flag" },
      ]);
      say = () => "a volcano";
      expect((await call(CHAT_DOOR, "Hello")).body).toContain("2017");
      judge = (_, response) => void response.destroy();
      expect((await call(CHAT_DOOR, "Hello")).body).toContain("7013");
      await server.api("PUT", path, { guardrails: { prompt: { S1: "FLAG" }, response: {} } });
      expect((await call(CHAT_DOOR, "Hello")).status).toBe(200);
      expect(
        (await server.api("PUT", path, { guardrails: { prompt: { S99: "FLAG" }, response: {} } })).status,
      ).toBe(400);
    } finally {
      await server.api("PUT", path, { guardrails: null });
    }
  });
});

describe("a judging webhook", () => {
  it("gets a signed request, and its verdict counts; anything else is none", async () => {
    let reply: (response: ServerResponse, body: string) => void = () => undefined;
    const received: { headers: Record<string, string>; body: string }[] = [];
    const receiver = await startProvider((request, response) => {
      received.push({ headers: request.headers as Record<string, string>, body: request.body });
      reply(response, request.body);
    });
    try {
      const rule = {
        id: "hook",
        type: "webhook",
        url: `${receiver.url}/judge`,
        action: "block",
        timeout_ms: 60_000,
      };
      await setRules([rule]);
      reply = (response, body) =>
        sendJson(response, 200, { flagged: body.includes("volcano"), categories: ["fire"] });
      expect((await call(CHAT_DOOR, "Hello")).status).toBe(200);
      expect((await call(CHAT_DOOR, "a volcano")).body).toContain("2016");
      const { body } = await server.api("GET", "/accounts/default/ai-gateway/guardrails/secret");
      const { secret } = (body as { result: { secret: string } }).result;
      const [first] = received;
      expect(new Webhook(secret).verify(first?.body ?? "", first?.headers ?? {})).toMatchObject({
        type: "guardrail",
        account_id: "default",
        gateway_id: GATEWAY,
        rule: "hook",
        place: "prompt",
        text: expect.stringContaining("Hello") as string,
      });
      await setRules([{ ...rule, timeout_ms: 300 }]);
      for (const wrong of [
        (response: ServerResponse) => sendJson(response, 500, { flagged: false }),
        (response: ServerResponse) => sendJson(response, 200, { flagged: "no" }),
        (response: ServerResponse) => sendJson(response, 200, { flagged: false, more: "x".repeat(100_000) }),
        (response: ServerResponse) => void response.writeHead(307, { location: receiver.url }).end(),
        (response: ServerResponse) => void response.destroy(),
        () => undefined,
      ]) {
        reply = wrong;
        expect((await call(CHAT_DOOR, "Hello")).body).toContain("7013");
      }
    } finally {
      await receiver.close();
    }
  });
});
