/** Calls that go upstream or to the cache, with a real provider on loopback. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemClock } from "../../core/clock.ts";
import { ResponseCache } from "../cache/response-cache.ts";
import { type ClientView, Loopback, REFUSED } from "./call-fixture.ts";
import { Guardrails } from "../guardrails/guardrails.ts";
import { Judges } from "../guardrails/judges.ts";
import { CallRunner, type CallRunnerParts } from "./call-runner.ts";
import type { CallOptions } from "../step/call-options.ts";

const CACHED: CallOptions = { cacheTtlS: 60 };
const ANSWER = { choices: [{ message: { content: "x" } }] };

let loopback: Loopback;
let runner: CallRunner;
let parts: CallRunnerParts;

beforeEach(async () => {
  loopback = new Loopback();
  await loopback.open();
  parts = {
    ...loopback.parts,
    cache: new ResponseCache(2 ** 20, systemClock),
    limits: { accountRules: new Map(), rulesOf: () => null },
    guardrails: new Guardrails(new Map(), { safetyModel: "a/b", injectionModel: "a/c" }),
    judges: new Judges({
      server: { call: () => Promise.reject(new Error("no judge")) },
      askWebhook: () => Promise.reject(new Error("no judge")),
    }),
    findToken: () => undefined,
  } as unknown as CallRunnerParts;
  runner = new CallRunner(parts);
});
afterEach(() => loopback.close());

/** Starts a call; the client sees what becomes of it. */
async function start(options: CallOptions = {}): Promise<ClientView & { readonly response: object }> {
  const { planned, see: client } = await loopback.arrive([loopback.step()]);
  const running = runner.run({ ...planned, options });
  // A call that waits for another one is answered later.
  if (running instanceof Promise) running.catch((error: unknown) => expect(error).toBeUndefined());
  return Object.assign(client, { response: planned.response });
}

async function arrived(count: number): Promise<void> {
  await expect.poll(() => loopback.exchanges.length).toBe(count);
}

async function see(calls: readonly ClientView[], expected: readonly string[]): Promise<void> {
  await expect.poll(() => calls.map(({ status, state }) => `${status} ${state}`)).toEqual(expected);
}

it("a call is under way until it has ended, and has a row then", async () => {
  const call = await start();
  await arrived(1);
  expect([parts.metrics.inFlight, loopback.rows.length]).toEqual([1, 0]);
  loopback.last.answer(200, ANSWER);
  await see([call], ["200 complete"]);
  expect(parts.metrics.inFlight).toBe(0);
  expect(loopback.rows).toMatchObject([{ statusCode: 200, cached: false }]);
});

it("the same call again is answered from the cache", async () => {
  const first = await start(CACHED);
  await arrived(1);
  loopback.last.answer(200, ANSWER);
  await see([first], ["200 complete"]);
  const second = await start(CACHED);
  await see([second], ["200 complete"]);
  expect([first, second].map(({ headers }) => headers["gw-aig-cache-status"])).toEqual(["MISS", "HIT"]);
  expect(second.text).toBe(first.text);
  expect(loopback.exchanges).toHaveLength(1);
  expect(loopback.rows.map(({ cached, cost }) => [cached, cost === 0])).toEqual([
    [false, false],
    [true, true],
  ]);
});

it("of equal calls at the same time one goes upstream, and its answer is that of all", async () => {
  const calls = [await start(CACHED), await start(CACHED), await start(CACHED)];
  await arrived(1);
  loopback.last.answer(200, ANSWER);
  await see(calls, ["200 complete", "200 complete", "200 complete"]);
  expect(loopback.exchanges).toHaveLength(1);
});

it("calls that wait for an answer that cannot be kept go upstream by themselves", async () => {
  const calls = [await start(CACHED), await start(CACHED), await start(CACHED)];
  await arrived(1);
  loopback.last.answer(500, {});
  await arrived(3);
  for (const exchange of loopback.exchanges.slice(1)) exchange.answer(200, ANSWER);
  await see(calls, ["500 complete", "200 complete", "200 complete"]);
});

it("when the client of the call that went upstream leaves, one of the others takes its place", async () => {
  const [first, ...others] = [await start(CACHED), await start(CACHED), await start(CACHED)];
  await arrived(1);
  first?.leave();
  await arrived(2);
  loopback.last.answer(200, ANSWER);
  await see(others, ["200 complete", "200 complete"]);
  expect(loopback.exchanges).toHaveLength(2);
});

it("a call waits while the call log is full", async () => {
  let makeRoom: () => void = () => undefined;
  const room = new Promise<void>((resolve) => (makeRoom = resolve));
  Object.assign(parts.callLog, { hasRoom: false, whenRoom: () => room });
  const call = await start();
  expect(parts.metrics.inFlight).toBe(0);
  makeRoom();
  await arrived(1);
  loopback.last.answer(200, ANSWER);
  await see([call], ["200 complete"]);
});

it("refuses the call that answers with this response, and no other", async () => {
  const calls = [await start(), await start()];
  await arrived(2);
  runner.refuse(calls[0]?.response as Parameters<CallRunner["refuse"]>[0], REFUSED);
  await see(calls, ["429 complete", "null open"]);
  await expect.poll(() => loopback.openExchanges).toBe(1);
});

it("a stop ends all calls, and no row follows", async () => {
  const calls = [await start(), await start()];
  await arrived(2);
  runner.close();
  const rows = loopback.rows.length;
  await see(calls, ["null broken", "null broken"]);
  await expect.poll(() => loopback.openExchanges).toBe(0);
  expect([parts.metrics.inFlight, rows, loopback.rows.length]).toEqual([0, 2, 2]);
});
