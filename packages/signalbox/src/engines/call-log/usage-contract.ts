/** Usage: sums over calls by hour, gateway, provider and model. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  ALL_TIME,
  DAY,
  FIRST_PAGE,
  GATEWAY,
  HOUR,
  NOON,
  type OpenStorage,
  TestLog,
} from "./call-log-fixture.ts";
import { LATENCY_BUCKETS_MS } from "./usage.ts";

export function describeUsage(engine: string, openStorage: OpenStorage): void {
  describe(`usage of a call log on ${engine}`, () => {
    let under: TestLog;
    beforeEach(async () => {
      under = await TestLog.open(openStorage);
    });
    afterEach(() => under.remove());

    it("adds up usage by hour, day, provider, model and gateway", async () => {
      const usage = {
        tokensIn: 10,
        tokensOut: 4,
        tokensInCached: 3,
        tokensInCacheWrite: 0,
        tokensOutReasoning: 2,
      };
      under.record({ createdAt: NOON, ...usage, cost: 0.5, durationMs: 3 });
      under.record({ createdAt: NOON + 60_000, ...usage, cost: null, success: false, durationMs: 999_999 });
      under.record({
        createdAt: NOON + HOUR,
        ...usage,
        cost: 0.25,
        cached: true,
        provider: "anthropic",
        model: "m",
      });
      under.record({ createdAt: NOON - DAY, ...usage, cost: 0.25, gatewayId: "other" });
      under.record({ createdAt: NOON, accountId: "other" });
      const [all, ...rest] = await under.log.summarise({ ...ALL_TIME, groupBy: [] });
      expect(rest).toEqual([]);
      expect(all).toMatchObject({
        time: null,
        provider: null,
        calls: 4,
        errors: 1,
        cached: 1,
        tokensIn: 40,
        tokensOut: 16,
        tokensInCached: 12,
        tokensOutReasoning: 8,
        cost: 1,
      });
      expect(all?.latency.length).toBe(LATENCY_BUCKETS_MS.length + 1);
      expect(all?.latency[0]).toBe(1);
      expect(all?.latency.at(-1)).toBe(1);
      const groups = async (...groupBy: ("hour" | "day" | "provider" | "model" | "gateway")[]) =>
        (await under.log.summarise({ ...ALL_TIME, groupBy })).map((one) => [
          one.time ?? one.provider ?? one.model ?? one.gatewayId,
          one.calls,
        ]);
      const midnight = NOON - 12 * HOUR;
      expect(await groups("hour")).toEqual([
        [NOON - DAY, 1],
        [NOON, 2],
        [NOON + HOUR, 1],
      ]);
      expect(await groups("day")).toEqual([
        [midnight - DAY, 1],
        [midnight, 3],
      ]);
      expect(await groups("provider")).toEqual([
        ["anthropic", 1],
        ["openai", 3],
      ]);
      expect(await groups("gateway")).toEqual([
        ["main", 3],
        ["other", 1],
      ]);
      expect(await under.log.summarise({ ...ALL_TIME, groupBy: ["day", "model"] })).toMatchObject([
        { time: midnight - DAY, model: "gpt-5-mini", calls: 1 },
        { time: midnight, model: "gpt-5-mini", calls: 2 },
        { time: midnight, model: "m", calls: 1 },
      ]);
      const bounded = { ...ALL_TIME, gatewayIds: ["main"], from: NOON + 30_000, to: NOON + HOUR };
      expect(await under.log.summarise({ ...bounded, groupBy: [] })).toMatchObject([{ calls: 2 }]);
      expect(await under.log.summarise({ ...ALL_TIME, gatewayIds: [], groupBy: [] })).toEqual([]);
      expect(await under.log.summarise({ ...ALL_TIME, from: 5, to: 6, groupBy: ["hour"] })).toEqual([]);
    });

    it("keeps the usage of deleted rows until the gateway is dropped", async () => {
      under.record();
      under.record({ gatewayId: "other" });
      await under.log.delete(GATEWAY, { ...FIRST_PAGE, limit: null });
      expect(await under.log.summarise({ ...ALL_TIME, groupBy: [] })).toMatchObject([{ calls: 2 }]);
      under.record();
      await under.log.dropGateway(GATEWAY);
      expect(await under.log.list(GATEWAY, FIRST_PAGE)).toEqual({ rows: [], total: 0 });
      expect(await under.log.summarise({ ...ALL_TIME, groupBy: ["gateway"] })).toMatchObject([
        { gatewayId: "other", calls: 1 },
      ]);
      const again = under.record();
      expect(await under.ids()).toEqual([again.id]);
    });
  });
}
