/** Totals by token and metadata, against a plain sum over calls. */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  ALL_TIME,
  callRecord,
  DAY,
  FIRST_PAGE,
  GATEWAY,
  HOUR,
  NOON,
  type OpenStorage,
  TestLog,
} from "./call-log-fixture.ts";
import type { CallRecord } from "./call-log.ts";
import type { UsageByFigures, UsageByQuery, UsageDimension } from "./usage-by.ts";
import { LATENCY_BUCKETS_MS, type UsageGroup } from "./usage.ts";

const TOKEN: UsageDimension = { kind: "token" };
const USER: UsageDimension = { kind: "metadata", key: "user" };
const TEAM: UsageDimension = { kind: "metadata", key: "team" };
const BY_USER: UsageByQuery = { ...ALL_TIME, groupBy: [], dimensions: [USER], only: [], maxValues: 100 };

/** Sums of fractions of two are exact in any order. */
const someCall = fc.record({
  createdAt: fc.integer({ min: -60, max: 60 }).map((hours) => NOON + hours * HOUR + 1234),
  gatewayId: fc.constantFrom("a", "b"),
  provider: fc.constantFrom("openai", "anthropic"),
  model: fc.constantFrom("m1", "m2"),
  tokenId: fc.constantFrom(null, "t1", "t2"),
  metadata: fc.constantFrom(
    null,
    "{}",
    '{"user":"ada"}',
    '{"user":"bob","team":1}',
    '{"user":null,"team":"x"}',
  ),
  success: fc.boolean(),
  cached: fc.boolean(),
  tokensIn: fc.nat(5000),
  cost: fc.constantFrom(null, 0.125, 0.5, 2),
  durationMs: fc.constantFrom(3, 700.25, 999_999),
  firstByteMs: fc.constantFrom(null, 2, 300.5),
  responseContentType: fc.constantFrom("application/json", "text/event-stream"),
});

const someQuery = fc.record({
  dimensions: fc.constantFrom([TOKEN], [USER], [TEAM], [], [TOKEN, USER]),
  groupBy: fc.constantFrom<readonly UsageGroup[]>(
    [],
    ["hour"],
    ["day"],
    ["gateway", "day"],
    ["model"],
    ["provider", "day"],
  ),
  only: fc.constantFrom(
    [],
    [{ dimension: TOKEN, value: "t1" }],
    [{ dimension: USER, value: "ada" }],
    [{ dimension: USER, value: null }],
    [{ dimension: TEAM, value: "1" }],
  ),
  gatewayIds: fc.constantFrom(null, ["a"], ["none"]),
  from: fc.integer({ min: -70, max: 10 }).map((hours) => NOON + hours * HOUR),
  to: fc.integer({ min: 11, max: 70 }).map((hours) => NOON + hours * HOUR),
});

function labelOf(call: CallRecord, dimension: UsageDimension): string | null {
  if (dimension.kind === "token") return call.tokenId;
  const entries = JSON.parse(call.metadata ?? "{}") as Record<string, string | number | null>;
  const value = entries[dimension.key] ?? null;
  return value === null ? null : String(value);
}

function histogram(value: number | null): number[] {
  const bucket = value === null ? -2 : LATENCY_BUCKETS_MS.findIndex((bound) => value <= bound);
  const counts = [...LATENCY_BUCKETS_MS, Infinity].map(() => 0);
  if (bucket !== -2) counts[bucket === -1 ? LATENCY_BUCKETS_MS.length : bucket] = 1;
  return counts;
}

function figuresOf(call: CallRecord, { groupBy, dimensions }: UsageByQuery): UsageByFigures {
  const has = (group: UsageGroup) => groupBy.includes(group);
  const unit = has("hour") ? HOUR : has("day") ? DAY : null;
  const isStream = call.responseContentType === "text/event-stream";
  return {
    time: unit === null ? null : call.createdAt - (call.createdAt % unit),
    gatewayId: has("gateway") ? call.gatewayId : null,
    provider: has("provider") ? call.provider : null,
    model: has("model") ? call.model : null,
    labels: dimensions.map((dimension) => labelOf(call, dimension)),
    calls: 1,
    errors: call.success ? 0 : 1,
    cached: call.cached ? 1 : 0,
    tokensIn: call.tokensIn,
    tokensOut: call.tokensOut,
    tokensInCached: call.tokensInCached,
    tokensOutReasoning: call.tokensOutReasoning,
    cost: call.cost ?? 0,
    durationMs: call.durationMs,
    latency: histogram(call.durationMs),
    firstToken: histogram(isStream ? call.firstByteMs : null),
  };
}

const keyOf = ({ time, gatewayId, provider, model, labels }: UsageByFigures) =>
  JSON.stringify([time, gatewayId, provider, model, labels]);

/** What the query must return: the sum over all calls that match, one by one. */
function plainSums(calls: readonly CallRecord[], query: UsageByQuery): Map<string, UsageByFigures> {
  const sums = new Map<string, UsageByFigures>();
  for (const call of calls) {
    if (call.accountId !== query.accountId) continue;
    if (query.gatewayIds !== null && !query.gatewayIds.includes(call.gatewayId)) continue;
    if (call.createdAt < query.from || call.createdAt >= query.to) continue;
    if (query.only.some(({ dimension, value }) => labelOf(call, dimension) !== value)) continue;
    const one = figuresOf(call, query);
    const known = sums.get(keyOf(one));
    sums.set(keyOf(one), known === undefined ? one : plus(known, one));
  }
  return sums;
}

