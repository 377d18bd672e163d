import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AttemptPolicy } from "../step/attempt-policy.ts";
import type { RequestType } from "../step/step.ts";
import { ErrorHold, holdFor, type HoldVerdict } from "./answer-hold.ts";

/** The memory of all holds in this file. */
let used = 0;
let room = Number.POSITIVE_INFINITY;
const memory = {
  takeSpare(bytes: number) {
    if (used + bytes > room) return false;
    used += bytes;
    return true;
  },
  release: (bytes: number) => void (used -= bytes),
};
const step = (change: Partial<AttemptPolicy>, requestType: RequestType = "chat") => ({
  policy: policy(change),
  requestType,
  upstream: { method: "POST" },
});
const policy = (change: Partial<AttemptPolicy> = {}) =>
  ({ firstTokenTimeoutMs: null, holdsResponse: false, ...change }) as AttemptPolicy;
const head = (contentType: string) => ({ status: 200, statusText: "OK", rawHeaders: [], contentType });
const STREAM = "text/event-stream; charset=utf-8";

/** The first verdict that is not `wait`, and how many bytes were pushed by then. */
function judge(type: string, pieces: readonly Buffer[], change: Partial<AttemptPolicy> = {}) {
  const hold = holdFor(head(type), step(change), memory);
  if (hold === null) return { verdict: "release" as HoldVerdict, bytes: 0 };
  let bytes = 0;
  for (const [i, piece] of pieces.entries()) {
    bytes += piece.length;
    const verdict = hold.push(piece, i === pieces.length - 1);
    expect(Buffer.concat(hold.chunks).length).toBe(bytes);
    if (verdict !== "wait") {
      hold.dispose();
      return { verdict, bytes };
    }
  }
  throw new Error("the last piece must be judged");
}

const kindOf = (verdict: HoldVerdict) => (typeof verdict === "object" ? verdict.kind : verdict);
const whole = (text: string, type = STREAM, change: Partial<AttemptPolicy> = {}) =>
  kindOf(judge(type, [Buffer.from(text)], change).verdict);

describe("a stream", () => {
  it.each([
    [
      "an error event of Anthropic",
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n',
    ],
    ["an error chunk of OpenAI", 'data: {"error":{"message":"busy"}}\n\n'],
    ["a failed response", 'event: response.failed\ndata: {"type":"response.failed","response":{}}\n\n'],
    ["an error behind a comment", ': ok\n\ndata: {"error":"busy"}\n\n'],
    ["an error with other line ends", "event: error\r\ndata: {}\r\n\r\n"],
    ["an error without the blank line", 'data: {"error":{"message":"busy"}}'],
    ["only its end", "data: [DONE]\n\n"],
    ["nothing", ""],
    ["only comments", ": keep-alive\n\n: keep-alive\n\n"],
  ])("that begins with %s is a failure", (_, text) => {
    expect(whole(text)).toBe("in_band");
  });

  it.each([
    'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n',
    'event: message_start\ndata: {"type":"message_start"}\n\n',
    'data: {"error":null,"choices":[]}\n\n',
    'data: {"choices":[{"delta":{"content":"\\"error\\""}}]}\n\n',
    "data: not JSON\n\n",
  ])("that begins with %s is an answer", (text) => {
    expect(whole(text)).toBe("release");
  });

  it("is released by its first event, and with a first-token limit by its first content", () => {
    const role = Buffer.from(
      'data: {"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n',
    );
    const word = Buffer.from('data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n');
    const end = Buffer.from("data: [DONE]\n\n");
    expect(judge(STREAM, [role, word, end]).bytes).toBe(role.length);
    expect(judge(STREAM, [role, word, end], { firstTokenTimeoutMs: 1 }).bytes).toBe(
      role.length + word.length,
    );
    const start = Buffer.from(
      'event: message_start\ndata: {"type":"message_start"}\n\nevent: ping\ndata: {"type":"ping"}\n\n',
    );
    const block = Buffer.from('event: content_block_start\ndata: {"type":"content_block_start"}\n\n');
    expect(judge(STREAM, [start, block], { firstTokenTimeoutMs: 1 }).bytes).toBe(start.length + block.length);
    const tool = Buffer.from('data: {"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}\n\n');
    expect(judge(STREAM, [tool, end], { firstTokenTimeoutMs: 1 }).bytes).toBe(tool.length);
  });

  it("gets the same verdict however its bytes are split", () => {
    const texts = [
      ': hi\r\n\r\nevent: error\r\ndata: {"type":"error"}\r\n\r\nrest',
      'data: {"error":{"message":"überlastet"}}\n\nrest',
      'data: {"choices":[{"delta":{"content":"é"}}]}\n\ndata: {"error":{}}\n\n',
    ];
    fc.assert(
      fc.property(fc.constantFrom(...texts), fc.array(fc.nat(80), { maxLength: 6 }), (text, cuts) => {
        const bytes = Buffer.from(text);
        const at = [0, ...cuts.filter((cut) => cut < bytes.length).sort((a, b) => a - b), bytes.length];
        const pieces = at.slice(1).map((end, i) => bytes.subarray(at[i], end));
        expect(kindOf(judge(STREAM, pieces).verdict)).toBe(whole(text));
      }),
    );
  });

  it("is released as it is when its first event has no end", () => {
    const big = Buffer.alloc(70_000, "x");
    expect(judge(STREAM, [big, big]).bytes).toBe(70_000);
  });
});

