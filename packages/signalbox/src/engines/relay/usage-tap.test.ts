import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { crc32 } from "node:zlib";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NO_USAGE, type Usage } from "./usage.ts";
import { createUsageTap, type TappedResponse } from "./usage-tap.ts";

const JSON_TYPE = "application/json; charset=utf-8";
const SSE_TYPE = "text/event-stream; charset=utf-8";

interface Sample {
  readonly title: string;
  readonly contentType: string;
  readonly body: string;
  readonly model: string | null;
  readonly usage: Partial<Usage> | null;
}

/** Text that is hard to scan: multi-byte characters, quotation marks, and text that looks like usage. */
const TRICKY = 'Grüße 👋 "usage": {"prompt_tokens": 999} \n\ndata: {"usage":{"prompt_tokens":998}}\n end';

const events = (...values: unknown[]) => values.map((value) => `data: ${JSON.stringify(value)}\n\n`).join("");
const named = (...values: { type: string }[]) =>
  values.map((value) => `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`).join("");

const chatUsage = {
  prompt_tokens: 2006,
  completion_tokens: 300,
  total_tokens: 2306,
  prompt_tokens_details: { cached_tokens: 1920, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 128 },
};
const chatResult = { tokensIn: 2006, tokensOut: 300, tokensInCached: 1920, tokensOutReasoning: 128 };
const responsesUsage = {
  input_tokens: 328,
  input_tokens_details: { cached_tokens: 100 },
  output_tokens: 52,
  output_tokens_details: { reasoning_tokens: 40 },
  total_tokens: 380,
};
const responsesResult = { tokensIn: 328, tokensOut: 52, tokensInCached: 100, tokensOutReasoning: 40 };
const geminiUsage = {
  promptTokenCount: 1000,
  candidatesTokenCount: 80,
  thoughtsTokenCount: 20,
  cachedContentTokenCount: 600,
  totalTokenCount: 1100,
};
const geminiResult = { tokensIn: 1000, tokensOut: 100, tokensInCached: 600, tokensOutReasoning: 20 };

