import { SignalboxError } from "@signalbox/protocol";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import type { ResponseHead, UpstreamFailure, UpstreamHandler } from "../../engines/relay/index.ts";
import { BlockedResponse } from "./blocked-response.ts";
import { GuardrailBlock } from "./findings.ts";
import { ROOM } from "./guarded-streams-fixture.ts";
import { judgeResponse, type ResponseJudge } from "./judged-response.ts";

const LINES = "application/x-ndjson";
const JSON_TYPE = "application/json";
const line = (text: string) => Buffer.from(`${JSON.stringify({ text })}\n`);
/** Long enough to be a piece of their own. */
const sentences = (day: number) => line(`${`On day ${day} the sea was calm. `.repeat(12)}\n`);

/** A response in the hands of the judge: what passed, how it failed, and whether the provider has to wait. */
function open(judge: Partial<ResponseJudge>, contentType: string, share = ROOM) {
  const seen = { passed: "", isEnded: false, isPaused: false, failure: null as UpstreamFailure | null };
  let provider: UpstreamHandler | null = null;
  const exchange = judgeResponse(
    { judge: () => Promise.resolve(), unjudged: () => undefined, ...judge },
    false,
    share,
    (inner) => {
      provider = inner;
      return {
        pause: () => (seen.isPaused = true),
        resume: () => (seen.isPaused = false),
        abort: () => undefined,
      };
    },
    {
      onHead: () => undefined,
      onBody(chunk, isLast) {
        seen.passed += chunk.toString("latin1");
        seen.isEnded ||= isLast;
      },
      onReadEnd: () => undefined,
      onFailure: (failure) => (seen.failure = failure),
    },
  );
  if (provider === null) throw new Error("nothing was sent");
  const upstream: UpstreamHandler = provider;
  upstream.onHead({ status: 200, contentType, rawHeaders: [] } as unknown as ResponseHead);
  return { seen, upstream, exchange };
}

it("asks a few questions at a time, while the provider waits", async () => {
  const verdicts: (() => void)[] = [];
  const { seen, upstream } = open({ judge: () => new Promise((resolve) => verdicts.push(resolve)) }, LINES);
  for (let i = 0; i < 100; i++) upstream.onBody(sentences(i + 100), i === 99);
  await nextTurn();
  expect([verdicts.length, seen.isPaused, seen.passed]).toEqual([4, true, ""]);
  let asked = 0;
  while (!seen.isEnded) {
    expect(verdicts.length).toBeLessThanOrEqual(4);
    asked += verdicts.length;
    for (const settle of verdicts.splice(0)) settle();
    await nextTurn();
  }
  expect([asked, seen.isPaused, seen.passed.length]).toEqual([100, false, 100 * sentences(100).length]);
});

it("leaves a provider paused that the client has paused", async () => {
  const verdicts: (() => void)[] = [];
  const { seen, upstream, exchange } = open(
    { judge: () => new Promise((resolve) => verdicts.push(resolve)) },
    LINES,
  );
  for (let i = 0; i < 20; i++) upstream.onBody(sentences(i + 100), i === 19);
  exchange.pause();
  while (!seen.isEnded) {
    for (const settle of verdicts.splice(0)) settle();
    await nextTurn();
  }
  expect(seen.isPaused).toBe(true);
  exchange.resume();
  expect(seen.isPaused).toBe(false);
});

it.each([
  ["a stream", LINES],
  ["a whole answer", JSON_TYPE],
])("that is too long is refused and charged, unless the rules let %s pass", async (_, contentType) => {
  const chunk = Buffer.alloc(1024 * 1024, "x");
  const send = (upstream: UpstreamHandler) => {
    for (let i = 0; i < 40; i++) upstream.onBody(chunk, i === 39);
  };
  const reasons: string[] = [];
  const lenient = open({ unjudged: (reason) => void reasons.push(reason) }, contentType);
  send(lenient.upstream);
  await expect.poll(() => lenient.seen.isEnded).toBe(true);
  expect([reasons.length, lenient.seen.passed.length]).toEqual([1, 40 * chunk.length]);

  const refusal = new SignalboxError("gateway_guardrail_unavailable");
  const strict = open(
    {
      unjudged: () => {
        throw new GuardrailBlock(refusal);
      },
    },
    contentType,
  );
  send(strict.upstream);
  await expect.poll(() => strict.seen.failure).toBeInstanceOf(BlockedResponse);
  expect(strict.seen.failure).toMatchObject({ error: refusal, head: { status: 200 } });
  expect(strict.seen.passed).toBe("");
});

it("charges what arrived when there is no memory for the rest", () => {
  const { seen, upstream } = open({}, JSON_TYPE, { ...ROOM, holdMemory: () => false });
  upstream.onBody(Buffer.from("{}"), true);
  expect(seen.failure).toBeInstanceOf(BlockedResponse);
  expect(seen.failure).toMatchObject({ error: { id: "overloaded" }, withheldBytes: 2 });
});

it("waits for a turn before it reads a whole answer, and for nothing if it was aborted meanwhile", async () => {
  const turns: (() => void)[] = [];
  const asked: string[] = [];
  const share = { ...ROOM, beginWork: (_: number, piece: () => void) => void turns.push(piece) };
  const judge = (text: string) => Promise.resolve(void asked.push(text));
  const first = open({ judge }, JSON_TYPE, share);
  first.upstream.onBody(Buffer.from('{"output":"Hello"}'), true);
  const second = open({ judge }, JSON_TYPE, share);
  second.upstream.onBody(Buffer.from('{"output":"Nobody waits"}'), true);
  second.exchange.abort();
  expect(asked).toEqual([]);
  for (const turn of turns) turn();
  await expect.poll(() => first.seen.isEnded).toBe(true);
  expect(asked).toEqual(["Hello"]);
});
