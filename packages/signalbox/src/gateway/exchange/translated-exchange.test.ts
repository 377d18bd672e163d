import {
  createStreamTranslator,
  streamResponse,
  translateError,
  translateRequest,
  translateResponse,
} from "@signalbox/translate";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  NO_USAGE,
  type ResponseHead,
  type UpstreamExchange,
  UpstreamFailure,
  type UpstreamHandler,
} from "../../engines/relay/index.ts";
import type { CallShare } from "../step/call-share.ts";
import { PING, PING_MS, PingedExchange } from "./stream-ping.ts";
import { TranslatedExchange } from "./translated-exchange.ts";

const HEAD: ResponseHead = {
  status: 200,
  statusText: "",
  rawHeaders: ["content-type", "application/json", "content-length", "3", "x-request-id", "r"],
  contentType: "application/json",
};
const STREAM_HEAD: ResponseHead = {
  ...HEAD,
  rawHeaders: ["content-type", "text/event-stream"],
  contentType: "text/event-stream",
};

const WHOLE_SHARE: CallShare = { holdMemory: () => true, beginWork: (_, piece) => piece() };

/** A call of a chat client to a messages provider. */
function start(
  isStream: boolean,
  convert?: (
    send: (handler: UpstreamHandler) => UpstreamExchange,
    handler: UpstreamHandler,
  ) => UpstreamExchange,
  share: Partial<CallShare> = {},
) {
  const seen: unknown[] = [];
  const control = { pause: vi.fn(), resume: vi.fn(), abort: vi.fn() };
  let upstream: UpstreamHandler | undefined;
  const send = (handler: UpstreamHandler) => {
    upstream = handler;
    return control;
  };
  const handler: UpstreamHandler = {
    onHead: (head) => seen.push(head),
    onBody: (chunk, isLast) => seen.push([chunk.toString(), isLast]),
    onReadEnd: () => seen.push("read end"),
    onFailure: (failure) => seen.push(failure),
  };
  const { context } = translateRequest(
    "chat",
    "messages",
    { model: "x", stream: isStream, messages: [{ role: "user", content: "hi" }] },
    { model: "m", target: {}, dropUnsupported: false, newId: (prefix) => `${prefix}1`, now: 1 },
  );
  const translation = {
    isStream,
    translate: (value: unknown) => translateResponse(context, value),
    translateAsStream: (value: unknown) => streamResponse(context, value),
    translateError: (status: number, value: unknown) => translateError(context, status, value).body,
    createStream: () => createStreamTranslator(context),
  };
  const exchange =
    convert?.(send, handler) ??
    new TranslatedExchange(translation, { ...WHOLE_SHARE, ...share }, send, handler);
  if (upstream === undefined) throw new Error("nothing was sent");
  return { seen, control, exchange, upstream };
}

const MESSAGE = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "m",
  content: [{ type: "text", text: "Hello" }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 2 },
};

const event = (type: string, rest: object = {}) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
const STREAM = [
  event("message_start", { message: { ...MESSAGE, content: [], stop_reason: null } }),
  event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "Grüße" } }),
  event("content_block_stop", { index: 0 }),
  event("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } }),
  event("message_stop"),
].join("");

