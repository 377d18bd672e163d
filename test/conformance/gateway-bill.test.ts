/**
 * Every kind of endpoint against a provider that keeps its own bill, by the list prices: random calls, and after each series the sum of the rows in the
 * call log is what the budget counts. Where the provider states what it bills, each row has exactly that.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { writeAwsMessage } from "../../packages/signalbox/src/engines/relay/index.ts";
import { type ProviderPeer, startProvider } from "../peers/provider.ts";
import { type RealtimePeer, respond, startRealtimePeer } from "../peers/realtime.ts";
import { callPath, post, readLogs, send, setGateway } from "../support/gateway.ts";
import { openSession } from "../support/realtime.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

/** Random numbers of a call; what they count depends on the kind. */
interface Counts {
  readonly input: number;
  readonly output: number;
  readonly pieces: number;
}

interface Kind {
  /** Below the gateway, or the whole path of a door, which finds the gateway in a header. */
  readonly path: string;
  readonly body: object | Buffer;
  readonly requestType?: string;
  readonly answerType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** For a job: the path of its state, and what the provider answers to each GET when the job has ended. */
  readonly job?: (counts: Counts) => {
    readonly state: string;
    readonly stored: Readonly<Record<string, string>>;
  };
  /** Uses something without a request to the path. */
  readonly use?: (gateway: string, counts: Counts) => Promise<void>;
  /** What the provider answers, and the dollars that it bills; null if its answer does not say what it bills. */
  readonly answer: (counts: Counts) => { readonly body: string | Buffer; readonly bill: number | null };
}