describe("a JSON response", () => {
  it.each([
    ['{"error":{"message":"busy"}}', "in_band"],
    [' \n{ "error" : "busy" }', "in_band"],
    ["", "in_band"],
    ['{"error":null,"choices":[]}', "release"],
    ['{"choices":[]}', "release"],
    ["[1]", "release"],
    ['{"error":', "release"],
  ])("%s: %s", (text, verdict) => {
    expect(whole(text, "application/json")).toBe(verdict);
  });

  it("is released by its first bytes unless it begins as an error", () => {
    expect(judge("application/json", [Buffer.from('{"id"'), Buffer.from(":1}")]).bytes).toBe(5);
  });
});

it("with hold-response everything is held to its end, and an error at the beginning is found", () => {
  const parts = [Buffer.from("data: 1\n\n"), Buffer.from("data: 2\n\n"), Buffer.from("")];
  expect(judge(STREAM, parts, { holdsResponse: true })).toMatchObject({ verdict: "release", bytes: 18 });
  expect(whole("event: error\ndata: {}\n\n", STREAM, { holdsResponse: true })).toBe("in_band");
  expect(judge("image/png", parts, { holdsResponse: true }).bytes).toBe(18);
  expect(judge("image/png", parts).bytes).toBe(0);
});

it.each([
  ['{"error":{"code":"context_length_exceeded"}}', "context_length"],
  ['{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}', "context_length"],
  ['{"error":{"code":"content_policy_violation"}}', "content_filter"],
  ['{"error":{"innererror":{"code":"ResponsibleAIPolicyViolation"}}}', "content_filter"],
  ['{"error":{"message":"model is required"}}', null],
])("reads the reason of %s", (text, reason) => {
  const hold = new ErrorHold({
    kind: "status",
    status: 400,
    reason: null,
    retryAfterMs: null,
    cause: undefined,
  });
  expect(hold.push(Buffer.from(text.slice(0, 9)), false)).toBe("wait");
  expect(hold.push(Buffer.from(text.slice(9)), true)).toMatchObject({ kind: "status", reason });
});

it("a whole response is counted against the memory for bodies, and released when that is used up", () => {
  const part = Buffer.from("data: 1\n\n");
  const hold = holdFor(head(STREAM), step({ holdsResponse: true }), memory);
  expect([hold?.push(part, false), hold?.push(part, false), used]).toEqual(["wait", "wait", 18]);
  room = 20;
  expect(hold?.push(part, false)).toBe("release");
  expect(Buffer.concat(hold?.chunks ?? []).toString()).toBe("data: 1\n\n".repeat(3));
  hold?.dispose();
  expect(used).toBe(0);
  room = Number.POSITIVE_INFINITY;
});

it("responses of calls that no model answers are not examined: an empty one may be right, and must not be repeated", () => {
  expect(holdFor(head("application/json"), step({}, ""), memory)).toBeNull();
  expect(holdFor({ ...head("application/json"), status: 204 }, step({}), memory)).toBeNull();
});
