/** Changes of stored calls: edits, deletions, quotas, and what a close leaves. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ALL_TIME, DAY, FIRST_PAGE, GATEWAY, NOON, type OpenStorage, TestLog } from "./call-log-fixture.ts";

export function describeChanges(engine: string, openStorage: OpenStorage): void {
  describe(`changes of a call log on ${engine}`, () => {
    let under: TestLog;
    beforeEach(async () => {
      under = await TestLog.open(openStorage);
    });
    afterEach(() => under.remove());

    it("edits feedback, score and metadata separately, and clears them", async () => {
      const { id } = under.record({ metadata: '{"a":1}' });
      expect(await under.log.edit(GATEWAY, id, { feedback: 1 })).toBe(true);
      expect(await under.log.edit(GATEWAY, id, { score: 0.25 })).toBe(true);
      expect(await under.log.get(GATEWAY, id)).toMatchObject({
        feedback: 1,
        score: 0.25,
        metadata: '{"a":1}',
      });
      await under.log.edit(GATEWAY, id, { feedback: null, metadata: '{"b":2}' });
      expect(await under.log.get(GATEWAY, id)).toMatchObject({
        feedback: null,
        score: 0.25,
        metadata: '{"b":2}',
      });
      await under.log.edit(GATEWAY, id, { metadata: null, score: null });
      expect(await under.log.get(GATEWAY, id)).toMatchObject({ score: null, metadata: null });
    });

    it("deletes matching rows with their bodies, and no others", async () => {
      const body = Buffer.from("x");
      const a = under.record({ provider: "a", requestBody: body, createdAt: NOON - DAY });
      const b = under.record({ provider: "b", requestBody: body });
      const c = under.record({ provider: "a", requestBody: body });
      const deleted = await under.log.delete(GATEWAY, {
        ...FIRST_PAGE,
        filters: [{ field: "provider", operator: "eq", values: ["a"] }],
        limit: null,
      });
      expect(deleted).toBe(2);
      expect(await under.log.list(GATEWAY, FIRST_PAGE)).toMatchObject({ total: 1, rows: [{ id: b.id }] });
      for (const { id } of [a, c]) expect(await under.log.body(GATEWAY, id, "request")).toBeNull();
      expect(await under.log.body(GATEWAY, b.id, "request")).not.toBeNull();
    });

    it("deletes the first rows of an order up to a limit", async () => {
      const rows = [3, 1, 2, 5, 4].map((cost, i) => under.record({ cost, createdAt: NOON - i * DAY }));
      expect(
        await under.log.delete(GATEWAY, { ...FIRST_PAGE, orderBy: "cost", direction: "asc", limit: 2 }),
      ).toBe(2);
      expect(await under.log.delete(GATEWAY, { ...FIRST_PAGE, direction: "asc", limit: 1 })).toBe(1);
      expect((await under.ids()).length).toBe(2);
      expect(await under.ids()).toEqual([rows[0]?.id, rows[3]?.id]);
    });

    it("records calls while thousands of rows are deleted", async () => {
      for (let i = 0; i < 4500; i++) under.record();
      const deletion = under.log.delete(GATEWAY, {
        ...FIRST_PAGE,
        filters: [{ field: "provider", operator: "eq", values: ["openai"] }],
        limit: null,
      });
      const other = under.record({ provider: "other" });
      expect(await deletion).toBe(4500);
      expect(await under.ids()).toEqual([other.id]);
    });

    it("stops inserting at a `stop` quota until the quota is removed", async () => {
      under.log.setQuota(GATEWAY, { maxRows: 3, whenFull: "stop" });
      const kept = [0, 1, 2].map((day) => under.record({ createdAt: NOON - (2 - day) * DAY }).id);
      under.record();
      expect(await under.ids({ direction: "asc" })).toEqual(kept);
      under.log.setQuota(GATEWAY, null);
      const next = under.record({ createdAt: NOON + DAY });
      expect(await under.ids({ direction: "asc" })).toEqual([...kept, next.id]);
      const [figures] = await under.log.summarise({ ...ALL_TIME, groupBy: [] });
      expect(figures?.calls).toBe(5);
    });

    it("deletes the oldest rows of all days beyond a `deleteOldest` quota", async () => {
      const calls = Array.from(
        { length: 10 },
        (_, i) => under.record({ createdAt: NOON - (9 - i) * DAY }).id,
      );
      under.record({ gatewayId: "other", createdAt: NOON - 20 * DAY });
      under.log.setQuota(GATEWAY, { maxRows: 4, whenFull: "deleteOldest" });
      calls.push(under.record({ createdAt: NOON + 1 }).id, under.record({ createdAt: NOON + 2 }).id);
      expect(await under.ids({ direction: "asc" })).toEqual(calls.slice(-4));
      expect((await under.log.list({ ...GATEWAY, gatewayId: "other" }, FIRST_PAGE)).total).toBe(1);
    });

    it("counts rows of an earlier process towards a quota", async () => {
      under.record();
      under.record();
      await under.reopen();
      under.log.setQuota(GATEWAY, { maxRows: 3, whenFull: "stop" });
      under.record({ createdAt: NOON + DAY });
      under.record({ createdAt: NOON + DAY });
      expect((await under.log.list(GATEWAY, FIRST_PAGE)).total).toBe(3);
    });

    it("writes every row before it closes", async () => {
      const calls = Array.from(
        { length: 2500 },
        () => under.record({ responseBody: Buffer.from("answer") }).id,
      );
      await under.reopen();
      const page = await under.log.list(GATEWAY, { ...FIRST_PAGE, direction: "asc", limit: 3000 });
      expect(page.rows.map((row) => row.id)).toEqual(calls);
      expect(await under.log.body(GATEWAY, calls[2499] ?? "", "response")).not.toBeNull();
    });

    it("refuses records after it was closed, and can be closed twice", async () => {
      await Promise.all([under.log.close(), under.log.close()]);
      expect(() => under.record()).toThrow("closed");
      await expect(under.log.list(GATEWAY, FIRST_PAGE)).rejects.toThrow("closed");
    });
  });
}