const MTOK = 1e-6;
const prompt = [{ role: "user", content: "Hello" }];
const json = (value: object) => JSON.stringify(value);
const events = (...values: object[]) => values.map((value) => `data: ${json(value)}\n\n`).join("");
const BOUNDARY = "form";
const form = (fields: Readonly<Record<string, string>>) =>
  Buffer.from(
    `${Object.entries(fields)
      .map(
        ([name, value]) =>
          `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
      )
      .join("")}--${BOUNDARY}--\r\n`,
  );

/** One message of Amazon's binary event stream, without headers. */
const awsMessage = (payload: object) => writeAwsMessage({}, json(payload));
/** The same around an event of an invoked model. */
const invoked = (event: object) => awsMessage({ bytes: Buffer.from(json(event)).toString("base64") });

const KINDS: Readonly<Record<string, Kind>> = {
  chat: {
    path: "openai/chat/completions",
    body: { model: "gpt-5", messages: prompt, max_completion_tokens: 4000 },
    answer: ({ input, output }) => ({
      body: json({
        model: "gpt-5",
        choices: [{}],
        usage: {
          prompt_tokens: input,
          completion_tokens: output,
          prompt_tokens_details: { cached_tokens: input },
        },
      }),
      bill: (input * 0.125 + output * 10) * MTOK,
    }),
  },
  "a chat stream in the tier `fast`": {
    path: "openai/chat/completions",
    body: {
      model: "gpt-5.6-sol",
      messages: prompt,
      max_completion_tokens: 4000,
      stream: true,
      service_tier: "fast",
    },
    answerType: "text/event-stream",
    answer: ({ input, output }) => ({
      body: `${events(
        {
          model: "gpt-5.6-sol",
          service_tier: "fast",
          choices: [{ delta: { content: "Hi" }, finish_reason: "stop" }],
        },
        {
          model: "gpt-5.6-sol",
          service_tier: "fast",
          choices: [],
          usage: { prompt_tokens: input, completion_tokens: output },
        },
      )}data: [DONE]\n\n`,
      bill: (input * 4 + output * 20) * 2 * MTOK,
    }),
  },
  completions: {
    path: "openai/completions",
    body: { model: "gpt-4o-mini", prompt: "Hello", max_tokens: 4000 },
    answer: ({ input, output }) => ({
      body: json({ choices: [{}], usage: { prompt_tokens: input, completion_tokens: output } }),
      bill: (input * 0.15 + output * 0.6) * MTOK,
    }),
  },
  "responses with searches": {
    path: "openai/responses",
    body: { model: "gpt-5", input: "Hello", max_output_tokens: 4000, tools: [{ type: "web_search" }] },
    answer: ({ input, output, pieces }) => ({
      body: json({
        output: [
          ...Array.from({ length: pieces }, () => ({ type: "web_search_call", action: { type: "search" } })),
          ...Array.from({ length: pieces }, () => ({ type: "file_search_call" })),
        ],
        usage: { input_tokens: input, output_tokens: output },
      }),
      bill: (input * 1.25 + output * 10) * MTOK + pieces * 0.0125,
    }),
  },
  "messages with rounds": {
    path: "anthropic/v1/messages",
    body: { model: "claude-sonnet-4-6", messages: prompt, max_tokens: 4000 },
    answer: ({ input, output, pieces }) => ({
      body: json({
        type: "message",
        content: [],
        usage: {
          input_tokens: input,
          output_tokens: output,
          server_tool_use: { web_search_requests: pieces },
          iterations: [
            { type: "message", input_tokens: input, output_tokens: output },
            {
              type: "advisor_message",
              model: "claude-opus-4-7",
              input_tokens: pieces,
              output_tokens: pieces,
            },
          ],
        },
      }),
      bill: (input * 3 + output * 15 + pieces * 30) * MTOK + pieces * 0.01,
    }),
  },
  "a fast message": {
    path: "anthropic/v1/messages",
    body: { model: "claude-opus-5", messages: prompt, max_tokens: 4000, speed: "fast" },
    answer: ({ input, output }) => ({
      body: json({
        type: "message",
        content: [],
        usage: {
          input_tokens: input,
          output_tokens: output,
          cache_creation_input_tokens: input,
          cache_creation: { ephemeral_1h_input_tokens: input },
          speed: "fast",
        },
      }),
      bill: (input * 15 + output * 25) * 2 * MTOK,
    }),
  },
  "Gemini with searches": {
    path: "google-ai-studio/v1beta/models/gemini-3-pro-preview:generateContent",
    body: { contents: [], tools: [{ google_search: {} }], generationConfig: { maxOutputTokens: 4000 } },
    answer: ({ input, output, pieces }) => ({
      body: json({
        modelVersion: "gemini-3-pro-preview",
        candidates: [{ groundingMetadata: { webSearchQueries: Array.from({ length: pieces }, () => "x") } }],
        usageMetadata: {
          promptTokenCount: input,
          candidatesTokenCount: output,
          totalTokenCount: input + output,
        },
      }),
      bill: (input * 2 + output * 12) * MTOK + pieces * 0.014,
    }),
  },
  "responses with code and pictures": {
    path: "openai/responses",
    body: {
      model: "gpt-5",
      input: "Hello",
      max_output_tokens: 4000,
      tools: [
        { type: "code_interpreter", container: { type: "auto", memory_limit: "4g" } },
        { type: "image_generation", model: "gpt-image-1" },
      ],
    },
    answer: ({ input, output, pieces }) => ({
      body: json({
        model: "gpt-5",
        output: [
          ...Array.from({ length: pieces }, (_, i) => ({
            type: "code_interpreter_call",
            container_id: `cntr_${i}`,
          })),
          { type: "image_generation_call", result: "AAAA" },
        ],
        tools: [
          { type: "code_interpreter", container: { type: "auto", memory_limit: "4g" } },
          { type: "image_generation", model: "gpt-image-1" },
        ],
        tool_usage: { image_gen: { input_tokens: input, output_tokens: output } },
        usage: { input_tokens: input, output_tokens: output },
      }),
      bill: (input * (1.25 + 5) + output * (10 + 40)) * MTOK + pieces * 0.12,
    }),
  },
  "a tool without a known price": {
    path: "openai/responses",
    body: { model: "gpt-5", input: "Hello", max_output_tokens: 4000 },
    answer: ({ input, output }) => ({
      body: json({
        output: [{ type: "time_travel_call" }],
        usage: { input_tokens: input, output_tokens: output },
      }),
      bill: null,
    }),
  },
  "a chat that searches": {
    path: "openai/chat/completions",
    body: { model: "gpt-4o-mini-search-preview", messages: prompt, max_tokens: 4000, web_search_options: {} },
    answer: ({ input, output }) => ({
      body: json({ choices: [{}], usage: { prompt_tokens: input, completion_tokens: output } }),
      bill: (input * 0.15 + output * 0.6) * MTOK + 0.01,
    }),
  },
  "Gemini with maps": {
    path: "google-ai-studio/v1beta/models/gemini-2.5-flash:streamGenerateContent",
    body: { contents: [], tools: [{ googleMaps: {} }], generationConfig: { maxOutputTokens: 4000 } },
    answerType: "text/event-stream",
    answer: ({ input, output }) => {
      const usageMetadata = {
        promptTokenCount: input,
        candidatesTokenCount: output,
        totalTokenCount: input + output,
      };
      const groundingMetadata = { groundingChunks: [{ maps: { placeId: "places/1" } }] };
      return {
        body: events(
          { candidates: [{ groundingMetadata }], usageMetadata },
          { candidates: [{ content: {}, finishReason: "STOP" }], usageMetadata },
        ),
        bill: (input * 0.3 + output * 2.5) * MTOK + 0.025,
      };
    },
  },
  "Claude behind the door of chat": {
    path: "/v1/chat/completions",
    body: { model: "anthropic/claude-sonnet-4-6", messages: prompt, max_tokens: 4000 },
    answer: ({ input, output }) => ({
      body: json({
        type: "message",
        id: "msg_1",
        role: "assistant",
        model: "claude-sonnet-4-6",
        content: [{ type: "text", text: "Hi" }],
        stop_reason: "end_turn",
        usage: { input_tokens: input, output_tokens: output },
      }),
      bill: (input * 3 + output * 15) * MTOK,
    }),
  },
  "Mistral behind the door of messages": {
    path: "/v1/messages",
    body: { model: "mistral/mistral-small-latest", messages: prompt, max_tokens: 4000 },
    answer: ({ input, output }) => ({
      body: json({
        id: "1",
        model: "mistral-small-latest",
        choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
        usage: { prompt_tokens: input, completion_tokens: output },
      }),
      bill: (input * 0.1 + output * 0.3) * MTOK,
    }),
  },
  "a stream of Gemini behind the door of responses": {
    path: "/v1/responses",
    body: {
      model: "google-ai-studio/gemini-3-pro-preview",
      input: "Hello",
      max_output_tokens: 4000,
      stream: true,
    },
    answerType: "text/event-stream",
    answer: ({ input, output }) => ({
      body: events({
        modelVersion: "gemini-3-pro-preview",
        candidates: [{ content: { role: "model", parts: [{ text: "Hi" }] }, finishReason: "STOP" }],
        usageMetadata: {
          promptTokenCount: input,
          candidatesTokenCount: output,
          totalTokenCount: input + output,
        },
      }),
      bill: (input * 2 + output * 12) * MTOK,
    }),
  },
  "ai/run": {
    path: "/accounts/default/ai/run",
    body: { model: "openai/gpt-4o-mini", input: { messages: prompt, max_tokens: 4000 } },
    answer: ({ input, output }) => ({
      body: json({ choices: [{}], usage: { prompt_tokens: input, completion_tokens: output } }),
      bill: (input * 0.15 + output * 0.6) * MTOK,
    }),
  },
  "usage that was measured elsewhere": {
    path: "",
    body: {},
    use: async (gateway, { input, output }) => {
      const { status } = await server.api("POST", `/accounts/default/ai-gateway/gateways/${gateway}/usage`, {
        provider: "openai",
        model: "gpt-5",
        tokens_in: input,
        tokens_out: output,
        tier: "batch",
      });
      expect(status).toBe(201);
    },
    answer: ({ input, output }) => ({ body: "", bill: ((input * 1.25 + output * 10) * MTOK) / 2 }),
  },
  "a price that the caller states": {
    path: "anthropic/v1/messages",
    body: { model: "claude-sonnet-4-6", messages: prompt, max_tokens: 4000 },
    headers: {
      "gw-aig-custom-cost": json({
        per_token_in: 1e-6,
        per_token_out: 2e-6,
        per_cache_read_token: 1e-7,
        per_cache_write_token: 3e-6,
      }),
    },
    answer: ({ input, output, pieces }) => ({
      body: json({
        type: "message",
        content: [],
        usage: {
          input_tokens: input,
          output_tokens: output,
          cache_read_input_tokens: 100 * pieces,
          cache_creation_input_tokens: 10 * pieces,
        },
      }),
      bill: (input + output * 2 + 100 * pieces * 0.1 + 10 * pieces * 3) * MTOK,
    }),
  },
  "speech at a price of the operator": {
    path: "elevenlabs/v1/text-to-speech/voice",
    body: { model_id: "eleven_v3", text: "Grüße, 世界! 👋".repeat(100) },
    answerType: "audio/mpeg",
    answer: () => ({ body: Buffer.alloc(4000), bill: 1200 * 100 * MTOK }),
  },
  "speech of a provider whose models are all priced": {
    path: "cartesia/tts/bytes",
    body: { model_id: "sonic-3", transcript: "Hello", voice: {} },
    answerType: "audio/wav",
    answer: () => ({ body: Buffer.alloc(4000), bill: 5 * 50 * MTOK }),
  },
  "a transcription at a price of the operator": {
    path: "deepgram/v1/listen?model=nova-3",
    body: Buffer.alloc(4000),
    requestType: "audio/wav",
    answer: ({ input }) => ({
      body: json({ metadata: { duration: input }, results: { channels: [] } }),
      bill: (input * 0.36) / 3600,
    }),
  },
  "a model by its resource name": {
    path: `aws-bedrock/bedrock-runtime/us-east-1/model/${encodeURIComponent(
      "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-6",
    )}/converse`,
    body: { messages: [], inferenceConfig: { maxTokens: 4000 } },
    answer: ({ input, output }) => ({
      body: json({ output: {}, usage: { inputTokens: input, outputTokens: output } }),
      bill: (input * 3.3 + output * 16.5) * MTOK,
    }),
  },
  "a realtime session": {
    path: "",
    body: {},
    use: async (gateway, { input, output }) => {
      const usage = { total_tokens: input + output, input_tokens: input, output_tokens: output };
      realtime.serve = ({ socket }) => socket.on("message", () => respond(socket, usage));
      const url = `${server.url}/v1/default/${gateway}/groq/realtime?model=gpt-realtime`;
      const client = await openSession(url, { headers: { authorization: "Bearer key" } });
      client.send({ type: "response.create", response: { max_output_tokens: 4000 } });
      await client.event("response.done");
      client.socket.close();
    },
    answer: ({ input, output }) => ({ body: "", bill: (input * 4 + output * 16) * MTOK }),
  },
  embeddings: {
    path: "openai/embeddings",
    body: { model: "text-embedding-3-small", input: "Hello" },
    answer: ({ input }) => ({
      body: json({ data: [], usage: { prompt_tokens: input, total_tokens: input } }),
      bill: input * 0.02 * MTOK,
    }),
  },
  "a stream of Converse": {
    path: "aws-bedrock/bedrock-runtime/us-east-1/model/anthropic.claude-sonnet-4-6/converse-stream",
    body: { messages: [], inferenceConfig: { maxTokens: 4000 } },
    answerType: "application/vnd.amazon.eventstream",
    answer: ({ input, output }) => ({
      body: awsMessage({ usage: { inputTokens: input, outputTokens: output }, metrics: {} }),
      bill: (input * 3.3 + output * 16.5) * MTOK,
    }),
  },
  "a stream of an invoked model": {
    path: "aws-bedrock/bedrock-runtime/us-east-1/model/anthropic.claude-sonnet-4-6/invoke-with-response-stream",
    body: { anthropic_version: "bedrock-2023-05-31", messages: prompt, max_tokens: 4000 },
    answerType: "application/vnd.amazon.eventstream",
    answer: ({ input, output }) => ({
      body: Buffer.concat([
        invoked({ type: "message_start", message: { usage: { input_tokens: input, output_tokens: 1 } } }),
        invoked({ type: "message_delta", delta: {}, usage: { output_tokens: output } }),
        invoked({ type: "message_stop", "amazon-bedrock-invocationMetrics": { inputTokenCount: input } }),
      ]),
      bill: (input * 3.3 + Math.max(1, output) * 16.5) * MTOK,
    }),
  },
  "Converse in a faster tier": {
    path: "aws-bedrock/bedrock-runtime/us-east-1/model/anthropic.claude-sonnet-4-6/converse",
    body: { messages: [], inferenceConfig: { maxTokens: 4000 }, serviceTier: { type: "priority" } },
    answer: ({ input, output }) => ({
      body: json({
        output: {},
        usage: { inputTokens: input, outputTokens: output },
        serviceTier: { type: "priority" },
      }),
      bill: (input * 3.3 + output * 16.5) * 1.75 * MTOK,
    }),
  },
  pictures: {
    path: "openai/images/generations",
    body: { model: "gpt-image-1", prompt: "A cat", n: 2 },
    answer: ({ input, output }) => ({
      body: json({ data: [], usage: { input_tokens: input, output_tokens: output } }),
      bill: null,
    }),
  },
  "a transcription by tokens": {
    path: "openai/audio/transcriptions",
    body: form({ model: "gpt-4o-transcribe", file: "x".repeat(4000) }),
    requestType: `multipart/form-data; boundary=${BOUNDARY}`,
    answer: ({ input, output }) => ({
      body: json({ text: "Hi", usage: { input_tokens: input, output_tokens: output } }),
      bill: null,
    }),
  },
  "a transcription by time": {
    path: "openai/audio/transcriptions",
    body: form({ file: "x".repeat(4000), model: "whisper-1" }),
    requestType: `multipart/form-data; boundary=${BOUNDARY}`,
    answer: ({ input }) => ({
      body: json({ text: "Hi", usage: { type: "duration", seconds: input } }),
      bill: (input * 0.36) / 3600,
    }),
  },
  "a transcription as text": {
    path: "openai/audio/transcriptions",
    body: form({ model: "whisper-1", response_format: "text" }),
    requestType: `multipart/form-data; boundary=${BOUNDARY}`,
    answerType: "text/plain",
    answer: () => ({ body: "Hi", bill: null }),
  },
  speech: {
    path: "openai/audio/speech",
    body: { model: "gpt-4o-mini-tts", input: "Hello" },
    answerType: "audio/mpeg",
    answer: () => ({ body: Buffer.alloc(4000), bill: null }),
  },
  "pages of documents": {
    path: "mistral/ocr",
    body: {
      model: "mistral-ocr-2512",
      document: { type: "image_url", image_url: "data:image/png;base64,AAAA" },
    },
    answer: ({ pieces }) => ({
      body: json({ pages: [], usage_info: { pages_processed: pieces } }),
      bill: pieces * 0.002,
    }),
  },
  "annotated pages of documents": {
    path: "mistral/ocr",
    body: {
      model: "mistral-ocr-2512",
      document: { type: "image_url", image_url: "data:image/png;base64,AAAA" },
      document_annotation_format: { type: "json_schema" },
    },
    answer: ({ pieces }) => ({
      body: json({ pages: [], usage_info: { pages_processed: pieces } }),
      bill: pieces * 0.003,
    }),
  },
  "pictures by quality and size": {
    path: "openai/images/generations",
    body: { model: "dall-e-3", prompt: "A cat", quality: "hd", size: "1024x1792", n: 3 },
    answer: () => ({ body: json({ created: 1, data: [{}, {}, {}] }), bill: 0.36 }),
  },
  "a picture of the usual size": {
    path: "openai/images/generations",
    body: { model: "dall-e-3", prompt: "A cat" },
    answer: () => ({ body: json({ created: 1, data: [{}] }), bill: 0.04 }),
  },
  "changed pictures": {
    path: "openai/images/edits",
    body: form({ image: "x".repeat(4000), size: "512x512", model: "dall-e-2", n: "2", prompt: "A cat" }),
    requestType: `multipart/form-data; boundary=${BOUNDARY}`,
    answer: () => ({ body: json({ created: 1, data: [{}, {}] }), bill: 0.036 }),
  },
  "pictures of Imagen": {
    path: "google-ai-studio/v1beta/models/imagen-4.0-generate-001:predict",
    body: { instances: [{ prompt: "A cat" }], parameters: { sampleCount: 2 } },
    answer: () => ({ body: json({ predictions: [{}, {}] }), bill: 0.08 }),
  },
  "speech by characters": {
    path: "openai/audio/speech",
    body: { model: "tts-1", input: "Grüße, 世界! 👋".repeat(100), voice: "alloy" },
    answerType: "audio/mpeg",
    answer: () => ({ body: Buffer.alloc(4000), bill: 1200 * 15 * MTOK }),
  },
  "a ranking by searches": {
    path: "cohere/v2/rerank",
    body: { model: "rerank-v3.5", query: "Hello", documents: ["a", "b"] },
    answer: ({ pieces }) => ({
      body: json({ results: [], meta: { billed_units: { search_units: pieces } } }),
      bill: pieces * 0.002,
    }),
  },
  "a ranking that does not state its searches": {
    path: "cohere/v2/rerank",
    body: { model: "rerank-v3.5", query: "Hello", documents: Array.from({ length: 101 }, () => "a") },
    answer: () => ({ body: json({ results: [] }), bill: 0.004 }),
  },
  "a ranking by tokens": {
    path: "voyage/v1/rerank",
    body: { model: "rerank-2.5", query: "Hello", documents: ["a", "b"] },
    answer: ({ input }) => ({
      body: json({ data: [], usage: { total_tokens: input } }),
      bill: input * 0.05 * MTOK,
    }),
  },
  "embeddings of Cohere": {
    path: "cohere/v2/embed",
    body: { model: "embed-v4.0", texts: ["Hello"], input_type: "search_query" },
    answer: ({ input }) => ({
      body: json({ embeddings: {}, meta: { billed_units: { input_tokens: input } } }),
      bill: input * 0.12 * MTOK,
    }),
  },
  moderations: {
    path: "openai/moderations",
    body: { model: "omni-moderation-latest", input: "Hello" },
    answer: () => ({ body: json({ results: [] }), bill: 0 }),
  },
  "objects of the provider": {
    path: "openai/conversations",
    body: { items: [] },
    answer: () => ({ body: json({ id: "conv_1" }), bill: 0 }),
  },
};

let provider: ProviderPeer;
let realtime: RealtimePeer;
let server: TestServer;
let answering: { readonly type: string; readonly body: string | Buffer } = { type: "", body: "" };
/** By path of a GET. */
let stored: Readonly<Record<string, string>> = {};
let now = Date.UTC(2026, 10, 18, 12);
beforeAll(async () => {
  provider = await startProvider(({ method, url }, response) => {
    const kept = method === "GET" ? stored[url.replace(/^\/(?:v1\/)?/, "")] : undefined;
    response.writeHead(200, { "content-type": kept === undefined ? answering.type : "application/json" });
    response.end(kept ?? answering.body);
  });
  realtime = await startRealtimePeer();
  const at = { baseUrl: provider.url };
  const slugs = [
    "openai",
    "anthropic",
    "google-ai-studio",
    "mistral",
    "aws-bedrock",
    "cohere",
    "voyage",
    "elevenlabs",
    "cartesia",
    "deepgram",
  ];
  server = await startTestServer({
    file: {
      providers: {
        ...Object.fromEntries(slugs.map((slug) => [slug, at])),
        groq: { baseUrl: `${realtime.url}/v1` },
      },
      gateway: {
        prices: {
          groq: { "gpt-realtime": { in: 4, out: 16 } },
          elevenlabs: { eleven_v3: { in: 0, out: 0, characters: 100 } },
          cartesia: { "*": { in: 0, out: 0, characters: 50 } },
          deepgram: { "nova-3": { in: 0, out: 0, audioHour: 0.36 } },
        },
      },
    },
    clock: { now: () => now },
  });
});
afterAll(async () => {
  await server.stop();
  await provider.close();
  await realtime.close();
});

const lines = (count: number, value: object) => `${json(value)}\n`.repeat(count);
const STARTED = { id: "job", name: "job", status: "queued", processing_status: "in_progress" };
const TRAINED = "gpt-4o-mini-2024-07-18";

/** Jobs: a POST starts them, and a GET shows that they have ended. The work of batches costs half. */
const JOBS: Readonly<Record<string, Kind>> = {
  "a batch of OpenAI": {
    path: "openai/batches",
    body: { input_file_id: "in" },
    job: ({ input, output, pieces }) => ({
      state: "openai/batches/job",
      stored: {
        "files/in/content": lines(pieces, {
          body: { model: "gpt-4o-mini", messages: prompt, max_tokens: 9 },
        }),
        "batches/job": json({ id: "job", status: "completed", output_file_id: "out" }),
        "files/out/content": lines(pieces, {
          response: {
            status_code: 200,
            body: { model: "gpt-4o-mini", usage: { prompt_tokens: input, completion_tokens: output } },
          },
        }),
      },
    }),
    answer: ({ input, output, pieces }) => ({
      body: json(STARTED),
      bill: (pieces * (input * 0.15 + output * 0.6) * MTOK) / 2,
    }),
  },
  "a batch of Anthropic": {
    path: "anthropic/v1/messages/batches",
    body: {
      requests: [{ custom_id: "a", params: { model: "claude-sonnet-4-6", max_tokens: 9, messages: prompt } }],
    },
    job: ({ input, output, pieces }) => ({
      state: "anthropic/v1/messages/batches/job",
      stored: {
        "messages/batches/job": json({ id: "job", processing_status: "ended" }),
        "messages/batches/job/results": lines(pieces, {
          result: {
            type: "succeeded",
            message: {
              type: "message",
              model: "claude-sonnet-4-6",
              usage: { input_tokens: input, output_tokens: output },
            },
          },
        }),
      },
    }),
    answer: ({ input, output, pieces }) => ({
      body: json(STARTED),
      bill: (pieces * (input * 3 + output * 15) * MTOK) / 2,
    }),
  },
  "a batch of Mistral": {
    path: "mistral/v1/batch/jobs",
    body: { model: "mistral-small-latest", endpoint: "/v1/chat/completions", input_files: ["in"] },
    job: ({ input, output, pieces }) => ({
      state: "mistral/v1/batch/jobs/job",
      stored: {
        "files/in/content": lines(pieces, { body: { messages: prompt, max_tokens: 9 } }),
        "batch/jobs/job": json({ id: "job", status: "SUCCESS", output_file: "out" }),
        "files/out/content": lines(pieces, {
          response: {
            status_code: 200,
            body: { usage: { prompt_tokens: input, completion_tokens: output } },
          },
        }),
      },
    }),
    answer: ({ input, output, pieces }) => ({
      body: json(STARTED),
      bill: (pieces * (input * 0.1 + output * 0.3) * MTOK) / 2,
    }),
  },
  "a batch of Gemini": {
    path: "google-ai-studio/v1beta/models/gemini-3-pro-preview:batchGenerateContent",
    body: { batch: { inputConfig: { requests: { requests: [{ request: { contents: [] } }] } } } },
    job: ({ input, output, pieces }) => ({
      state: "google-ai-studio/v1beta/batches/job",
      stored: {
        "v1beta/batches/job": json({
          done: true,
          response: {
            inlinedResponses: {
              inlinedResponses: Array.from({ length: pieces }, () => ({
                response: {
                  usageMetadata: {
                    promptTokenCount: input,
                    candidatesTokenCount: output,
                    totalTokenCount: input + output,
                  },
                },
              })),
            },
          },
        }),
      },
    }),
    answer: ({ input, output, pieces }) => ({
      body: json({ name: "batches/job" }),
      bill: (pieces * (input * 2 + output * 12) * MTOK) / 2,
    }),
  },
  "a film of Veo": {
    path: "google-ai-studio/v1beta/models/veo-3.1-generate-preview:predictLongRunning",
    body: { instances: [{ prompt: "A cat" }], parameters: { durationSeconds: 6 } },
    job: () => ({
      state: "google-ai-studio/v1beta/models/veo-3.1-generate-preview/operations/job",
      stored: {
        "v1beta/models/veo-3.1-generate-preview/operations/job": json({ done: true, response: {} }),
      },
    }),
    answer: () => ({
      body: json({ name: "models/veo-3.1-generate-preview/operations/job" }),
      bill: 6 * 0.4,
    }),
  },
  "a video": {
    path: "openai/videos",
    body: { model: "sora-2-pro", seconds: "8", size: "1792x1024" },
    job: () => ({
      state: "openai/videos/job",
      stored: {
        "videos/job": json({
          id: "job",
          status: "completed",
          model: "sora-2-pro",
          seconds: "8",
          size: "1792x1024",
        }),
      },
    }),
    answer: () => ({ body: json(STARTED), bill: 8 * 0.5 }),
  },
  "a fine-tuning": {
    path: "openai/fine_tuning/jobs",
    body: { model: TRAINED, training_file: "in" },
    job: ({ input }) => ({
      state: "openai/fine_tuning/jobs/job",
      stored: {
        "files/in/content": lines(1, { messages: prompt }),
        "fine_tuning/jobs/job": json({ id: "job", status: "succeeded", trained_tokens: input }),
      },
    }),
    answer: ({ input }) => ({ body: json(STARTED), bill: input * 3 * MTOK }),
  },
};

/** Rows of calls that start or read a job have no cost; the job has a row of its own. */
async function readBilled(gateway: string): Promise<Record<string, unknown>[]> {
  const isOfJob = (path: unknown) =>
    /batch|videos|fine_tuning|predictLongRunning|operations/.test(String(path));
  const pages = await Promise.all([1, 2, 3].map((page) => readLogs(server, gateway, page)));
  const rows = pages.flat();
  return rows.filter(({ cost, path }) => Number(cost) > 0 || !isOfJob(path)).toReversed();
}

async function readUsed(gateway: string): Promise<number> {
  const { body } = await server.api("GET", `/accounts/default/ai-gateway/gateways/${gateway}/budgets`);
  return (body as { result: { budgets: [{ used: number }] } }).result.budgets[0].used;
}

/** What the charts show. */
async function readCharted(gateway: string): Promise<{ calls: number; cost: number; models: string[] }> {
  const end = new Date(now + 3_600_000).toISOString();
  const path = `/accounts/default/ai-gateway/usage?gateway_id=${gateway}&group_by=model&end=${end}`;
  const { body } = await server.api("GET", path);
  const rows = (body as { result: { model: string; calls: number; cost: number }[] }).result;
  return {
    calls: rows.reduce((sum, { calls }) => sum + calls, 0),
    cost: rows.reduce((sum, { cost }) => sum + cost, 0),
    models: rows.filter(({ cost }) => cost > 0).map(({ model }) => model),
  };
}

it("has the provider's bill in every row, and their sum in the budget and in the charts", async () => {
  let runs = 0;
  const counts = fc.record({
    input: fc.integer({ min: 1, max: 5000 }),
    output: fc.integer({ min: 1, max: 3000 }),
    pieces: fc.integer({ min: 1, max: 4 }),
  });
  const every = Object.entries({ ...KINDS, ...JOBS });
  const call = fc.record({ kind: fc.constantFrom(...every), counts });
  const all = every.map((kind) => ({ kind, counts: { input: 100, output: 50, pieces: 2 } }));
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 16 }), async (calls) => {
      now += 86_400_000;
      const gateway = `bill-${++runs}`;
      const rules = [{ id: "all", limitType: "cost", limit: 1000, window: "day" }];
      await setGateway(
        server,
        { spend_limits: { rules }, allow_anonymous_keys: true, trust_custom_cost: true },
        gateway,
      );
      for (const slug of ["anthropic", "mistral", "google-ai-studio"]) {
        const configs = `/accounts/default/ai-gateway/gateways/${gateway}/provider_configs`;
        await server.api("POST", configs, { provider_slug: slug, secret: "stored", weight: 1 });
      }
      const bills: [string, number | null][] = [];
      for (const {
        kind: [kind, sent],
        counts: given,
      } of calls) {
        const { path, body, requestType, answerType = "application/json", answer, job, use } = sent;
        const own = sent.headers ?? {};
        const answered = answer(given);
        answering = { type: answerType, body: answered.body };
        const run = job?.(given);
        stored = run?.stored ?? {};
        const headers = { authorization: "Bearer key" };
        bills.push([kind, answered.bill]);
        if (use !== undefined) await use(gateway, given);
        else {
          const isDoor = path.startsWith("/");
          const { status, body: text } = await send(server, "POST", isDoor ? path : callPath(path, gateway), {
            body: Buffer.isBuffer(body) ? body : json(body),
            headers: {
              "content-type": requestType ?? "application/json",
              ...(isDoor ? { "gw-aig-gateway-id": gateway } : {}),
              // At the doors, the stored keys of several providers are used.
              ...(isDoor && !path.endsWith("ai/run") ? {} : headers),
              ...own,
            },
          });
          expect([kind, status, text]).toEqual([kind, 200, text]);
        }
        if (run !== undefined) await send(server, "GET", callPath(run.state, gateway), { headers });
        if (run === undefined && use === undefined) continue;
        await waitUntil(
          async () => (await readBilled(gateway)).length,
          (count) => count === bills.length,
        );
      }
      const rows = await readBilled(gateway);
      expect(rows).toHaveLength(calls.length);
      for (const [i, [kind, bill]] of bills.entries()) {
        if (bill !== null) expect([kind, Number(rows[i]?.["cost"])]).toEqual([kind, expect.closeTo(bill, 9)]);
        else expect([kind, Number(rows[i]?.["cost"]) > 0]).toEqual([kind, true]);
      }
      const sum = rows.reduce((total, row) => total + Number(row["cost"] ?? 0), 0);
      // A budget counts in millionths, rounded up for each call.
      const used = await readUsed(gateway);
      expect(used).toBeGreaterThanOrEqual(sum - 1e-9);
      expect(used).toBeLessThanOrEqual(sum + calls.length * 1e-6);
      const charted = await readCharted(gateway);
      expect(charted.cost).toBeCloseTo(sum, 9);
      expect(charted.calls).toBeGreaterThanOrEqual(calls.length);
      const models = rows.filter(({ cost }) => Number(cost) > 0).map(({ model }) => String(model));
      expect(new Set(charted.models)).toEqual(new Set(models));
    }),
    { numRuns: 12, seed: 33, examples: [[all]] },
  );
});

/** A limit, a request that fits, and what makes it too dear. */
const DEARER: Readonly<Record<string, readonly [limit: number, path: string, body: object, more: object]>> = {
  "a fast tier": [
    0.03,
    "openai/chat/completions",
    { model: "gpt-5.6-sol", messages: prompt, max_completion_tokens: 1000 },
    { service_tier: "fast" },
  ],
  "a tier of an unknown name": [
    0.1,
    "openai/chat/completions",
    { model: "gpt-5.6-sol", messages: prompt, max_completion_tokens: 1000 },
    { service_tier: "faster-than-ever" },
  ],
  "a fast speed": [
    0.03,
    "anthropic/v1/messages",
    { model: "claude-opus-5", messages: prompt, max_tokens: 1000 },
    { speed: "fast" },
  ],
  "a faster tier of Bedrock": [
    0.02,
    "aws-bedrock/bedrock-runtime/us-east-1/model/anthropic.claude-sonnet-4-6/converse",
    { messages: [], inferenceConfig: { maxTokens: 1000 } },
    { serviceTier: { type: "priority" } },
  ],
  "an unknown tier of another provider": [
    0.002,
    "mistral/chat/completions",
    { model: "mistral-small-latest", messages: prompt, max_tokens: 4000 },
    { service_tier: "faster-than-ever" },
  ],
  "more pictures": [0.1, "openai/images/generations", { model: "dall-e-3", prompt: "A cat" }, { n: 3 }],
  "better pictures": [
    0.1,
    "openai/images/generations",
    { model: "dall-e-3", prompt: "A cat" },
    { quality: "hd", size: "1024x1792" },
  ],
  "pictures of more tokens": [
    0.1,
    "openai/images/generations",
    { model: "gpt-image-1", prompt: "A cat", quality: "low" },
    { quality: "high" },
  ],
  "a longer text to speak": [
    0.01,
    "openai/audio/speech",
    { model: "tts-1", input: "Hello" },
    { input: "x".repeat(1000) },
  ],
  "more documents to rank": [
    0.003,
    "cohere/v2/rerank",
    { model: "rerank-v3.5", query: "Hello", documents: ["a"] },
    { documents: Array.from({ length: 101 }, () => "a") },
  ],
};

it.each(Object.entries(DEARER))(
  "refuses %s before the call, and for good",
  async (title, [limit, path, body, more]) => {
    const gateway = title.replaceAll(" ", "-");
    const rules = [{ id: "all", limitType: "cost", limit, window: null }];
    await setGateway(server, { spend_limits: { rules } }, gateway);
    const sendOne = (sent: object) =>
      post(server, path, { gateway, body: json(sent), headers: { authorization: "Bearer key" } });
    answering = {
      type: "application/json",
      body: json({ type: "message", choices: [{}], content: [], data: [] }),
    };
    const before = provider.requests.length;
    const { status, headers } = await sendOne({ ...body, ...more });
    expect([status, headers["x-should-retry"], headers["retry-after"]]).toEqual([429, "false", undefined]);
    expect(provider.requests.length).toBe(before);
    expect((await sendOne(body)).status).toBe(200);
  },
);
