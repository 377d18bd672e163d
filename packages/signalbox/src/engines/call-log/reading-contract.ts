/** Reads of stored calls: pages, order, filters, ranges, bodies. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ulid } from "../../core/ulid.ts";
import { DAY, FIRST_PAGE, GATEWAY, HOUR, NOON, type OpenStorage, TestLog } from "./call-log-fixture.ts";
import type { CallPageRequest } from "./selection.ts";

export function describeReading(engine: string, openStorage: OpenStorage): void {
  describe(`reads of a call log on ${engine}`, () => {
    let under: TestLog;
    beforeEach(async () => {
      under = await TestLog.open(openStorage);
    });
    afterEach(() => under.remove());

    it("returns a row to a read directly after it was recorded", async () => {
      const call = under.record({
        tokensIn: 100,
        tokensOut: 50,
        tokensInCached: 20,
        tokensInCacheWrite: 7,
        tokensOutReasoning: 30,
        cost: null,
        firstByteMs: null,
        metadata: '{"user":"ada"}',
        eventId: "event-1",
        tokenId: "token-1",
        requestBodyComplete: false,
      });
      const { requestBody: _, responseBody: __, ...rest } = call;
      expect(await under.log.get(GATEWAY, call.id)).toEqual({
        ...rest,
        hasRequestBody: false,
        hasResponseBody: false,
        feedback: null,
        score: null,
      });
      expect((await under.log.list(GATEWAY, FIRST_PAGE)).total).toBe(1);
    });

    it("separates rows by gateway and account", async () => {
      const call = under.record();
      for (const other of [
        { accountId: "default", gatewayId: "other" },
        { accountId: "other", gatewayId: "main" },
      ]) {
        expect(await under.log.get(other, call.id)).toBeNull();
        expect(await under.log.body(other, call.id, "request")).toBeNull();
        expect(await under.log.edit(other, call.id, { feedback: 1 })).toBe(false);
        expect(await under.log.delete(other, { ...FIRST_PAGE, limit: null })).toBe(0);
        expect(await under.log.list(other, FIRST_PAGE)).toEqual({ rows: [], total: 0 });
      }
      expect(await under.ids()).toEqual([call.id]);
    });

    it("finds nothing for unknown ids and for ids that are not ULIDs", async () => {
      under.record();
      for (const id of [ulid(), "no-ulid", "../../etc/passwd", ""]) {
        expect(await under.log.get(GATEWAY, id)).toBeNull();
        expect(await under.log.body(GATEWAY, id, "response")).toBeNull();
        expect(await under.log.edit(GATEWAY, id, { score: 1 })).toBe(false);
      }
    });

    it("returns bodies unchanged, small and large, and null for a body that was not kept", async () => {
      const large = Buffer.alloc(3_000_000, "grün 🌲 ");
      const slab = Buffer.from("before[the body]after");
      const calls = [
        under.record({
          requestBody: Buffer.from("{}"),
          responseBody: large,
          responseContentType: "text/event-stream",
        }),
        under.record({
          requestBody: slab.subarray(6, 16),
          responseBody: new Uint8Array(0),
          responseBodyComplete: false,
        }),
        under.record(),
      ] as const;
      const read = async (i: 0 | 1 | 2, side: "request" | "response") =>
        under.log.body(GATEWAY, calls[i].id, side);
      expect(await read(0, "request")).toMatchObject({ contentType: "application/json", isComplete: true });
      expect(Buffer.from((await read(0, "request"))?.bytes ?? []).toString()).toBe("{}");
      const response = await read(0, "response");
      expect(response?.contentType).toBe("text/event-stream");
      expect((await under.log.body(GATEWAY, calls[0].id, "response", 10))?.bytes).toEqual(
        new Uint8Array(large.subarray(0, 10)),
      );
      expect(Buffer.compare(Buffer.from(response?.bytes ?? []), large)).toBe(0);
      expect(Buffer.from((await read(1, "request"))?.bytes ?? []).toString()).toBe("[the body]");
      expect(await read(1, "response")).toMatchObject({ isComplete: false });
      expect((await read(1, "response"))?.bytes.length).toBe(0);
      expect(await read(2, "request")).toBeNull();
      const row = await under.log.get(GATEWAY, calls[1].id);
      expect(row).toMatchObject({ hasRequestBody: true, hasResponseBody: true, responseBodyComplete: false });
    });

    it("pages over several days in the order of time, in both directions, with the total", async () => {
      const all: string[] = [];
      for (let day = 4; day >= 0; day--) {
        for (let i = 0; i < 7; i++) all.push(under.record({ createdAt: NOON - day * DAY + i * HOUR }).id);
      }
      for (const direction of ["asc", "desc"] as const) {
        const seen: string[] = [];
        for (let offset = 0; offset < 40; offset += 4) {
          const page = await under.log.list(GATEWAY, { ...FIRST_PAGE, direction, offset, limit: 4 });
          expect(page.total).toBe(35);
          seen.push(...page.rows.map((row) => row.id));
        }
        expect(seen).toEqual(direction === "asc" ? all : all.toReversed());
      }
      const filters = [{ field: "createdAt", operator: "lt", values: [NOON - 2 * DAY] }] as const;
      const filtered = await under.log.list(GATEWAY, { ...FIRST_PAGE, filters, offset: 10, limit: 10 });
      expect(filtered.total).toBe(14);
      expect(filtered.rows.map((row) => row.id)).toEqual(all.slice(0, 4).toReversed());
    });

    it("sorts by any column over several days, ties by time", async () => {
      const a = under.record({
        createdAt: NOON - DAY,
        provider: "openai",
        cost: 3,
        durationMs: 9,
        success: false,
      });
      const b = under.record({
        createdAt: NOON,
        provider: "anthropic",
        cost: null,
        durationMs: 10,
        cached: true,
      });
      const c = under.record({ createdAt: NOON + 1, provider: "openai", cost: 0.5, durationMs: 11 });
      const by = (orderBy: CallPageRequest["orderBy"], direction: "asc" | "desc") =>
        under.ids({ orderBy, direction });
      expect(await by("provider", "asc")).toEqual([b.id, a.id, c.id]);
      expect(await by("provider", "desc")).toEqual([c.id, a.id, b.id]);
      expect(await by("cost", "asc")).toEqual([b.id, c.id, a.id]);
      expect(await by("durationMs", "desc")).toEqual([c.id, b.id, a.id]);
      expect(await by("success", "asc")).toEqual([a.id, b.id, c.id]);
      expect(await by("cached", "desc")).toEqual([b.id, c.id, a.id]);
      expect(await under.ids({ orderBy: "provider", direction: "asc", offset: 1, limit: 1 })).toEqual([a.id]);
    });

    it("filters by every field", async () => {
      const a = under.record({
        createdAt: NOON,
        model: "gpt-5",
        cost: 0.5,
        durationMs: 100,
        tokensIn: 100,
        tokensOut: 1,
        requestType: "responses",
        path: "responses",
        userAgent: "OpenAI/JS 6.49",
        eventId: "e-1",
        tokenId: "t-1",
      });
      const b = under.record({
        createdAt: NOON + 1000,
        provider: "anthropic",
        model: "claude_5%",
        cost: null,
        durationMs: 900,
        tokensIn: 1,
        tokensOut: 200,
        statusCode: 429,
        success: false,
        cached: true,
        responseContentType: "text/event-stream",
        requestContentType: "text/plain",
      });
      await under.log.edit(GATEWAY, b.id, { feedback: -1 });
      expect(await under.matching("id", "eq", a.id)).toEqual([a.id]);
      expect(await under.matching("id", "gt", a.id)).toEqual([b.id]);
      expect(await under.matching("id", "eq", "nothing")).toEqual([]);
      expect(await under.matching("createdAt", "lte", NOON)).toEqual([a.id]);
      expect(await under.matching("createdAt", "gt", NOON)).toEqual([b.id]);
      expect(await under.matching("provider", "eq", "openai", "anthropic")).toEqual([b.id, a.id]);
      expect(await under.matching("provider", "neq", "openai")).toEqual([b.id]);
      expect(await under.matching("model", "contains", "E_5%")).toEqual([b.id]);
      expect(await under.matching("model", "contains", "_")).toEqual([b.id]);
      expect(await under.matching("path", "eq", "responses")).toEqual([a.id]);
      expect(await under.matching("requestType", "eq", "responses")).toEqual([a.id]);
      expect(await under.matching("requestContentType", "eq", "text/plain")).toEqual([b.id]);
      expect(await under.matching("responseContentType", "contains", "event")).toEqual([b.id]);
      expect(await under.matching("statusCode", "gte", 400)).toEqual([b.id]);
      expect(await under.matching("success", "eq", 0)).toEqual([b.id]);
      expect(await under.matching("cached", "neq", 1)).toEqual([a.id]);
      expect(await under.matching("cost", "gt", 0.4)).toEqual([a.id]);
      expect(await under.matching("cost", "eq", null)).toEqual([b.id]);
      expect(await under.matching("cost", "neq", 0.5)).toEqual([b.id]);
      expect(await under.matching("cost", "neq", null)).toEqual([a.id]);
      expect(await under.matching("tokens", "gt", 150)).toEqual([b.id]);
      expect(await under.matching("tokensIn", "gt", 50)).toEqual([a.id]);
      expect(await under.matching("tokensOut", "lt", 50)).toEqual([a.id]);
      expect(await under.matching("durationMs", "lt", 500)).toEqual([a.id]);
      expect(await under.matching("feedback", "eq", -1)).toEqual([b.id]);
      expect(await under.matching("eventId", "eq", "e-1")).toEqual([a.id]);
      expect(await under.matching("userAgent", "contains", "openai")).toEqual([a.id]);
      expect(await under.matching("isAuthenticated", "eq", 1)).toEqual([a.id]);
      expect(await under.matching("provider", "eq")).toEqual([]);
    });

    it("filters and searches metadata by keys and values", async () => {
      const a = under.record({ metadata: '{"user":"ada","plan":"pro","n":10,"beta":true,"off":null}' });
      const b = under.record({ metadata: '{"user":"bob","plan":"ada"}' });
      const c = under.record();
      const broken = under.record({ metadata: "{not json" });
      expect(await under.matching("metadataKey", "eq", "n")).toEqual([a.id]);
      expect(await under.matching("metadataKey", "neq", "n")).toEqual([broken.id, c.id, b.id]);
      expect(await under.matching("metadataValue", "eq", "ada")).toEqual([b.id, a.id]);
      expect(await under.matching("metadataValue", "eq", 10)).toEqual([a.id]);
      expect(await under.matching("metadataValue", "gt", 9)).toEqual([a.id]);
      expect(await under.matching("metadataValue", "eq", "true")).toEqual([a.id]);
      expect(await under.matching("metadataValue", "eq", null)).toEqual([a.id]);
      expect(
        await under.ids({
          filters: [
            { field: "metadataKey", operator: "eq", values: ["user"] },
            { field: "metadataValue", operator: "eq", values: ["ada"] },
          ],
        }),
      ).toEqual([a.id]);
      expect(await under.ids({ search: "PRO" })).toEqual([a.id]);
      expect(await under.ids({ search: "plan" })).toEqual([b.id, a.id]);
      expect(await under.ids({ search: '"' })).toEqual([]);
      expect(await under.ids({ search: "%" })).toEqual([]);
    });

    it("finds texts of the metadata however they are written in its JSON", async () => {
      const escaped = under.record({ metadata: '{"us\\u0065r":"\\u0061d\\u0061","path":"c:\\\\new"}' });
      const plain = under.record({ metadata: '{"user":"Ada","city":"Évora","share":"50%_a","n":-1.50}' });
      expect(await under.ids({ search: "ADA" })).toEqual([plain.id, escaped.id]);
      expect(await under.ids({ search: "user" })).toEqual([plain.id, escaped.id]);
      expect(await under.ids({ search: "C:\\N" })).toEqual([escaped.id]);
      expect(await under.ids({ search: "évora" })).toEqual([plain.id]);
      expect(await under.ids({ search: "%_A" })).toEqual([plain.id]);
      expect(await under.ids({ search: "ad_" })).toEqual([]);
      expect(await under.matching("metadataKey", "eq", "user")).toEqual([plain.id, escaped.id]);
      expect(await under.matching("metadataValue", "eq", "ada")).toEqual([escaped.id]);
      expect(await under.matching("metadataValue", "contains", "ada")).toEqual([plain.id, escaped.id]);
      expect(await under.matching("metadataValue", "eq", "ada", "Ada")).toEqual([plain.id, escaped.id]);
      expect(await under.matching("metadataValue", "neq", "ada")).toEqual([plain.id]);
    });

    it("returns the ranges of the matching rows", async () => {
      under.record({
        createdAt: NOON - DAY,
        cost: 1,
        durationMs: 5,
        tokensIn: 1,
        tokensOut: 9,
      });
      under.record({ cost: null, durationMs: 7, tokensIn: 4, tokensOut: 3 });
      expect(await under.log.ranges(GATEWAY, FIRST_PAGE)).toEqual({
        cost: { min: 1, max: 1 },
        durationMs: { min: 5, max: 7 },
        tokensIn: { min: 1, max: 4 },
        tokensOut: { min: 3, max: 9 },
        tokens: { min: 7, max: 10 },
      });
      const none = { min: null, max: null };
      expect(
        await under.log.ranges(GATEWAY, {
          filters: [{ field: "provider", operator: "eq", values: ["x"] }],
          search: "",
        }),
      ).toEqual({ cost: none, durationMs: none, tokensIn: none, tokensOut: none, tokens: none });
    });
  });
}