function plus(a: UsageByFigures, b: UsageByFigures): UsageByFigures {
  const names = [
    "calls",
    "errors",
    "cached",
    "tokensIn",
    "tokensOut",
    "tokensInCached",
    "tokensOutReasoning",
  ] as const;
  return {
    ...a,
    ...Object.fromEntries(
      [...names, "cost" as const, "durationMs" as const].map((name) => [name, a[name] + b[name]]),
    ),
    latency: a.latency.map((count, i) => count + (b.latency[i] ?? 0)),
    firstToken: a.firstToken.map((count, i) => count + (b.firstToken[i] ?? 0)),
  };
}

export function describeTotals(engine: string, openStorage: OpenStorage): void {
  describe(`totals of a call log on ${engine}`, () => {
    let under: TestLog;
    beforeEach(async () => {
      under = await TestLog.open(openStorage);
    });
    afterEach(() => under.remove());

    const byUser = async (rest: Partial<UsageByQuery> = {}) => {
      const { figures } = await under.log.summariseBy({ ...BY_USER, ...rest });
      return Object.fromEntries(
        figures.map(({ labels, calls }) => [labels?.[0] ?? (labels && "none"), calls]),
      );
    };

    it("equal the sum over all calls, for every group, filter and period, before and after they are merged", async () => {
      const checks: { readonly query: UsageByQuery; readonly sums: Map<string, UsageByFigures> }[] = [];
      const check = async ({ query, sums }: (typeof checks)[number]) => {
        const { figures, isBounded } = await under.log.summariseBy(query);
        expect(isBounded).toBe(false);
        expect(new Map(figures.map((one) => [keyOf(one), one]))).toEqual(sums);
      };
      let accounts = 0;
      const property = fc.asyncProperty(
        fc.array(someCall, { maxLength: 60 }),
        fc.array(someQuery, { minLength: 1, maxLength: 8 }),
        async (fields, queries) => {
          const accountId = `account-${accounts++}`;
          const calls = fields.map((some) => callRecord({ ...some, accountId }));
          for (const [i, call] of calls.entries()) {
            under.log.record(call);
            if (i % 7 === 0) await under.log.flush();
          }
          for (const some of queries) {
            const query = { ...some, accountId, maxValues: 100 };
            checks.push({ query, sums: plainSums(calls, query) });
          }
          for (const one of checks.slice(-queries.length)) await check(one);
        },
      );
      await fc.assert(property, { numRuns: 25 });
      await under.reopen();
      for (const one of checks) await check(one);
    });

    it("count calls whose rows were deleted, or kept out by a quota, until the gateway is dropped", async () => {
      under.log.setQuota(GATEWAY, { maxRows: 2, whenFull: "stop" });
      for (let i = 0; i < 5; i++) under.record({ metadata: '{"user":"ada"}' });
      under.record({ gatewayId: "other", metadata: '{"user":"bob"}' });
      expect(await byUser()).toEqual({ ada: 5, bob: 1 });
      await under.log.delete(GATEWAY, { ...FIRST_PAGE, limit: null });
      await under.reopen();
      expect(await byUser()).toEqual({ ada: 5, bob: 1 });
      await under.log.dropGateway(GATEWAY);
      expect(await byUser()).toEqual({ bob: 1 });
    });

    it("keep the metadata that a call had when it ended", async () => {
      const { id } = under.record({ metadata: '{"user":"ada"}' });
      await under.log.edit(GATEWAY, id, { metadata: '{"user":"bob"}' });
      expect(await byUser()).toEqual({ ada: 1 });
    });

    it("are rebuilt from the rows when they are switched on, and until then rows are read", async () => {
      under.record({ metadata: '{"user":"ada"}' });
      await under.reopen({ usageTotals: false });
      under.record({ metadata: '{"user":"ada"}' });
      under.record({ createdAt: NOON - DAY, metadata: '{"user":"bob"}', tokenId: "t" });
      under.record({ createdAt: NOON - DAY });
      const all = { ada: 2, bob: 1, none: 1 };
      expect(await byUser()).toEqual(all);
      await under.reopen();
      expect(await byUser()).toEqual(all);
      await expect.poll(() => under.isAllCounted(), { timeout: 60_000 }).toBe(true);
      await under.log.delete(GATEWAY, { ...FIRST_PAGE, limit: null });
      expect(await byUser()).toEqual(all);
    });

    it("list the values with the most calls, and add up the others", async () => {
      for (let user = 0; user < 20; user++) {
        for (let n = 0; n <= user; n++)
          under.record({ metadata: `{"user":"u${user}"}`, createdAt: NOON - user * HOUR });
      }
      under.record({ tokenId: "t" });
      const by = await under.log.summariseBy({ ...BY_USER, maxValues: 3 });
      expect(by.figures.map(({ labels, calls }) => [labels?.[0], calls])).toEqual([
        ["u19", 20],
        ["u18", 19],
        ["u17", 18],
        [undefined, 211 - 57],
      ]);
      expect(by).toMatchObject({ otherValues: 18, isBounded: false });
      const days = await under.log.summariseBy({ ...BY_USER, maxValues: 3, groupBy: ["day"] });
      expect(days.figures.reduce((sum, { calls }) => sum + calls, 0)).toBe(211);
    });

    it("of a query that needs rows end when the caller has left", async () => {
      under.record();
      const query = { ...BY_USER, dimensions: [TOKEN, USER] };
      await expect(under.log.summariseBy(query, AbortSignal.abort())).rejects.toThrow("abort");
    });
  });
}
