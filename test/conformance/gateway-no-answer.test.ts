/**
 * Responses with status 200 that are no answers: errors, pages, nothing, and streams without an end. They are neither kept by the cache nor a success in
 * the call log, and the next step follows while nothing has gone to the client.
 */
import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { writeAwsMessage } from "../../packages/signalbox/src/engines/relay/index.ts";
import { type ProviderPeer, startProvider } from "../peers/provider.ts";
import { post, readLogs, send } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const SSE = "text/event-stream";
const JSON_TYPE = "application/json";
const CHUNK = 'data: {"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}\n\n';
const BLOCK =
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}\n\n';
const DELTA =
  'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Hel"}\n\n';
const OVERLOADED = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}';

interface NoAnswer {
  readonly title: string;
  readonly path: string;
  readonly type: string;
  readonly body: string | Buffer;
  /** The next step follows without `gw-aig-hold-response`, too. */
  readonly isSeenAtOnce: boolean;
}

const AWS = "application/vnd.amazon.eventstream";
const aws = (headers: Readonly<Record<string, string>>, payload: object) =>
  writeAwsMessage(headers, JSON.stringify(payload));
const AWS_DELTA = aws({ ":event-type": "contentBlockDelta" }, { delta: { text: "Hel" } });
const AWS_BUSY = aws(
  { ":message-type": "exception", ":exception-type": "throttlingException" },
  { message: "busy" },
);
const CONVERSE = "aws-bedrock/bedrock-runtime/us-east-1/model/us.amazon.nova-pro-v1:0/converse-stream";
const LINES = "application/x-ndjson";
const LINE = '{"message":{"content":"Hel"},"done":false}\n';
const CANDIDATE = '{"candidates":[{"content":{"parts":[{"text":"Hel"}]}}]}';
const GEMINI = "google-ai-studio/v1beta/models/gemini-2.5-flash:streamGenerateContent";

const CHAT = "openai/chat/completions";
const MESSAGES = "anthropic/v1/messages";
const NO_ANSWERS: readonly NoAnswer[] = [
  {
    title: "an error of OpenAI",
    path: CHAT,
    type: JSON_TYPE,
    body: '{"error":{"message":"busy"}}',
    isSeenAtOnce: true,
  },
  { title: "an error of Anthropic", path: MESSAGES, type: JSON_TYPE, body: OVERLOADED, isSeenAtOnce: true },
  { title: "a page", path: CHAT, type: "text/html", body: "<html>Sorry</html>", isSeenAtOnce: true },
  { title: "nothing", path: CHAT, type: JSON_TYPE, body: "", isSeenAtOnce: true },
  {
    title: "JSON that is cut off",
    path: CHAT,
    type: JSON_TYPE,
    body: '{"choices":[{"message":',
    isSeenAtOnce: false,
  },
  {
    title: "a stream that is only an error",
    path: MESSAGES,
    type: SSE,
    body: `event: error\ndata: ${OVERLOADED}\n\n`,
    isSeenAtOnce: true,
  },
  {
    title: "a stream that ends with an error",
    path: MESSAGES,
    type: SSE,
    body: `${BLOCK}event: error\ndata: ${OVERLOADED}\n\n`,
    isSeenAtOnce: false,
  },
  {
    title: "a chat stream with an error in it",
    path: CHAT,
    type: SSE,
    body: `${CHUNK}data: {"error":{"message":"busy"}}\n\ndata: [DONE]\n\n`,
    isSeenAtOnce: false,
  },
  {
    title: "an error in place of pictures",
    path: "openai/images/generations",
    type: JSON_TYPE,
    body: '{"error":{"message":"busy"}}',
    isSeenAtOnce: true,
  },
  {
    title: "a page in place of speech",
    path: "openai/audio/speech",
    type: "text/html",
    body: "<html>Sorry</html>",
    isSeenAtOnce: true,
  },
  {
    title: "nothing in place of sound",
    path: "openai/audio/speech",
    type: "audio/mpeg",
    body: "",
    isSeenAtOnce: false,
  },
  { title: "a chat stream without an end", path: CHAT, type: SSE, body: CHUNK, isSeenAtOnce: false },
  { title: "a messages stream without an end", path: MESSAGES, type: SSE, body: BLOCK, isSeenAtOnce: false },
  {
    title: "a responses stream without an end",
    path: "openai/responses",
    type: SSE,
    body: DELTA,
    isSeenAtOnce: false,
  },
  {
    title: "a stream of Amazon's that is only an exception",
    path: CONVERSE,
    type: AWS,
    body: AWS_BUSY,
    isSeenAtOnce: true,
  },
  {
    title: "a stream of Amazon's that ends with an exception",
    path: CONVERSE,
    type: AWS,
    body: Buffer.concat([AWS_DELTA, AWS_BUSY]),
    isSeenAtOnce: false,
  },
  {
    title: "a stream of Amazon's without an end",
    path: CONVERSE,
    type: AWS,
    body: AWS_DELTA,
    isSeenAtOnce: false,
  },
  {
    title: "lines that are only an error",
    path: "ollama/api/chat",
    type: LINES,
    body: '{"error":"out of memory"}\n',
    isSeenAtOnce: true,
  },
  {
    title: "lines that end with an error",
    path: "ollama/api/chat",
    type: LINES,
    body: `${LINE}{"error":"out of memory"}\n`,
    isSeenAtOnce: false,
  },
  { title: "lines without an end", path: "ollama/api/chat", type: LINES, body: LINE, isSeenAtOnce: false },
  {
    title: "a Gemini stream without an end",
    path: GEMINI,
    type: SSE,
    body: `data: ${CANDIDATE}\n\n`,
    isSeenAtOnce: false,
  },
  {
    title: "a list of Gemini without an end",
    path: GEMINI,
    type: JSON_TYPE,
    body: `[${CANDIDATE}]`,
    isSeenAtOnce: false,
  },
  {
    title: "a list of Gemini that is an error",
    path: GEMINI,
    type: JSON_TYPE,
    body: '[{"error":{"code":503,"message":"busy"}}]',
    isSeenAtOnce: true,
  },
];

