/** A follower on SQLite: what is stored is seen at once. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { DAY, NOON, openSqliteStorage, TestLog } from "./call-log-fixture.ts";

let under: TestLog;
beforeEach(async () => {
  under = await TestLog.open(openSqliteStorage);
});
afterEach(() => under.remove());

const byText = (a: string, b: string) => (a < b ? -1 : 1);
const body = (text: string) => Buffer.from(JSON.stringify({ messages: [{ role: "user", content: text }] }));

it("follows what is stored, also a slow call that is added to the file of the day before", async () => {
  under.record({ createdAt: NOON, requestBody: body("before") });
  let { position } = await under.log.storedAfter(null, 10);
  const next = async (limit = 10) => {
    const stored = await under.log.storedAfter(position, limit);
    ({ position } = stored);
    return stored.calls.map(({ request }) => Buffer.from(request?.bytes ?? []).toString());
  };
  expect(await next()).toEqual([]);
  under.record({ createdAt: NOON, requestBody: body("one") });
  under.record({ createdAt: NOON - DAY, requestBody: body("slow") });
  under.record({ createdAt: NOON, requestBody: body("foreign"), accountId: "foreign" });
  const found = [...(await next(2)), ...(await next(2)), ...(await next(2))];
  expect(found.map((text) => /"content":"(\w+)"/.exec(text)?.[1] ?? "").sort(byText)).toEqual([
    "foreign",
    "one",
    "slow",
  ]);
});
