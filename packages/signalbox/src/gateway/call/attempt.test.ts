/** One attempt at a real provider on loopback, and what its owner gets of it. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { SignalboxError } from "@signalbox/protocol";
import { createUsageTap, type ResponseHead } from "../../engines/relay/index.ts";
import { BlockedResponse } from "../guardrails/blocked-response.ts";
import { type AnswerHold, ErrorHold, holdFor } from "../reliability/answer-hold.ts";
import { type AttemptFailure, statusFailure } from "../reliability/attempt-failure.ts";
import { freePort } from "../../../../../test/support/free-port.ts";
import { Attempt, type AttemptOwner } from "./attempt.ts";
import { EVENT, Loopback } from "./call-fixture.ts";

const MEMORY = { takeSpare: () => true, release: () => undefined };

let loopback: Loopback;
let owner: RecordingOwner;
let attempt: Attempt;

/** Writes down what it gets. */
class RecordingOwner implements AttemptOwner {
  readonly events: string[] = [];
  verdict: (head: ResponseHead) => AnswerHold | AttemptFailure | null = () => null;
  /** Whether the call goes on without a failed attempt. */
  goesOn = true;

  onHead(_: Attempt, head: ResponseHead): AnswerHold | AttemptFailure | null {
    this.events.push(`head ${head.status}`);
    return this.verdict(head);
  }

  onFailed(_: Attempt, { kind, status }: AttemptFailure): boolean {
    this.events.push(`failed: ${status ?? kind}`);
    return this.goesOn;
  }

  onAnswer(_: Attempt, { status }: ResponseHead): boolean {
    this.events.push(`answer ${status}`);
    return true;
  }

  onBody(chunk: Buffer, isLast: boolean): void {
    this.events.push(`body ${chunk.toString().trim()}${isLast ? " (last)" : ""}`);
  }

  onHeadAlone(): void {
    this.events.push("head alone");
  }

  onCut(_: Attempt, { kind }: AttemptFailure): void {
    this.events.push(`cut: ${kind}`);
  }
}

beforeEach(async () => {
  owner = new RecordingOwner();
  loopback = new Loopback();
  await loopback.open();
});
afterEach(() => loopback.close());

async function send(policy: Parameters<Loopback["step"]>[0] = {}): Promise<void> {
  attempt = new Attempt(owner, { step: loopback.step(policy), index: 0, key: null });
  attempt.send(loopback.client);
  await expect.poll(() => loopback.exchanges.length).toBe(1);
}

const events = () => owner.events;

it("passes an answer on: its head, its bytes, its end", async () => {
  await send();
  loopback.last.answer(200, { ok: 1 });
  await expect.poll(events).toContain('body {"ok":1} (last)');
  expect(owner.events.slice(0, 2)).toEqual(["head 200", "answer 200"]);
});

it("reports a head that arrives before its body", async () => {
  await send();
  loopback.last.writeHead({ "content-type": "text/event-stream" });
  await expect.poll(events).toEqual(["head 200", "answer 200", "head alone"]);
});

it("sends its key instead of the credential of the step", async () => {
  const step = loopback.step();
  const key = { id: "k", upstream: { ...step.upstream, target: "/with-key" } };
  attempt = new Attempt(owner, { step, index: 0, key });
  attempt.send(loopback.client);
  await expect.poll(() => loopback.exchanges.length).toBe(1);
  expect(loopback.last.url).toBe("/with-key");
});

it("is a failure when nothing listens, and no event follows", async () => {
  const step = loopback.step({}, await freePort());
  attempt = new Attempt(owner, { step, index: 0, key: null });
  attempt.send(loopback.client);
  await expect.poll(events).toEqual(["failed: unreachable"]);
});

it.each([
  ["the request", { requestTimeoutMs: 20 }],
  ["the first token", { firstTokenTimeoutMs: 20 }],
])("ends at the provider when the limit for %s has passed", async (_, policy) => {
  attempt = new Attempt(owner, { step: loopback.step(policy), index: 0, key: null });
  attempt.send(loopback.client);
  await expect.poll(events).toEqual(["failed: timeout"]);
  await expect.poll(() => loopback.openExchanges).toBe(0);
});

