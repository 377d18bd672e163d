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
