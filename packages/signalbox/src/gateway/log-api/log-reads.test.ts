import { expect, it } from "vitest";
import type { CallLog } from "../../engines/call-log/index.ts";
import { inTurns } from "./log-reads.ts";

const GATEWAY = { accountId: "a", gatewayId: "g" };
const PAGE = {
  filters: [],
  search: "",
  orderBy: "createdAt",
  direction: "desc",
  offset: 0,
  limit: 20,
} as const;

it("reads a first page while searches take all turns", async () => {
  const started: string[] = [];
  const list: CallLog["list"] = (_, page) => {
    started.push(page.search);
    return page.search === "" ? Promise.resolve({ rows: [], total: 0 }) : new Promise(() => undefined);
  };
  const reads = inTurns({ list } as CallLog);
  for (let i = 1; i <= 9; i++) void reads.list(GATEWAY, { ...PAGE, search: `text ${i}` });
  expect(await reads.list(GATEWAY, PAGE)).toEqual({ rows: [], total: 0 });
  expect(started).toEqual(["text 1", "text 2", ""]);
});
