import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ResponseHead, writeAwsMessage } from "../../engines/relay/index.ts";
import { faultOf, PassingEnds } from "./answer-check.ts";

const headOf = (contentType: string) => ({ contentType, status: 200 }) as ResponseHead;
const SSE = "text/event-stream; charset=utf-8";
const JSON_TYPE = "application/json";
const DELTA = 'data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}\n\n';
const STOP = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
const BLOCK =
  'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}\n\n';
const ERROR = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n';
const COMPLETED = (length: number) =>
  `event: response.completed\ndata: {"type":"response.completed","response":{"text":"${"x".repeat(length)}"}}\n\n`;

const CANDIDATE =
  'data: {"candidates":[{"content":{"parts":[{"text":"Hello, \\"finishReason\\": none"}]}}]}\n\n';
const FINISHED = 'data: {"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}]}\n\n';
const LINES = "application/x-ndjson";
const LINE = '{"message":{"content":"Hello"},"done":false}\n';
const AWS = "application/vnd.amazon.eventstream";
const aws = (type: string, payload: object) =>
  writeAwsMessage({ ":message-type": "event", ":event-type": type }, JSON.stringify(payload));
const delta = aws("contentBlockDelta", { delta: { text: "Hello" } });
const invoked = (event: object) =>
  aws("chunk", { bytes: Buffer.from(JSON.stringify(event)).toString("base64") });
const exception = writeAwsMessage(
  { ":message-type": "exception", ":exception-type": "throttlingException" },
  JSON.stringify({ message: "busy" }),
);

/** Title, type, body, and the kind of the failure. */
const BODIES: readonly (readonly [string, string, string | Buffer, "in_band" | "broken" | null])[] = [
  ["a short chat stream", SSE, `${DELTA}${STOP}data: [DONE]\n\n`, null],
  ["a long chat stream", SSE, `${DELTA.repeat(500)}${STOP}data: [DONE]\n\n`, null],
  ["a chat stream that ends with its reason", SSE, `${DELTA.repeat(500)}${STOP}`, null],
  ["a chat stream without an end", SSE, DELTA.repeat(500), "broken"],
  ["a short chat stream without an end", SSE, DELTA, "broken"],
  ["a messages stream that ends with an error", SSE, `${BLOCK.repeat(300)}${ERROR}`, "in_band"],
  ["a messages stream without an end", SSE, BLOCK.repeat(300), "broken"],
  ["an answer that its last event repeats", SSE, `${BLOCK}${COMPLETED(50_000)}`, null],
  ["a stream of an API that is not known", SSE, 'data: {"anything":1}\n\n'.repeat(400), null],
  ["a stream without events", SSE, ": ping\n\n", "in_band"],
  ["a JSON object", JSON_TYPE, `{"choices":[{"text":"${"x".repeat(30_000)}"}]}\n`, null],
  ["a JSON object without an end", JSON_TYPE, `{"choices":[{"text":"${"x".repeat(30_000)}`, "in_band"],
  ["an error as JSON", JSON_TYPE, '{"type":"error","error":{"message":"busy"}}', "in_band"],
  ["a page as JSON", JSON_TYPE, "<html></html>", "in_band"],
  ["a page", "text/html", "<html></html>", "in_band"],
  ["a Gemini stream", SSE, `${CANDIDATE}${FINISHED}`, null],
  ["a long Gemini stream", SSE, `${CANDIDATE.repeat(300)}${FINISHED}`, null],
  ["a Gemini stream without an end", SSE, CANDIDATE.repeat(300), "broken"],
  ["a Gemini stream that was blocked", SSE, 'data: {"promptFeedback":{"blockReason":"SAFETY"}}\n\n', null],
  [
    "a list of Gemini",
    JSON_TYPE,
    `[{"candidates":[{"content":{}}]},{"candidates":[{"finishReason":"STOP"}]}]`,
    null,
  ],
  ["a list of Gemini without an end", JSON_TYPE, `[{"candidates":[{"content":{}}]}]`, "broken"],
  [
    "a list of Gemini that ends with an error",
    JSON_TYPE,
    `[{\n "candidates":[{"content":{}}]},\n{"error":{"code":503}}]`,
    "in_band",
  ],
  ["an error as a list", JSON_TYPE, `[{"error":{"code":503}}]`, "in_band"],
  ["lines of Ollama", LINES, `${LINE.repeat(300)}{"done":true}\n`, null],
  ["lines of Ollama without an end", LINES, LINE.repeat(300), "broken"],
  ["lines of Ollama that are cut", LINES, `${LINE}{"message":{"con`, "broken"],
  ["lines that end with an error", LINES, `${LINE.repeat(300)}{"error":"out of memory"}\n`, "in_band"],
  ["lines of an API that is not known", LINES, '{"anything":1}\n'.repeat(300), null],
  ["no lines", LINES, "\n", "in_band"],
  [
    "a stream of Converse",
    AWS,
    Buffer.concat([
      delta,
      delta,
      aws("messageStop", { stopReason: "end_turn" }),
      aws("metadata", { usage: {} }),
    ]),
    null,
  ],
  ["a stream of Converse without an end", AWS, Buffer.concat([delta, delta]), "broken"],
  ["a stream of Converse that is cut", AWS, Buffer.concat([delta, delta]).subarray(0, -5), "broken"],
  [
    "a stream of Converse that ends with an exception",
    AWS,
    Buffer.concat([delta, delta, exception]),
    "in_band",
  ],
  ["only an exception", AWS, exception, "in_band"],
  [
    "an invoked model of Anthropic",
    AWS,
    Buffer.concat([invoked({ type: "content_block_delta" }), invoked({ type: "message_stop" })]),
    null,
  ],
  [
    "an invoked model of Anthropic without an end",
    AWS,
    Buffer.concat([invoked({ type: "message_start" }), invoked({ type: "content_block_delta" })]),
    "broken",
  ],
  ["an invoked model of another maker", AWS, invoked({ generation: "Hi", stop_reason: null }), null],
  ["no messages", AWS, "", "in_band"],
  ["no messages of Amazon's", AWS, "<html>a proxy says no, at some length</html>", "broken"],
  ["nothing", JSON_TYPE, "", "in_band"],
  ["no sound", "audio/mpeg", "", "in_band"],
  ["sound", "audio/mpeg", "ID3", null],
  ["an empty text", "text/plain", "", null],
];

describe.each(BODIES)("%s", (_, type, text, kind) => {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;

  it(`is judged as ${kind ?? "an answer"}, wherever its bytes are split`, () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: bytes.length }), { maxLength: 40 }), (cuts) => {
        const ends = new PassingEnds(headOf(type));
        const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        for (const [i, end] of places.slice(1).entries()) {
          const chunk = bytes.subarray(places[i], end);
          if (chunk.length > 0) ends.push(chunk);
        }
        expect(ends.fault()?.kind ?? null).toBe(kind);
      }),
    );
  });

  it("is judged the same as a whole", () => {
    expect(faultOf(headOf(type), bytes)?.kind ?? null).toBe(kind);
  });
});

it("an error in the middle of a long stream is found in what the cache would keep", () => {
  const bytes = Buffer.from(
    `${DELTA.repeat(500)}data: {"error":{"message":"busy"}}\n\n${DELTA.repeat(500)}${STOP}`,
  );
  expect(faultOf(headOf(SSE), bytes)?.kind).toBe("in_band");
});