const GOOD = JSON.stringify({ choices: [{ message: { content: "Hello" } }], content: [], output: [] });

const SLUGS = ["openai", "anthropic", "groq", "aws-bedrock", "ollama", "google-ai-studio"];

let provider: ProviderPeer;
let server: TestServer;
beforeAll(async () => {
  provider = await startProvider(() => undefined);
  const at = { baseUrl: provider.url };
  server = await startTestServer({
    file: { providers: Object.fromEntries(SLUGS.map((slug) => [slug, at])) },
  });
});
afterAll(async () => {
  await server.stop();
  await provider.close();
});
beforeEach(async () => {
  provider.requests.length = 0;
  await server.api("DELETE", "/accounts/default/ai-gateway/gateways/default/circuits");
});

const sendBody = (response: ServerResponse, type: string, body: string | Buffer) => {
  response.writeHead(200, { "content-type": type });
  response.end(body);
};
let calls = 0;
const bodyOf = () => ({
  model: "m",
  max_tokens: 9,
  messages: [{ role: "user", content: `Hello ${++calls}` }],
});

/** A stream without an end is followed by an error event, and its connection is closed. */
async function callOnce(path: string, body: object, headers: Record<string, string> = {}) {
  try {
    return await post(server, path, { body: JSON.stringify(body), headers });
  } catch {
    return null;
  }
}