const SAMPLES: readonly Sample[] = [
  {
    title: "OpenAI chat completion",
    contentType: JSON_TYPE,
    body: JSON.stringify({
      id: "chatcmpl-1",
      object: "chat.completion",
      model: "gpt-5-mini",
      choices: [{ index: 0, message: { role: "assistant", content: TRICKY }, finish_reason: "stop" }],
      usage: chatUsage,
    }),
    model: "gpt-5-mini",
    usage: chatResult,
  },
  {
    title: "OpenAI chat stream with usage in the last chunk and null before",
    contentType: SSE_TYPE,
    body: `${events(
      { id: "c", model: "gpt-5-mini", choices: [{ delta: { role: "assistant", content: "" } }], usage: null },
      { id: "c", model: "gpt-5-mini", choices: [{ delta: { content: TRICKY } }], usage: null },
      { id: "c", model: "gpt-5-mini", choices: [], usage: chatUsage },
    )}data: [DONE]\n\n`,
    model: "gpt-5-mini",
    usage: chatResult,
  },
  {
    title: "chat stream that repeats its usage in every chunk, with comments and CRLF",
    contentType: SSE_TYPE,
    body: `: processing\r\n\r\n${events(
      {
        model: "grok-4",
        choices: [{ delta: { content: "a" } }],
        usage: { prompt_tokens: 9, completion_tokens: 1 },
      },
      {
        model: "grok-4",
        choices: [{ delta: { content: "b" } }],
        usage: { prompt_tokens: 9, completion_tokens: 2 },
      },
    ).replaceAll("\n", "\r\n")}data: [DONE]\r\n\r\n`,
    model: "grok-4",
    usage: { tokensIn: 9, tokensOut: 2 },
  },
  {
    title: "chat stream without usage",
    contentType: SSE_TYPE,
    body: `${events({ model: "gpt-4o", choices: [{ delta: { content: TRICKY } }] })}data: [DONE]\n\n`,
    model: "gpt-4o",
    usage: null,
  },
  {
    title: "chat completion that counts reasoning beside the completion",
    contentType: JSON_TYPE,
    body: JSON.stringify({
      model: "grok-4",
      choices: [],
      usage: {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 115,
        completion_tokens_details: { reasoning_tokens: 100 },
      },
    }),
    model: "grok-4",
    usage: { tokensIn: 10, tokensOut: 105, tokensOutReasoning: 100 },
  },
  {
    title: "OpenAI response",
    contentType: JSON_TYPE,
    body: JSON.stringify({
      id: "resp_1",
      object: "response",
      model: "gpt-5",
      output: [{ type: "message", content: [{ type: "output_text", text: TRICKY }] }],
      usage: responsesUsage,
    }),
    model: "gpt-5",
    usage: responsesResult,
  },
  {
    title: "OpenAI response stream",
    contentType: SSE_TYPE,
    body: named(
      { type: "response.created", response: { id: "r", model: "gpt-5", usage: null } } as { type: string },
      { type: "response.output_text.delta", delta: TRICKY } as { type: string },
      {
        type: "response.completed",
        response: { id: "r", model: "gpt-5", output: [{ text: TRICKY }], usage: responsesUsage },
      } as { type: string },
    ),
    model: "gpt-5",
    usage: responsesResult,
  },
  {
    title: "embeddings",
    contentType: JSON_TYPE,
    body: JSON.stringify({
      object: "list",
      data: [{ object: "embedding", index: 0, embedding: Array.from({ length: 64 }, (_, i) => i / 7) }],
      model: "text-embedding-3-small",
      usage: { prompt_tokens: 8, total_tokens: 8 },
    }),
    model: "text-embedding-3-small",
    usage: { tokensIn: 8 },
  },
  {
    title: "Anthropic message",
    contentType: JSON_TYPE,
    body: JSON.stringify({
      id: "msg_1",
      type: "message",
      model: "claude-sonnet-4-5",
      content: [
        { type: "text", text: TRICKY },
        { type: "tool_use", name: "t", input: { usage: { input_tokens: 7777 } } },
      ],
      usage: {
        input_tokens: 100,
        cache_creation_input_tokens: 30,
        cache_read_input_tokens: 500,
        output_tokens: 42,
      },
    }),
    model: "claude-sonnet-4-5",
    usage: { tokensIn: 630, tokensOut: 42, tokensInCached: 500, tokensInCacheWrite: 30 },
  },
  {
    title: "Anthropic stream",
    contentType: SSE_TYPE,
    body: named(
      {
        type: "message_start",
        message: {
          id: "msg_1",
          model: "claude-sonnet-4-5",
          content: [],
          usage: {
            input_tokens: 100,
            cache_creation_input_tokens: 30,
            cache_read_input_tokens: 500,
            output_tokens: 1,
          },
        },
      } as { type: string },
      { type: "ping" },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: TRICKY } } as {
        type: string;
      },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 42 } } as {
        type: string;
      },
      { type: "message_stop" },
    ),
    model: "claude-sonnet-4-5",
    usage: { tokensIn: 630, tokensOut: 42, tokensInCached: 500, tokensInCacheWrite: 30 },
  },
  {
    title: "Gemini content",
    contentType: JSON_TYPE,
    body: JSON.stringify({
      candidates: [{ content: { parts: [{ text: TRICKY }] } }],
      usageMetadata: geminiUsage,
      modelVersion: "gemini-2.5-flash",
    }),
    model: "gemini-2.5-flash",
    usage: geminiResult,
  },
  {
    title: "Gemini stream as server-sent events",
    contentType: SSE_TYPE,
    body: events(
      {
        candidates: [{ content: { parts: [{ text: TRICKY }] } }],
        usageMetadata: { promptTokenCount: 1000, totalTokenCount: 1000 },
        modelVersion: "gemini-2.5-flash",
      },
      {
        candidates: [{ content: { parts: [{ text: "…" }] } }],
        usageMetadata: geminiUsage,
        modelVersion: "gemini-2.5-flash",
      },
    ),
    model: "gemini-2.5-flash",
    usage: geminiResult,
  },
  {
    title: "Gemini stream as an array",
    contentType: JSON_TYPE,
    body: JSON.stringify(
      [
        {
          candidates: [{ content: { parts: [{ text: TRICKY }] } }],
          usageMetadata: { promptTokenCount: 1000 },
        },
        { candidates: [], usageMetadata: geminiUsage, modelVersion: "gemini-2.5-flash" },
      ],
      null,
      2,
    ),
    model: "gemini-2.5-flash",
    usage: geminiResult,
  },
  {
    title: "Ollama's lines",
    contentType: "application/x-ndjson",
    body: `${JSON.stringify({ model: "llama3", message: { content: TRICKY }, done: false })}\n${JSON.stringify(
      {
        model: "llama3",
        done: true,
        usage: { prompt_tokens: 26, completion_tokens: 259 },
      },
    )}\n`,
    model: "llama3",
    usage: { tokensIn: 26, tokensOut: 259 },
  },
  {
    title: "Bedrock converse",
    contentType: JSON_TYPE,
    body: JSON.stringify({
      output: { message: { content: [{ text: TRICKY }] } },
      usage: { inputTokens: 5, outputTokens: 3, cacheReadInputTokens: 2 },
    }),
    model: null,
    usage: { tokensIn: 7, tokensOut: 3, tokensInCached: 2 },
  },
  {
    title: "Workers AI result",
    contentType: JSON_TYPE,
    body: JSON.stringify({ result: { response: "x", usage: { prompt_tokens: 4, completion_tokens: 2 } } }),
    model: null,
    usage: { tokensIn: 4, tokensOut: 2 },
  },
];

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function tap(contentType: string, chunks: readonly Buffer[], wantsModel = true): TappedResponse {
  const usageTap = createUsageTap(contentType, wantsModel);
  for (const chunk of chunks) usageTap.push(chunk);
  return usageTap.end();
}

