/** What every adapter of the call log must do; each runs this list on itself. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ulid, ulidFloor } from "../../core/ulid.ts";
import {
  type CallField,
  type CallFilter,
  type CallLog,
  type CallOperator,
  type CallPageRequest,
  type CallRecord,
  LATENCY_BUCKETS_MS,
  NO_USAGE,
} from "./call-log.ts";

export interface CallLogUnderTest {
  readonly log: CallLog;
  /** Closes the log and opens it again on the same storage. */
  reopen(): Promise<CallLog>;
  cleanUp(): Promise<void>;
}

export const GATEWAY = { accountId: "default", gatewayId: "main" };
export const FIRST_PAGE: CallPageRequest = {
  filters: [],
  search: "",
  orderBy: "createdAt",
  direction: "desc",
  offset: 0,
  limit: 50,
};

const DAY = 86_400_000;
const HOUR = 3_600_000;
/** Noon, so that some hours either way are the same day. */
const NOON = Date.parse("2026-11-15T12:00:00Z");

/** Ids of a test are distinct also when it makes several for the same moment. */
let uniqueSuffix = 0;

export function callRecord(fields: Partial<CallRecord> = {}): CallRecord {
  const createdAt = fields.createdAt ?? NOON;
  const suffix = (uniqueSuffix++).toString().padStart(8, "0");
  return {
    id: ulidFloor(createdAt).slice(0, -8) + suffix,
    ...GATEWAY,
    createdAt,
    provider: "openai",
    model: "gpt-5-mini",
    path: "chat/completions",
    method: "POST",
    requestType: "chat",
    requestContentType: "application/json",
    responseContentType: "application/json",
    statusCode: 200,
    success: true,
    durationMs: 120.5,
    firstByteMs: 80.25,
    cached: false,
    step: 0,
    usage: { ...NO_USAGE, tokensIn: 10, tokensOut: 5 },
    cost: 0.001,
    isCustomCost: false,
    metadata: null,
    eventId: null,
    userAgent: "test/1",
    tokenId: null,
    requestBytes: 100,
    responseBytes: 200,
    requestBody: null,
    responseBody: null,
    requestBodyComplete: true,
    responseBodyComplete: true,
    ...fields,
  };
}

