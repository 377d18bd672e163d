/** Retention of the event table, against a plain model. */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  countEvents,
  EVENT_SCHEMA,
  insertEvent,
  type Kept,
  pruneEvents,
  selectEvents,
  selectEventsByType,
  type SqlTag,
} from "./event-table.ts";

function openTable(): SqlTag {
  const database = new DatabaseSync(":memory:");
  database.exec(EVENT_SCHEMA);
  return <Row>(parts: readonly string[], ...values: readonly unknown[]) =>
    database.prepare(parts.join("?")).all(...(values as SQLInputValue[])) as Row[];
}

const timestampOf = (second: number) => new Date(1_800_000_000_000 + second * 1000).toISOString();

function insert(sql: SqlTag, id: string, type: string, second: number): void {
  insertEvent(sql, {
    id,
    source: "generic",
    type,
    action: null,
    timestamp: timestampOf(second),
    payload: {},
    headers: {},
    rawBody: Buffer.from("{}"),
    title: type,
    description: null,
    url: null,
    actor: null,
  });
}

const event = fc.record({ type: fc.constantFrom("a", "b"), second: fc.integer({ min: 0, max: 5 }) });

it("reads show the newest events that are kept, before and after the table is pruned", () => {
  fc.assert(
    fc.property(
      fc.array(event, { maxLength: 20 }),
      fc.integer({ min: 0, max: 8 }),
      fc.integer({ min: -1, max: 6 }),
      fc.integer({ min: 0, max: 10 }),
      (events, keep, earliest, limit) => {
        const sql = openTable();
        const kept: Kept = { events: keep, earliest: timestampOf(earliest) };
        for (const [i, { type, second }] of events.entries()) insert(sql, `${i}`, type, second);
        // Newest first; of events with the same time the one stored last.
        const expected = events
          .map(({ type, second }, i) => ({ id: `${i}`, type, second, i }))
          .filter(({ second }) => second >= earliest)
          .sort((a, b) => b.second - a.second || b.i - a.i)
          .slice(0, keep);
        const idsOf = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);
        const expectReads = () => {
          expect(idsOf(selectEvents(sql, kept, limit))).toEqual(idsOf(expected.slice(0, limit)));
          expect(idsOf(selectEventsByType(sql, kept, "a", limit))).toEqual(
            idsOf(expected.filter(({ type }) => type === "a").slice(0, limit)),
          );
        };
        expectReads();
        pruneEvents(sql, kept);
        expectReads();
        expect(countEvents(sql)).toBe(expected.length);
      },
    ),
  );
});

it("an event whose id is stored already does not replace the first one", () => {
  const sql = openTable();
  insert(sql, "1", "a", 0);
  insert(sql, "1", "b", 1);
  expect(selectEvents(sql, { events: 10, earliest: "" }, 10)).toMatchObject([{ id: "1", type: "a" }]);
});