describe.each(NO_ANSWERS)("$title", ({ path, type, body, isSeenAtOnce }) => {
  it("is not kept by the cache", async () => {
    const request = bodyOf();
    const headers = { "gw-aig-cache-ttl": "600" };
    provider.answer = (_, response) => sendBody(response, type, body);
    await callOnce(path, request, headers);
    provider.answer = (_, response) => sendBody(response, JSON_TYPE, GOOD);
    const second = await callOnce(path, request, headers);
    expect([second?.headers["gw-aig-cache-status"], second?.body]).toEqual(["MISS", GOOD]);
    expect((await callOnce(path, request, headers))?.headers["gw-aig-cache-status"]).toBe("HIT");
  });

  it("is no success in the call log", async () => {
    provider.answer = (_, response) => sendBody(response, type, body);
    await callOnce(path, bodyOf());
    expect((await readLogs(server))[0]).toMatchObject({ success: false, status_code: 200 });
  });

  it.each(isSeenAtOnce ? [{}, { "gw-aig-hold-response": "true" }] : [{ "gw-aig-hold-response": "true" }])(
    "is followed by the next step with %j",
    async (headers) => {
      provider.answer = ({ body: sent }, response) => {
        if (sent.includes("second")) sendBody(response, JSON_TYPE, GOOD);
        else sendBody(response, type, body);
      };
      const [slug = "", ...endpoint] = path.split("/");
      const answer = await send(server, "POST", "/v1/default/default", {
        headers: { "content-type": JSON_TYPE, ...headers },
        body: JSON.stringify([
          { provider: slug, endpoint: endpoint.join("/"), query: bodyOf() },
          { provider: "groq", endpoint: "chat/completions", query: { ...bodyOf(), model: "second" } },
        ]),
      });
      expect([answer.status, answer.headers["gw-aig-step"], answer.body]).toEqual([200, "1", GOOD]);
    },
  );
});

it("a stream without an end is closed with an error event of its API", async () => {
  provider.answer = (_, response) => sendBody(response, SSE, CHUNK);
  const response = await fetch(`${server.url}/v1/default/default/${CHAT}`, {
    method: "POST",
    headers: { "content-type": JSON_TYPE },
    body: JSON.stringify({ ...bodyOf(), stream: true }),
  });
  const decoder = new TextDecoder();
  let text = "";
  const read = async () => {
    for await (const part of response.body ?? [])
      text += decoder.decode(part as Uint8Array, { stream: true });
  };
  await expect(read()).rejects.toThrow();
  expect(text).toMatch(/"content":"Hel"[\s\S]*"code":"2005"/);
});

it("answers whose last events are of another kind, or cut anywhere, pass unchanged", async () => {
  const streams = [
    `${CHUNK}data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n`,
    `${CHUNK}data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\n`,
    `${CHUNK}data: [DONE]\n\n`,
    `${CHUNK}data: {"choices":[{"delta":{"content":"\\"error\\""},"finish_reason":"length"}]}\n\n: bye\n\n`,
    'data: {"anything":1}\n\n',
  ];
  for (const text of streams) {
    provider.answer = (_, response) => {
      response.writeHead(200, { "content-type": SSE });
      for (const char of text) response.write(char);
      response.end();
    };
    expect(
      (await callOnce(CHAT, { ...bodyOf(), stream: true, stream_options: { include_usage: true } }))?.body,
    ).toBe(text);
    expect((await readLogs(server))[0]).toMatchObject({ success: true });
  }
});

it("the transcription of silence as text is empty, and a success", async () => {
  provider.answer = (_, response) => sendBody(response, "text/plain", "");
  expect((await callOnce("openai/audio/transcriptions", bodyOf()))?.status).toBe(200);
  expect((await readLogs(server))[0]).toMatchObject({ success: true });
});

it("a key of the caller's for the cache tells streams and whole answers apart", async () => {
  provider.answer = ({ body: sent }, response) => {
    if (sent.includes('"stream":true')) sendBody(response, SSE, `${CHUNK}data: [DONE]\n\n`);
    else sendBody(response, JSON_TYPE, GOOD);
  };
  const headers = { "gw-aig-cache-key": "mine", "gw-aig-cache-ttl": "600" };
  expect((await callOnce(CHAT, bodyOf(), headers))?.body).toBe(GOOD);
  const streamed = await callOnce(CHAT, { ...bodyOf(), stream: true }, headers);
  expect([streamed?.headers["gw-aig-cache-status"], streamed?.headers["content-type"]]).toEqual([
    "MISS",
    SSE,
  ]);
  expect((await callOnce(CHAT, bodyOf(), headers))?.headers["gw-aig-cache-status"]).toBe("HIT");
  expect((await callOnce(CHAT, { ...bodyOf(), stream: true }, headers))?.headers["gw-aig-cache-status"]).toBe(
    "HIT",
  );
});