it("is cut when the answer stalls", async () => {
  await send({ stallTimeoutMs: 20 });
  loopback.last.begin();
  await expect.poll(events).toContain("cut: timeout");
  await expect.poll(() => loopback.openExchanges).toBe(0);
});

it("the time in which its owner does not read is no stall", async () => {
  await send({ stallTimeoutMs: 50 });
  owner.onBody = () => {
    owner.events.push("paused");
    attempt.pause();
  };
  loopback.last.begin();
  await expect.poll(events).toContain("paused");
  // Timers fire in the order of their ends: one that was left armed would have fired before this one.
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(owner.events.at(-1)).toBe("paused");
  attempt.resume();
  await expect.poll(events).toContain("cut: timeout");
});

it("is cut when the provider breaks off", async () => {
  await send();
  loopback.last.begin();
  await expect.poll(events).toContain(`body ${EVENT.trim()}`);
  loopback.last.breakOff();
  await expect.poll(events).toContain("cut: broken");
});

it("holds the beginning of an answer, and releases every byte of it", async () => {
  owner.verdict = (head) => holdFor(head, attempt.step, MEMORY);
  await send();
  loopback.last.writeHead({ "content-type": "text/event-stream" });
  loopback.last.write(": a comment\n\n");
  await expect.poll(events).toEqual(["head 200"]);
  loopback.last.write(EVENT);
  await expect.poll(events).toEqual(["head 200", "answer 200", `body : a comment\n\n${EVENT.trim()}`]);
});

it.each([
  [true, ["head 500", "failed: 500"]],
  [false, ["head 500", "failed: 500", "answer 500", 'body {"usage":{"prompt_tokens":3}} (last)']],
])("an error that is read to its end: the call goes on without it (%s)", async (goesOn, expected) => {
  owner.verdict = (head) => new ErrorHold(statusFailure(head, 0));
  owner.goesOn = goesOn;
  await send();
  loopback.last.answer(500, { usage: { prompt_tokens: 3 } });
  await expect.poll(events).toEqual(expected);
});

it("reports for accounting what a failed attempt used", async () => {
  owner.verdict = (head) => new ErrorHold(statusFailure(head, 0));
  const failed = new Promise((resolve) => {
    owner.onFailed = (of, failure) => {
      resolve(of.toReport("failed", failure));
      return true;
    };
  });
  await send();
  const body = { usage: { prompt_tokens: 3, completion_tokens: 4 } };
  loopback.last.answer(500, body);
  expect(await failed).toMatchObject({
    outcome: "failed",
    failure: { kind: "status", status: 500 },
    usage: { tokensIn: 3, tokensOut: 4 },
    responseBytes: JSON.stringify(body).length,
  });
});

it("reports for accounting what a response used that a rule has refused", async () => {
  let report: unknown = null;
  owner.onFailed = (of, failure) => {
    report = of.toReport("failed", failure);
    return true;
  };
  await send();
  const head: ResponseHead = { status: 200, statusText: "", rawHeaders: [], contentType: "application/json" };
  const tap = createUsageTap(head.contentType);
  const body = Buffer.from('{"usage":{"prompt_tokens":3,"completion_tokens":4}}');
  tap.push(body);
  const error = new SignalboxError("gateway_response_blocked", { message: "blocked" });
  attempt.onFailure(new BlockedResponse(error, head, tap, body.length));
  expect(report).toMatchObject({
    failure: { kind: "blocked" },
    head: { status: 200 },
    usage: { tokensIn: 3, tokensOut: 4 },
    responseBytes: body.length,
  });
  attempt.abort();
});

it.each([
  ["before the head", () => undefined, []],
  ["in the middle", () => loopback.last.begin(), ["head 200", "answer 200", `body ${EVENT.trim()}`]],
])(
  "an attempt that is aborted %s is gone at the provider, and its owner gets nothing more",
  async (_, happen, seen) => {
    await send();
    happen();
    await expect.poll(events).toEqual(seen);
    attempt.abort();
    await expect.poll(() => loopback.openExchanges).toBe(0);
    expect(owner.events).toEqual(seen);
  },
);