/** One message of Amazon's binary event stream, without headers. */
function awsMessage(payload: object): Buffer {
  const body = Buffer.from(JSON.stringify(payload));
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(16 + body.length, 0);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const all = Buffer.concat([prelude, body]);
  const end = Buffer.alloc(4);
  end.writeUInt32BE(crc32(all));
  return Buffer.concat([all, end]);
}

describe("the usage tap", () => {
  describe.each(SAMPLES)("reads $title", (sample) => {
    const bytes = Buffer.from(sample.body);
    const usage = sample.usage === null ? null : { ...NO_USAGE, ...sample.usage };
    const expected = { usage, model: sample.model };

    it("in one piece", () => {
      expect(tap(sample.contentType, [bytes])).toEqual(expected);
    });

    it("byte by byte", () => {
      expect(
        tap(
          sample.contentType,
          Array.from(bytes, (_, i) => bytes.subarray(i, i + 1)),
        ),
      ).toEqual(expected);
    });

    it("cut anywhere", () => {
      fc.assert(
        fc.property(fc.array(fc.nat(bytes.length), { maxLength: 12 }), (cuts) => {
          const points = [0, ...cuts.sort((a, b) => a - b), bytes.length];
          const chunks = points.slice(1).map((end, i) => bytes.subarray(points[i], end));
          expect(tap(sample.contentType, chunks)).toEqual(expected);
          expect(tap(sample.contentType, chunks, false).usage).toEqual(usage);
        }),
        { numRuns: 60 },
      );
    });
  });

  describe("of Amazon's binary event stream", () => {
    const AWS_TYPE = "application/vnd.amazon.eventstream";
    const wrapped = (event: object) => ({ bytes: Buffer.from(JSON.stringify(event)).toString("base64") });
    const claude = [
      { type: "message_start", message: { model: "claude-opus-5", usage: { input_tokens: 300 } } },
      { type: "content_block_delta", delta: { type: "text_delta", text: TRICKY } },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 60_000 } },
      { type: "message_stop", "amazon-bedrock-invocationMetrics": { inputTokenCount: 300 } },
    ].map(wrapped);
    const converse = [
      { role: "assistant" },
      { contentBlockIndex: 0, delta: { text: TRICKY } },
      { stopReason: "end_turn" },
      {
        usage: {
          inputTokens: 20,
          outputTokens: 7,
          cacheReadInputTokens: 100,
          cacheWriteInputTokens: 50,
          cacheDetails: [{ ttl: "1h", inputTokens: 30 }],
        },
        metrics: { latencyMs: 5 },
      },
    ];
    const llama = [
      { generation: "Hi", prompt_token_count: 5, generation_token_count: null },
      { generation: "", "amazon-bedrock-invocationMetrics": { inputTokenCount: 5, outputTokenCount: 9 } },
    ].map(wrapped);

    it.each([
      ["Claude's events", claude, "claude-opus-5", { tokensIn: 300, tokensOut: 60_000 }],
      [
        "Converse",
        converse,
        null,
        {
          tokensIn: 170,
          tokensOut: 7,
          tokensInCached: 100,
          tokensInCacheWrite: 50,
          tokensInCacheWrite1h: 30,
        },
      ],
      ["other models", llama, null, { tokensIn: 5, tokensOut: 9 }],
    ])("reads %s wherever the bytes are split", (_, events, model, usage) => {
      const bytes = Buffer.concat(events.map(awsMessage));
      fc.assert(
        fc.property(fc.array(fc.nat({ max: bytes.length }), { maxLength: 20 }), (cuts) => {
          const tap = createUsageTap(AWS_TYPE);
          const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
          for (const [i, end] of places.slice(1).entries()) tap.push(bytes.subarray(places[i], end));
          expect(tap.end()).toEqual({ usage: { ...NO_USAGE, ...usage }, model });
        }),
      );
    });
  });

  it("finds the usage at the end of a body far larger than what it keeps", () => {
    const part = Buffer.from(`${"0.0123,".repeat(9000)}0.5,`);
    const chunks = [
      Buffer.from('{"object":"list","data":[{"embedding":['),
      ...Array.from({ length: 80 }, () => part),
      Buffer.from(
        '1]}],"model":"text-embedding-3-large","usage":{"prompt_tokens":8191,"total_tokens":8191}}',
      ),
    ];
    for (const pieces of [chunks, [Buffer.concat(chunks)]]) {
      expect(tap(JSON_TYPE, pieces)).toEqual({
        usage: { ...NO_USAGE, tokensIn: 8191 },
        model: "text-embedding-3-large",
      });
    }
  });

  it("keeps a bounded amount of a line that does not end", async () => {
    const usageTap = createUsageTap(SSE_TYPE);
    const text = Buffer.from("x".repeat(60_000));
    usageTap.push(Buffer.from('data: {"type":"response.completed","response":{"model":"gpt-5","output":"'));
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 1000; i++) usageTap.push(text);
    // Buffers are freed concurrently, so the figure may lag behind the collection.
    const growth = () => {
      collectGarbage();
      return process.memoryUsage().arrayBuffers - before;
    };
    await expect.poll(growth).toBeLessThan(5_000_000);
    usageTap.push(Buffer.from('","usage":{"input_tokens":3,"output_tokens":4}}}\n\n'));
    expect(usageTap.end().usage).toEqual({ ...NO_USAGE, tokensIn: 3, tokensOut: 4 });
  });

  it("finds nothing, and does not throw, in arbitrary bytes", () => {
    const types = fc.constantFrom(JSON_TYPE, SSE_TYPE, "", "application/x-ndjson", "text/plain");
    const chunk = fc.oneof(
      fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
      fc
        .constantFrom('"usage":{', '"usage":', "{}", "data: {", "\n", '"usageMetadata":{"a":[', "null")
        .map((text) => Buffer.from(text)),
    );
    fc.assert(
      fc.property(types, fc.array(chunk, { maxLength: 12 }), (contentType, chunks) => {
        expect(tap(contentType, chunks).usage).toBeNull();
      }),
    );
  });

  it("ignores counts that are not positive integers", () => {
    const body = JSON.stringify({
      usage: { prompt_tokens: -5, completion_tokens: "12", total_tokens: 1.5 },
    });
    expect(tap(JSON_TYPE, [Buffer.from(body)]).usage).toEqual(NO_USAGE);
  });

  it("finds usage and model in an incomplete body", () => {
    const body = '{"model":"gpt-4o","usage":{"prompt_tokens":5,"completion_tokens":6},"choices":[{"mess';
    expect(tap(JSON_TYPE, [Buffer.from(body)])).toEqual({
      usage: { ...NO_USAGE, tokensIn: 5, tokensOut: 6 },
      model: "gpt-4o",
    });
  });

  it("does not read a body that is neither JSON nor a stream of lines", () => {
    const body = [Buffer.from('{"usage":{"prompt_tokens":5}}')];
    expect(tap("audio/mpeg", body).usage).toBeNull();
  });
});