describe("a whole response", () => {
  it("is passed on when it is complete, with its own length", () => {
    const { seen, upstream, exchange } = start(false);
    const body = Buffer.from(JSON.stringify(MESSAGE));
    upstream.onHead(HEAD);
    upstream.onBody(body.subarray(0, 20), false);
    expect(seen).toEqual([]);
    upstream.onBody(body.subarray(20), true);
    const [head, [text, isLast]] = seen as [ResponseHead, [string, boolean]];
    expect(isLast).toBe(true);
    expect(JSON.parse(text)).toMatchObject({
      object: "chat.completion",
      choices: [{ finish_reason: "stop" }],
    });
    expect(head.rawHeaders).toEqual([
      "content-type",
      "application/json; charset=utf-8",
      "content-length",
      String(Buffer.byteLength(text)),
      "x-request-id",
      "r",
    ]);
    expect((exchange as TranslatedExchange).tap.end().usage).toMatchObject({ tokensIn: 3, tokensOut: 2 });
  });

  it("is passed on as a stream to a client that asked for one", () => {
    const { seen, upstream, exchange } = start(true);
    upstream.onHead(HEAD);
    upstream.onBody(Buffer.from(JSON.stringify(MESSAGE)), true);
    const [head, [text, isLast]] = seen as [ResponseHead, [string, boolean]];
    expect([head.contentType, isLast]).toEqual(["text/event-stream; charset=utf-8", true]);
    expect(text).toMatch(/"content":"Hello"[\s\S]*"finish_reason":"stop"[\s\S]*data: \[DONE\]/);
    expect((exchange as TranslatedExchange).tap.end().usage).toMatchObject({ tokensIn: 3, tokensOut: 2 });
  });

  it.each(["nonsense", "", "{"])("fails when it is no message: %s", (body) => {
    const { seen, upstream } = start(false);
    upstream.onHead(HEAD);
    upstream.onBody(Buffer.from(body), true);
    expect(seen).toHaveLength(1);
    expect(seen[0]).toBeInstanceOf(UpstreamFailure);
  });

  it("fails when it is a stream, is compressed or has no content", () => {
    for (const head of [
      STREAM_HEAD,
      { ...HEAD, status: 204 },
      { ...HEAD, rawHeaders: [...HEAD.rawHeaders, "content-encoding", "gzip"] },
    ]) {
      const { seen, upstream, control } = start(false);
      upstream.onHead(head);
      expect(seen[0]).toBeInstanceOf(UpstreamFailure);
      expect(control.abort).toHaveBeenCalled();
      upstream.onBody(Buffer.from("{}"), true);
      expect(seen).toHaveLength(1);
    }
  });

  it("keeps the status of an error, and translates any body", () => {
    for (const [body, message] of [
      ['{"type":"error","error":{"type":"overloaded_error","message":"busy"}}', "busy"],
      ["<html>Bad gateway</html>", expect.any(String)],
      ["", expect.any(String)],
    ]) {
      const { seen, upstream } = start(false);
      upstream.onHead({ ...HEAD, status: 529 });
      upstream.onBody(Buffer.from(body as string), true);
      const [head, [text]] = seen as [ResponseHead, [string, boolean]];
      expect(head.status).toBe(529);
      expect(JSON.parse(text)).toMatchObject({ error: { message } });
    }
  });

  it("counts in the caller's memory while it arrives, and is refused without room", () => {
    const held: number[] = [];
    const hasRoom = (bytes: number) => held.push(bytes) < 3;
    const { seen, upstream, control } = start(false, undefined, { holdMemory: hasRoom });
    const body = Buffer.from(JSON.stringify(MESSAGE));
    upstream.onHead(HEAD);
    for (const from of [0, 20, 40]) upstream.onBody(body.subarray(from, from + 20), false);
    expect(held).toEqual([40, 40, 40]);
    expect(seen).toEqual([expect.objectContaining({ kind: "refused" })]);
    expect(control.abort).toHaveBeenCalled();
  });

  it("is translated when it is its turn, unless the call has ended by then", () => {
    const pieces: (() => void)[] = [];
    const turns = { beginWork: (_: number, piece: () => void) => void pieces.push(piece) };
    const body = Buffer.from(JSON.stringify(MESSAGE));
    const [first, ended] = [start(false, undefined, turns), start(false, undefined, turns)];
    for (const { upstream } of [first, ended]) {
      upstream.onHead(HEAD);
      upstream.onBody(body, true);
    }
    ended.exchange.abort();
    expect([first.seen, ended.seen]).toEqual([[], []]);
    for (const piece of pieces) piece();
    expect([first.seen.length, ended.seen]).toEqual([2, []]);
  });

  it("has no usage before it has begun", () => {
    expect((start(false).exchange as TranslatedExchange).tap.end()).toEqual({ usage: NO_USAGE, model: null });
  });
});

