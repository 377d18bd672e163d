/** Scans: all gateways of an account, search in texts, previews, following what is stored, neighbours. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DAY, GATEWAY, NOON, type OpenStorage, TestLog } from "./call-log-fixture.ts";
import type { CallScan } from "./call-scan.ts";

export function describeScans(engine: string, openStorage: OpenStorage): void {
  describe(`scans of a call log on ${engine}`, () => {
    let under: TestLog;
    beforeEach(async () => {
      under = await TestLog.open(openStorage);
    });
    afterEach(() => under.remove());

    const ALL: CallScan = {
      accountId: GATEWAY.accountId,
      gatewayIds: null,
      selection: { filters: [], search: "" },
      text: "",
      direction: "desc",
      cursor: null,
      limit: 100,
      previewLength: 100,
      withBodies: false,
    };
    const body = (text: string) =>
      Buffer.from(JSON.stringify({ messages: [{ role: "user", content: text }] }));
    const stream = (...parts: string[]) =>
      Buffer.from(
        parts.map((content) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`).join(""),
      );

    async function scanAll(scan: Partial<CallScan>): Promise<string[]> {
      const found: string[] = [];
      let cursor: string | null = null;
      do {
        const slice = await under.log.scan({ ...ALL, ...scan, cursor });
        found.push(...slice.calls.map(({ prompt, answer }) => `${prompt} > ${answer}`));
        cursor = slice.next;
      } while (cursor !== null);
      return found;
    }

    it("lists all gateways of one account over days with previews, in both directions, page by page", async () => {
      under.record({ createdAt: NOON - DAY, requestBody: body("old"), responseBody: stream("a") });
      under.record({
        createdAt: NOON,
        requestBody: body("new"),
        responseBody: stream("b"),
        gatewayId: "other",
      });
      under.record({ createdAt: NOON, requestBody: null, responseBody: null });
      under.record({ createdAt: NOON, requestBody: body("foreign"), accountId: "foreign" });
      expect(await scanAll({})).toEqual(["null > null", "new > b", "old > a"]);
      expect(await scanAll({ limit: 1, direction: "asc" })).toEqual(["old > a", "new > b", "null > null"]);
      expect(await scanAll({ gatewayIds: ["other"] })).toEqual(["new > b"]);
      expect(await scanAll({ accountId: "foreign" })).toEqual(["foreign > null"]);
    });

    it("finds a text in prompts and answers, in any case, across the deltas of a stream, and escaped", async () => {
      under.record({
        createdAt: NOON,
        requestBody: body('Grüße an "alle"'),
        responseBody: stream("The qui", "ck brown", " fox"),
      });
      under.record({ createdAt: NOON, requestBody: body("nothing"), responseBody: stream("here") });
      expect(await scanAll({ text: "QUICK BROWN" })).toHaveLength(1);
      expect(await scanAll({ text: 'grüße an "alle"' })).toHaveLength(1);
      expect(await scanAll({ text: "quick red" })).toEqual([]);
      // Names of members are not text.
      expect(await scanAll({ text: "messages" })).toEqual([]);
    });

    it("finds few matches among many calls in both directions, and counts the calls of the account that it looked at", async () => {
      for (let i = 0; i < 4500; i++) {
        const isRare = i % 1500 === 700;
        under.record({
          createdAt: NOON - (i < 2500 ? DAY : 0),
          success: !isRare,
          cached: isRare,
          metadata: isRare ? '{"user":"ada"}' : null,
          requestBody: isRare ? body(`rare ${i}`) : null,
          accountId: i % 3 === 0 ? "foreign" : GATEWAY.accountId,
        });
      }
      const own = 3000;
      const filter = (field: "success" | "cached" | "provider", value: number | string) => ({
        filters: [{ field, operator: "eq" as const, values: [value] }],
        search: "",
      });
      const selections = [
        { filters: [], search: "ada" },
        filter("success", 0),
        filter("cached", 1),
        filter("provider", "none"),
      ];
      for (const [i, selection] of selections.entries()) {
        for (const direction of ["asc", "desc"] as const) {
          const found: string[] = [];
          let scanned = 0;
          let cursor: string | null = null;
          do {
            const slice = await under.log.scan({ ...ALL, selection, direction, cursor, limit: 1 });
            found.push(...slice.calls.map(({ prompt }) => prompt ?? ""));
            scanned += slice.scanned;
            cursor = slice.next;
          } while (cursor !== null);
          const expected = i === 3 ? [] : ["rare 700", "rare 2200", "rare 3700"];
          expect(found).toEqual(direction === "asc" ? expected : expected.toReversed());
          expect(scanned).toBe(own);
        }
      }
    });

    it("lists the calls of a gateway that has few among many, in both directions", async () => {
      for (let i = 0; i < 3000; i++) {
        const isFew = i % 1000 === 500;
        under.record(
          isFew
            ? { createdAt: NOON + i, gatewayId: "few", requestBody: body(`few ${i}`) }
            : { createdAt: NOON + i },
        );
      }
      const few = ["few 500 > null", "few 1500 > null", "few 2500 > null"];
      expect(await scanAll({ gatewayIds: ["few"], direction: "asc", limit: 2 })).toEqual(few);
      expect(await scanAll({ gatewayIds: ["few"], limit: 1 })).toEqual(few.toReversed());
      expect(await under.log.scan({ ...ALL, gatewayIds: ["few"] })).toMatchObject({ scanned: 3 });
    });

    it("names the calls before and after one of the same gateway, over days", async () => {
      const ids = [NOON - DAY, NOON, NOON + 1].map((createdAt) => under.record({ createdAt }).id);
      under.record({ createdAt: NOON, gatewayId: "other" });
      const [first = "", second = "", third = ""] = ids;
      expect(await under.log.neighbours(GATEWAY, second)).toEqual({ older: first, newer: third });
      expect(await under.log.neighbours(GATEWAY, first)).toMatchObject({ older: null });
      expect(await under.log.neighbours(GATEWAY, third)).toMatchObject({ newer: null });
    });
  });
}