export function describeCallLog(name: string, open: () => Promise<CallLogUnderTest>): void {
  describe(`the call log on ${name}`, () => {
    let under: CallLogUnderTest;
    let log: CallLog;

    beforeEach(async () => {
      under = await open();
      log = under.log;
    });
    afterEach(async () => {
      await under.cleanUp();
    });

    const record = (fields: Partial<CallRecord> = {}): CallRecord => {
      const call = callRecord(fields);
      log.record(call);
      return call;
    };
    const ids = async (page: Partial<CallPageRequest> = {}) =>
      (await log.list(GATEWAY, { ...FIRST_PAGE, ...page })).rows.map((row) => row.id);
    const matching = (field: CallField, operator: CallOperator, ...values: CallFilter["values"]) =>
      ids({ filters: [{ field, operator, values }] });

    it("shows a row to a read that comes right after it was recorded", async () => {
      const call = record({
        usage: {
          tokensIn: 100,
          tokensOut: 50,
          tokensInCached: 20,
          tokensInCacheWrite: 7,
          tokensOutReasoning: 30,
        },
        cost: null,
        firstByteMs: null,
        metadata: '{"user":"ada"}',
        eventId: "event-1",
        tokenId: "token-1",
        requestBodyComplete: false,
      });
      const { requestBody: _, responseBody: __, ...rest } = call;
      expect(await log.get(GATEWAY, call.id)).toEqual({
        ...rest,
        hasRequestBody: false,
        hasResponseBody: false,
        feedback: null,
        score: null,
      });
      expect((await log.list(GATEWAY, FIRST_PAGE)).total).toBe(1);
    });

    it("keeps rows apart by gateway and account", async () => {
      const call = record();
      for (const other of [
        { accountId: "default", gatewayId: "other" },
        { accountId: "other", gatewayId: "main" },
      ]) {
        expect(await log.get(other, call.id)).toBeNull();
        expect(await log.body(other, call.id, "request")).toBeNull();
        expect(await log.edit(other, call.id, { feedback: 1 })).toBe(false);
        expect(await log.delete(other, { ...FIRST_PAGE, limit: null })).toBe(0);
        expect(await log.list(other, FIRST_PAGE)).toEqual({ rows: [], total: 0 });
      }
      expect(await ids()).toEqual([call.id]);
    });

    it("knows nothing of ids it never saw, also of another form", async () => {
      record();
      for (const id of [ulid(), "no-ulid", "../../etc/passwd", ""]) {
        expect(await log.get(GATEWAY, id)).toBeNull();
        expect(await log.body(GATEWAY, id, "response")).toBeNull();
        expect(await log.edit(GATEWAY, id, { score: 1 })).toBe(false);
      }
    });

    it("keeps bodies byte by byte, small and large, and says which were not kept", async () => {
      const large = Buffer.alloc(3_000_000, "grün 🌲 ");
      const slab = Buffer.from("before[the body]after");
      const calls = [
        record({
          requestBody: Buffer.from("{}"),
          responseBody: large,
          responseContentType: "text/event-stream",
        }),
        record({
          requestBody: slab.subarray(6, 16),
          responseBody: new Uint8Array(0),
          responseBodyComplete: false,
        }),
        record(),
      ] as const;
      const read = async (i: 0 | 1 | 2, side: "request" | "response") => log.body(GATEWAY, calls[i].id, side);
      expect(await read(0, "request")).toMatchObject({ contentType: "application/json", isComplete: true });
      expect(Buffer.from((await read(0, "request"))?.bytes ?? []).toString()).toBe("{}");
      const response = await read(0, "response");
      expect(response?.contentType).toBe("text/event-stream");
      expect((await log.body(GATEWAY, calls[0].id, "response", 10))?.bytes).toEqual(
        new Uint8Array(large.subarray(0, 10)),
      );
      expect(Buffer.compare(Buffer.from(response?.bytes ?? []), large)).toBe(0);
      expect(Buffer.from((await read(1, "request"))?.bytes ?? []).toString()).toBe("[the body]");
      expect(await read(1, "response")).toMatchObject({ isComplete: false });
      expect((await read(1, "response"))?.bytes.length).toBe(0);
      expect(await read(2, "request")).toBeNull();
      const row = await log.get(GATEWAY, calls[1].id);
      expect(row).toMatchObject({ hasRequestBody: true, hasResponseBody: true, responseBodyComplete: false });
    });

    it("pages over several days in order of time, in both directions, with the total", async () => {
      const all: string[] = [];
      for (let day = 4; day >= 0; day--) {
        for (let i = 0; i < 7; i++) all.push(record({ createdAt: NOON - day * DAY + i * HOUR }).id);
      }
      for (const direction of ["asc", "desc"] as const) {
        const seen: string[] = [];
        for (let offset = 0; offset < 40; offset += 4) {
          const page = await log.list(GATEWAY, { ...FIRST_PAGE, direction, offset, limit: 4 });
          expect(page.total).toBe(35);
          seen.push(...page.rows.map((row) => row.id));
        }
        expect(seen).toEqual(direction === "asc" ? all : all.toReversed());
      }
      const filters = [{ field: "createdAt", operator: "lt", values: [NOON - 2 * DAY] }] as const;
      const filtered = await log.list(GATEWAY, { ...FIRST_PAGE, filters, offset: 10, limit: 10 });
      expect(filtered.total).toBe(14);
      expect(filtered.rows.map((row) => row.id)).toEqual(all.slice(0, 4).toReversed());
    });

    it("orders by any column over several days, ties by time", async () => {
      const a = record({ createdAt: NOON - DAY, provider: "openai", cost: 3, durationMs: 9, success: false });
      const b = record({ createdAt: NOON, provider: "anthropic", cost: null, durationMs: 10, cached: true });
      const c = record({ createdAt: NOON + 1, provider: "openai", cost: 0.5, durationMs: 11 });
      const by = (orderBy: CallPageRequest["orderBy"], direction: "asc" | "desc") =>
        ids({ orderBy, direction });
      expect(await by("provider", "asc")).toEqual([b.id, a.id, c.id]);
      expect(await by("provider", "desc")).toEqual([c.id, a.id, b.id]);
      expect(await by("cost", "asc")).toEqual([b.id, c.id, a.id]);
      expect(await by("duration", "desc")).toEqual([c.id, b.id, a.id]);
      expect(await by("success", "asc")).toEqual([a.id, b.id, c.id]);
      expect(await by("cached", "desc")).toEqual([b.id, c.id, a.id]);
      expect(await ids({ orderBy: "provider", direction: "asc", offset: 1, limit: 1 })).toEqual([a.id]);
    });

    it("filters by every field", async () => {
      const a = record({
        createdAt: NOON,
        model: "gpt-5",
        cost: 0.5,
        durationMs: 100,
        usage: { ...NO_USAGE, tokensIn: 100, tokensOut: 1 },
        requestType: "responses",
        path: "responses",
        userAgent: "OpenAI/JS 6.49",
        eventId: "e-1",
        tokenId: "t-1",
      });
      const b = record({
        createdAt: NOON + 1000,
        provider: "anthropic",
        model: "claude_5%",
        cost: null,
        durationMs: 900,
        usage: { ...NO_USAGE, tokensIn: 1, tokensOut: 200 },
        statusCode: 429,
        success: false,
        cached: true,
        responseContentType: "text/event-stream",
        requestContentType: "text/plain",
      });
      await log.edit(GATEWAY, b.id, { feedback: -1 });
      expect(await matching("id", "eq", a.id)).toEqual([a.id]);
      expect(await matching("id", "gt", a.id)).toEqual([b.id]);
      expect(await matching("id", "eq", "nothing")).toEqual([]);
      expect(await matching("createdAt", "lte", NOON)).toEqual([a.id]);
      expect(await matching("createdAt", "gt", NOON)).toEqual([b.id]);
      expect(await matching("provider", "eq", "openai", "anthropic")).toEqual([b.id, a.id]);
      expect(await matching("provider", "neq", "openai")).toEqual([b.id]);
      expect(await matching("model", "contains", "E_5%")).toEqual([b.id]);
      expect(await matching("model", "contains", "_")).toEqual([b.id]);
      expect(await matching("path", "eq", "responses")).toEqual([a.id]);
      expect(await matching("requestType", "eq", "responses")).toEqual([a.id]);
      expect(await matching("requestContentType", "eq", "text/plain")).toEqual([b.id]);
      expect(await matching("responseContentType", "contains", "event")).toEqual([b.id]);
      expect(await matching("statusCode", "gte", 400)).toEqual([b.id]);
      expect(await matching("success", "eq", 0)).toEqual([b.id]);
      expect(await matching("cached", "neq", 1)).toEqual([a.id]);
      expect(await matching("cost", "gt", 0.4)).toEqual([a.id]);
      expect(await matching("cost", "eq", null)).toEqual([b.id]);
      expect(await matching("cost", "neq", 0.5)).toEqual([b.id]);
      expect(await matching("cost", "neq", null)).toEqual([a.id]);
      expect(await matching("tokens", "gt", 150)).toEqual([b.id]);
      expect(await matching("tokensIn", "gt", 50)).toEqual([a.id]);
      expect(await matching("tokensOut", "lt", 50)).toEqual([a.id]);
      expect(await matching("duration", "lt", 500)).toEqual([a.id]);
      expect(await matching("feedback", "eq", -1)).toEqual([b.id]);
      expect(await matching("eventId", "eq", "e-1")).toEqual([a.id]);
      expect(await matching("userAgent", "contains", "openai")).toEqual([a.id]);
      expect(await matching("isAuthenticated", "eq", 1)).toEqual([a.id]);
      expect(await matching("provider", "eq")).toEqual([]);
    });

    it("filters and searches metadata by its keys and values", async () => {
      const a = record({ metadata: '{"user":"ada","plan":"pro","n":10,"beta":true,"off":null}' });
      const b = record({ metadata: '{"user":"bob","plan":"ada"}' });
      const c = record();
      const broken = record({ metadata: "{not json" });
      expect(await matching("metadataKey", "eq", "n")).toEqual([a.id]);
      expect(await matching("metadataKey", "neq", "n")).toEqual([broken.id, c.id, b.id]);
      expect(await matching("metadataValue", "eq", "ada")).toEqual([b.id, a.id]);
      expect(await matching("metadataValue", "eq", 10)).toEqual([a.id]);
      expect(await matching("metadataValue", "gt", 9)).toEqual([a.id]);
      expect(await matching("metadataValue", "eq", "true")).toEqual([a.id]);
      expect(await matching("metadataValue", "eq", null)).toEqual([a.id]);
      expect(
        await ids({
          filters: [
            { field: "metadataKey", operator: "eq", values: ["user"] },
            { field: "metadataValue", operator: "eq", values: ["ada"] },
          ],
        }),
      ).toEqual([a.id]);
      expect(await ids({ search: "PRO" })).toEqual([a.id]);
      expect(await ids({ search: "plan" })).toEqual([b.id, a.id]);
      expect(await ids({ search: '"' })).toEqual([]);
      expect(await ids({ search: "%" })).toEqual([]);
    });

    it("gives the ranges of what matches", async () => {
      record({
        createdAt: NOON - DAY,
        cost: 1,
        durationMs: 5,
        usage: { ...NO_USAGE, tokensIn: 1, tokensOut: 9 },
      });
      record({ cost: null, durationMs: 7, usage: { ...NO_USAGE, tokensIn: 4, tokensOut: 3 } });
      expect(await log.ranges(GATEWAY, FIRST_PAGE)).toEqual({
        cost: { min: 1, max: 1 },
        duration: { min: 5, max: 7 },
        tokensIn: { min: 1, max: 4 },
        tokensOut: { min: 3, max: 9 },
        tokens: { min: 7, max: 10 },
      });
      const none = { min: null, max: null };
      expect(
        await log.ranges(GATEWAY, {
          filters: [{ field: "provider", operator: "eq", values: ["x"] }],
          search: "",
        }),
      ).toEqual({ cost: none, duration: none, tokensIn: none, tokensOut: none, tokens: none });
    });

    it("changes feedback, score and metadata, each alone, and clears them", async () => {
      const { id } = record({ metadata: '{"a":1}' });
      expect(await log.edit(GATEWAY, id, { feedback: 1 })).toBe(true);
      expect(await log.edit(GATEWAY, id, { score: 0.25 })).toBe(true);
      expect(await log.get(GATEWAY, id)).toMatchObject({ feedback: 1, score: 0.25, metadata: '{"a":1}' });
      await log.edit(GATEWAY, id, { feedback: null, metadata: '{"b":2}' });
      expect(await log.get(GATEWAY, id)).toMatchObject({ feedback: null, score: 0.25, metadata: '{"b":2}' });
      await log.edit(GATEWAY, id, { metadata: null, score: null });
      expect(await log.get(GATEWAY, id)).toMatchObject({ score: null, metadata: null });
    });

    it("deletes what matches, with its bodies, and nothing else", async () => {
      const body = Buffer.from("x");
      const a = record({ provider: "a", requestBody: body, createdAt: NOON - DAY });
      const b = record({ provider: "b", requestBody: body });
      const c = record({ provider: "a", requestBody: body });
      const deleted = await log.delete(GATEWAY, {
        ...FIRST_PAGE,
        filters: [{ field: "provider", operator: "eq", values: ["a"] }],
        limit: null,
      });
      expect(deleted).toBe(2);
      expect(await log.list(GATEWAY, FIRST_PAGE)).toMatchObject({ total: 1, rows: [{ id: b.id }] });
      for (const { id } of [a, c]) expect(await log.body(GATEWAY, id, "request")).toBeNull();
      expect(await log.body(GATEWAY, b.id, "request")).not.toBeNull();
    });

    it("deletes up to a limit in an order", async () => {
      const rows = [3, 1, 2, 5, 4].map((cost, i) => record({ cost, createdAt: NOON - i * DAY }));
      expect(await log.delete(GATEWAY, { ...FIRST_PAGE, orderBy: "cost", direction: "asc", limit: 2 })).toBe(
        2,
      );
      expect(await log.delete(GATEWAY, { ...FIRST_PAGE, direction: "asc", limit: 1 })).toBe(1);
      expect((await ids()).length).toBe(2);
      expect(await ids()).toEqual([rows[0]?.id, rows[3]?.id]);
    });

    it("deletes thousands of rows and goes on recording meanwhile", async () => {
      for (let i = 0; i < 4500; i++) record();
      const deletion = log.delete(GATEWAY, {
        ...FIRST_PAGE,
        filters: [{ field: "provider", operator: "eq", values: ["openai"] }],
        limit: null,
      });
      const other = record({ provider: "other" });
      expect(await deletion).toBe(4500);
      expect(await ids()).toEqual([other.id]);
    });

    it("stops inserting at a quota that says so, and goes on when it is lifted", async () => {
      log.setQuota(GATEWAY, { maxRows: 3, whenFull: "stop" });
      const kept = [0, 1, 2].map((day) => record({ createdAt: NOON - (2 - day) * DAY }).id);
      record();
      expect(await ids({ direction: "asc" })).toEqual(kept);
      log.setQuota(GATEWAY, null);
      const next = record({ createdAt: NOON + DAY });
      expect(await ids({ direction: "asc" })).toEqual([...kept, next.id]);
      const [figures] = await log.summarise({ ...ALL_TIME, groupBy: [] });
      expect(figures?.calls).toBe(5);
    });

    it("deletes the oldest rows over a quota that says so, also from earlier days", async () => {
      const calls = Array.from({ length: 10 }, (_, i) => record({ createdAt: NOON - (9 - i) * DAY }).id);
      record({ gatewayId: "other", createdAt: NOON - 20 * DAY });
      log.setQuota(GATEWAY, { maxRows: 4, whenFull: "deleteOldest" });
      calls.push(record({ createdAt: NOON + 1 }).id, record({ createdAt: NOON + 2 }).id);
      expect(await ids({ direction: "asc" })).toEqual(calls.slice(-4));
      expect((await log.list({ ...GATEWAY, gatewayId: "other" }, FIRST_PAGE)).total).toBe(1);
    });

    it("counts a quota over what an earlier process wrote", async () => {
      record();
      record();
      log = await under.reopen();
      log.setQuota(GATEWAY, { maxRows: 3, whenFull: "stop" });
      record({ createdAt: NOON + DAY });
      record({ createdAt: NOON + DAY });
      expect((await log.list(GATEWAY, FIRST_PAGE)).total).toBe(3);
    });

    it("loses nothing at a graceful close", async () => {
      const calls = Array.from({ length: 2500 }, () => record({ responseBody: Buffer.from("answer") }).id);
      log = await under.reopen();
      const page = await log.list(GATEWAY, { ...FIRST_PAGE, direction: "asc", limit: 3000 });
      expect(page.rows.map((row) => row.id)).toEqual(calls);
      expect(await log.body(GATEWAY, calls[2499] ?? "", "response")).not.toBeNull();
    });

    it("refuses records after it was closed, and closes twice as once", async () => {
      await Promise.all([log.close(), log.close()]);
      expect(() => record()).toThrow("closed");
      await expect(log.list(GATEWAY, FIRST_PAGE)).rejects.toThrow("closed");
    });

    const ALL_TIME = { accountId: "default", gatewayIds: null, from: 0, to: NOON * 2 };

    it("adds up usage by hour, day, provider, model and gateway", async () => {
      const usage = {
        tokensIn: 10,
        tokensOut: 4,
        tokensInCached: 3,
        tokensInCacheWrite: 0,
        tokensOutReasoning: 2,
      };
      record({ createdAt: NOON, usage, cost: 0.5, durationMs: 3 });
      record({ createdAt: NOON + 60_000, usage, cost: null, success: false, durationMs: 999_999 });
      record({ createdAt: NOON + HOUR, usage, cost: 0.25, cached: true, provider: "anthropic", model: "m" });
      record({ createdAt: NOON - DAY, usage, cost: 0.25, gatewayId: "other" });
      record({ createdAt: NOON, accountId: "other" });
      const [all, ...rest] = await log.summarise({ ...ALL_TIME, groupBy: [] });
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
        (await log.summarise({ ...ALL_TIME, groupBy })).map((one) => [
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
      expect(await log.summarise({ ...ALL_TIME, groupBy: ["day", "model"] })).toMatchObject([
        { time: midnight - DAY, model: "gpt-5-mini", calls: 1 },
        { time: midnight, model: "gpt-5-mini", calls: 2 },
        { time: midnight, model: "m", calls: 1 },
      ]);
      const bounded = { ...ALL_TIME, gatewayIds: ["main"], from: NOON + 30_000, to: NOON + HOUR };
      expect(await log.summarise({ ...bounded, groupBy: [] })).toMatchObject([{ calls: 2 }]);
      expect(await log.summarise({ ...ALL_TIME, gatewayIds: [], groupBy: [] })).toEqual([]);
      expect(await log.summarise({ ...ALL_TIME, from: 5, to: 6, groupBy: ["hour"] })).toEqual([]);
    });

    it("keeps usage figures of deleted rows, until the gateway is dropped", async () => {
      record();
      record({ gatewayId: "other" });
      await log.delete(GATEWAY, { ...FIRST_PAGE, limit: null });
      expect(await log.summarise({ ...ALL_TIME, groupBy: [] })).toMatchObject([{ calls: 2 }]);
      record();
      await log.dropGateway(GATEWAY);
      expect(await log.list(GATEWAY, FIRST_PAGE)).toEqual({ rows: [], total: 0 });
      expect(await log.summarise({ ...ALL_TIME, groupBy: ["gateway"] })).toMatchObject([
        { gatewayId: "other", calls: 1 },
      ]);
      const again = record();
      expect(await ids()).toEqual([again.id]);
    });
  });
}