describe("a stream", () => {
  const joined = (seen: unknown[]) =>
    seen
      .filter((one): one is [string, boolean] => Array.isArray(one))
      .map(([text]) => text)
      .join("");

  it("gives the same events wherever the bytes are split, each write at the end of an event", () => {
    const whole = start(true);
    whole.upstream.onHead(STREAM_HEAD);
    whole.upstream.onBody(Buffer.from(STREAM), true);
    const expected = joined(whole.seen);
    expect(expected).toMatch(/"content":"Grüße"[\s\S]*data: \[DONE\]\n\n$/);
    const bytes = Buffer.from(STREAM);
    fc.assert(
      fc.property(fc.array(fc.nat({ max: bytes.length }), { maxLength: 12 }), (cuts) => {
        const { seen, upstream } = start(true);
        upstream.onHead(STREAM_HEAD);
        const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        places.slice(1).forEach((end, i) => {
          upstream.onBody(Buffer.from(bytes.subarray(places[i], end)), i === places.length - 2);
        });
        expect(joined(seen)).toBe(expected);
        for (const one of seen) if (Array.isArray(one)) expect(one[0]).toMatch(/^$|\n\n$/);
      }),
    );
  });

  it("counts a long event, and is refused without room for it", () => {
    const held: number[] = [];
    const { seen, upstream } = start(true, undefined, { holdMemory: (bytes) => held.push(bytes) < 2 });
    upstream.onHead(STREAM_HEAD);
    upstream.onBody(Buffer.from("data: "), false);
    for (let i = 0; i < 4; i++) upstream.onBody(Buffer.alloc(50_000, "x"), false);
    expect(held).toEqual([200_012, 100_000]);
    expect(seen.at(-1)).toMatchObject({ kind: "refused" });
  });

  it("that breaks off is a failure, and has an error event for the client", () => {
    for (const isTimeout of [false, true]) {
      const { seen, upstream, exchange } = start(true);
      upstream.onHead(STREAM_HEAD);
      upstream.onBody(Buffer.from(STREAM.slice(0, 400)), false);
      upstream.onFailure(new UpstreamFailure(isTimeout ? "timeout" : "broken", "gone"));
      expect(seen.at(-1)).toBeInstanceOf(UpstreamFailure);
      expect(joined(seen)).not.toContain("error");
      const cut = (exchange as TranslatedExchange).cut(isTimeout)?.toString() ?? "";
      expect(cut).toMatch(/^data: \{"error":.*\}\n\n$/);
      expect(cut).toContain(isTimeout ? "2004" : "2005");
      expect(cut).not.toContain("[DONE]");
    }
  });

  it("that the provider ends with an error or without its end is a failure", () => {
    for (const [text, message] of [
      [event("error", { error: { type: "overloaded_error", message: "busy" } }), "busy"],
      [STREAM.slice(0, 300), ""],
    ] as const) {
      const { seen, upstream, exchange } = start(true);
      upstream.onHead(STREAM_HEAD);
      upstream.onBody(Buffer.from(text), true);
      expect(seen.at(-1)).toBeInstanceOf(UpstreamFailure);
      const cut = (exchange as TranslatedExchange).cut(false)?.toString();
      expect(cut).toContain('"error"');
      expect(cut).toContain(message);
    }
  });

  it("fails when the provider answers with a page", () => {
    const { seen, upstream } = start(true);
    upstream.onHead({ ...HEAD, contentType: "text/html" });
    expect(seen).toEqual([expect.any(UpstreamFailure)]);
  });

  it("passes back-pressure and the end of a read on", () => {
    const { seen, upstream, exchange, control } = start(true);
    upstream.onHead(STREAM_HEAD);
    upstream.onReadEnd();
    expect(seen.at(-1)).toBe("read end");
    exchange.pause();
    exchange.resume();
    exchange.abort();
    for (const called of Object.values(control)) expect(called).toHaveBeenCalledOnce();
  });
});

describe("silence", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const ping = [PING.toString(), false];
  const pinged = () => start(true, (send, handler) => new PingedExchange(send, handler));

  it.each([
    ["translated", () => start(true)],
    ["unchanged", pinged],
  ])("in a stream that is %s is filled with comments", (_, create) => {
    const { seen, upstream, exchange } = create();
    upstream.onHead(STREAM_HEAD);
    seen.length = 0;
    vi.advanceTimersByTime(PING_MS);
    expect(seen).toEqual([ping]);
    upstream.onBody(Buffer.from(STREAM.slice(0, STREAM.indexOf("\n\n") + 2)), false);
    seen.length = 0;
    vi.advanceTimersByTime(PING_MS);
    expect(seen).toEqual([]);
    vi.advanceTimersByTime(PING_MS * 2);
    expect(seen).toEqual([ping, ping]);
    exchange.pause();
    vi.advanceTimersByTime(PING_MS * 2);
    expect(seen).toHaveLength(2);
    exchange.resume();
    exchange.abort();
    vi.advanceTimersByTime(PING_MS * 2);
    expect(seen).toHaveLength(2);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("inside an event is not", () => {
    const { seen, upstream } = pinged();
    upstream.onHead(STREAM_HEAD);
    upstream.onBody(Buffer.from("data: {"), false);
    vi.advanceTimersByTime(PING_MS * 3);
    expect(seen).toHaveLength(2);
    upstream.onBody(Buffer.from("}\r\n\r\n"), false);
    vi.advanceTimersByTime(PING_MS * 2);
    expect(seen.at(-1)).toEqual(ping);
    upstream.onBody(Buffer.from(""), true);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("of a response that is no stream is not, and a failure ends all timers", () => {
    const { seen, upstream } = pinged();
    upstream.onHead(HEAD);
    vi.advanceTimersByTime(PING_MS * 3);
    expect(seen).toHaveLength(1);
    for (const { upstream: one } of [pinged(), start(true)]) {
      one.onHead(STREAM_HEAD);
      one.onFailure(new UpstreamFailure("broken", "gone"));
    }
    expect(vi.getTimerCount()).toBe(0);
  });
});
