/** What a call gives back that fails before it goes upstream, and what a resumable stream holds. */
import { SignalboxError } from "@signalbox/protocol";
import { beforeEach, expect, it } from "vitest";
import { LocalResponse, MemoryBudget } from "../../engines/http-server/index.ts";
import { ResponseCache } from "../cache/response-cache.ts";
import { Grant } from "../limits/grant.ts";
import type { Taken } from "../limits/ledger.ts";
import { Refusal } from "../limits/limit-refusal.ts";
import { Guardrails } from "../guardrails/guardrails.ts";
import { Judges } from "../guardrails/judges.ts";
import { CallRunner, type CallRunnerParts } from "./call-runner.ts";
import type { PlannedCall } from "./call-start.ts";
import { ResumableRuns } from "./resumable-runs.ts";

const BROKEN = new Error("broken");
const REFUSED = Refusal.unchecked(new SignalboxError("gateway_spend_limit"));
/** Of the place among parallel calls. */
let released: number;
let reserve: () => Taken | Promise<Taken>;
let callLog: { hasRoom: boolean; whenRoom(): Promise<void> };
let cache: ResponseCache;
let runner: CallRunner;

beforeEach(() => {
  released = 0;
  reserve = () => new Grant({ end: () => undefined }, []);
  callLog = { hasRoom: true, whenRoom: () => Promise.reject(BROKEN) };
  cache = new ResponseCache(2 ** 20, { now: () => 0 });
  const rules = {
    hasConditions: false,
    needsTokens: true,
    setMetadata: () => undefined,
    arrive: () => new Grant({ end: () => (released += 1) }, []),
    limitsCostOf: () => false,
    reserve: () => reserve(),
    settle: (grant: Grant | null) => grant?.settle([]),
  };
  const prices = {
    costOf: () => 0.01,
    contextWindowOf: () => null,
    ofAccount: () => undefined,
    needsOtherName: () => false,
    overrideOf: () => undefined,
  };
  runner = new CallRunner({
    limits: { accountRules: new Map(), rulesOf: () => rules },
    guardrails: new Guardrails(new Map(), { safetyModel: "a/b", injectionModel: "a/c" }),
    judges: new Judges({
      server: { call: () => Promise.reject(new Error("no judge")) },
      askWebhook: () => Promise.reject(new Error("no judge")),
    }),
    findToken: () => undefined,
    prices,
    callLog,
    cache,
    clock: { now: () => 0 },
    // Everything that a call upstream needs is missing: it cannot be created.
  } as unknown as CallRunnerParts);
});

function planned(options: object = {}): PlannedCall {
  const body = Buffer.from("{}");
  return {
    gateway: {
      accountId: "default",
      id: "g",
      cacheGeneration: 0,
      settings: {
        spend_limits: null,
        rate_limiting_limit: 1,
        cache_ttl: 0,
        collect_logs: true,
        guardrail_rules: null,
        dlp: null,
        guardrails: null,
      },
    },
    caller: { token: null, tokenId: null },
    context: {},
    options: { cacheKey: undefined, ...options },
    request: { method: "POST", headers: {} },
    steps: [
      {
        provider: { slug: "openai", modelInPath: () => null },
        model: "m",
        path: "chat/completions",
        requestType: "chat",
        maxOutputTokens: 10,
        choices: 1,
        policy: {},
        translation: null,
        keyScope: "",
        upstream: {
          method: "POST",
          origin: { key: "o" },
          body: { kind: "whole", bytes: body },
          headers: [],
          target: "/",
        },
      },
    ],
  } as unknown as PlannedCall;
}

const run = async (call: PlannedCall) => {
  await runner.run(call);
};

it.each([
  ["while it waits for room in the log", () => (callLog.hasRoom = false)],
  ["because its cost is refused", () => (reserve = () => REFUSED)],
  ["because its cost is refused later", () => (reserve = () => Promise.resolve(REFUSED))],
  ["because it cannot be created", () => undefined],
])("a call that fails %s gives its place back, once", async (_, prepare) => {
  prepare();
  await expect(run(planned())).rejects.toThrow();
  expect(released).toBe(1);
});

it("calls that wait for the answer of a call that fails before it goes upstream do not wait for ever", async () => {
  const waiting = [planned({ cacheKey: "k", cacheTtlS: 60 }), planned({ cacheKey: "k", cacheTtlS: 60 })];
  const outcomes = await Promise.allSettled(waiting.map(run));
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(released).toBe(2);
});

it("a resumable stream holds what its pieces cost, however small they are, and gives all of it back", async () => {
  const memory = new MemoryBudget({ maxBytes: 2 ** 26, stallMs: 60_000 }).shareOf("default");
  const runs = new ResumableRuns();
  const response = new LocalResponse();
  await runs.run({ ...planned(), memory, response }, (call) => {
    call.response.writeHead(200, ["content-type", "text/event-stream"]);
    for (let i = 0; i < 1000; i++) call.response.write("x");
    call.response.end();
  });
  const { body } = await response.head;
  expect(await new Response(body).text()).toBe("x".repeat(1000));
  expect(memory.used).toBeGreaterThan(100 * 1000);
  runs.close();
  expect(memory.used).toBe(0);
});
