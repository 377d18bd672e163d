/**
 * The table of events inside an instance's own database (section 2.3 of the contract) and its statements.
 *
 * A trigger rewrites every time that is not ISO 8601 in UTC with milliseconds, whoever wrote the row: seconds or milliseconds since the
 * epoch, or a date with an offset. Compared as they stand, `1767225600000` would sort before `2026-…` and be thrown away as ancient.
 * What is no time at all counts as now, so that nothing is deleted by mistake. `insertEvent` needs no trigger, since events have their time in
 * that form, so the trigger is made only for an agent that writes rows of its own: a table without it is cheaper to open and to write to.
 */
import type { SqlParameter, WebhookEvent } from "../agents/index.ts";

export interface EventRow {
  readonly id: string;
  readonly type: string;
  readonly action: string | null;
  readonly title: string;
  readonly description: string | null;
  readonly url: string | null;
  readonly actor: string | null;
  /** Serialised JSON. */
  readonly payload: string | null;
  readonly timestamp: string;
}

export type SqlTag = <Row>(parts: readonly string[], ...values: SqlParameter[]) => Row[];

export const EVENT_TABLE = "events";

const TABLE = `CREATE TABLE IF NOT EXISTS events (
  id TEXT PRIMARY KEY,
  type TEXT NOT NULL,
  action TEXT,
  title TEXT NOT NULL,
  description TEXT,
  url TEXT,
  actor TEXT,
  payload TEXT,
  timestamp TEXT NOT NULL
)`;
const INDEX = "CREATE INDEX IF NOT EXISTS events_by_timestamp ON events (timestamp DESC)";
const TRIGGER = `CREATE TRIGGER IF NOT EXISTS events_have_one_form_of_time AFTER INSERT ON events
  WHEN NEW.timestamp NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9]Z'
  BEGIN
    UPDATE events SET timestamp = coalesce(
      CASE
        WHEN NEW.timestamp NOT GLOB '*[^0-9.]*' AND CAST(NEW.timestamp AS REAL) >= 100000000000
          THEN strftime('%Y-%m-%dT%H:%M:%fZ', CAST(NEW.timestamp AS REAL) / 1000, 'unixepoch')
        WHEN NEW.timestamp NOT GLOB '*[^0-9.]*'
          THEN strftime('%Y-%m-%dT%H:%M:%fZ', CAST(NEW.timestamp AS REAL), 'unixepoch')
        ELSE strftime('%Y-%m-%dT%H:%M:%fZ', NEW.timestamp)
      END,
      strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
    WHERE rowid = NEW.rowid;
  END`;

/** What new instances start with. */
export const EVENT_SCHEMA = `${TABLE}; ${INDEX};`;

const CREATE_TABLE = Object.freeze([TABLE]);
const CREATE_INDEX = Object.freeze([INDEX]);
const CREATE_TRIGGER = Object.freeze([TRIGGER]);

/** For instances that have not started with the schema. Looks first: an instance that wakes to be read need not write. */
export function requireEventTable(sql: SqlTag): void {
  const [found] = sql<{ n: number }>`SELECT count(*) AS n FROM sqlite_schema
    WHERE tbl_name = 'events' AND name IN ('events', 'events_by_timestamp')`;
  if (found?.n === 2) return;
  sql(CREATE_TABLE);
  sql(CREATE_INDEX);
}

/** Before each statement that may write rows of its own: SQLite knows best whether the trigger is there, also after a rollback. */
export function requireOneFormOfTime(sql: SqlTag): void {
  sql(CREATE_TRIGGER);
}

/**
 * Its time must be ISO 8601 in UTC with milliseconds: nothing rewrites it.
 *
 * An event whose id is there already (a handler's own insert, a replay of the same) is left as it is.
 */
export function insertEvent(sql: SqlTag, event: WebhookEvent): void {
  // SQLite takes the bytes as the text they are; a string would be made from them only to be turned into the same bytes again.
  sql`INSERT INTO events (id, type, action, title, description, url, actor, payload, timestamp)
    VALUES (${event.id}, ${event.type}, ${event.action}, ${event.title}, ${event.description}, ${event.url}, ${event.actor},
            CAST(${payloadText(event)} AS TEXT), ${event.timestamp})
    ON CONFLICT (id) DO NOTHING`;
}

/** How many events are kept. */
export function countEvents(sql: SqlTag): number {
  return sql<{ n: number }>`SELECT count(*) AS n FROM events`[0]?.n ?? 0;
}

interface Ends {
  readonly count: number;
  readonly oldest: number;
  readonly timestamp: string;
}

/** What a look at the table told. */
export interface Room {
  /** So many more events fit. */
  readonly events: number;
  /** There are exactly as many as are kept, whether or not the transaction of the look is rolled back. */
  readonly isFull: boolean;
  /** Time of an event that was the oldest; those that are left are no older. */
  readonly oldest: string;
}

/**
 * Called after `insertEvent`. Keeps the newest `keep` events, and none before `earliest`. One look at both ends of the table tells what is to
 * be done, which is nothing or, with a full table, to delete the one oldest row. Of events of one millisecond the one stored first is the oldest.
 * Returns the room there is, or null when it would take another look to know.
 */
export function pruneEvents(sql: SqlTag, keep: number, earliest: string): Room | null {
  const [found] =
    sql<Ends>`SELECT (SELECT count(*) FROM events) AS count, rowid AS oldest, timestamp FROM events
    WHERE timestamp = (SELECT min(timestamp) FROM events) ORDER BY rowid LIMIT 1`;
  if (found === undefined) return null;
  const { count, oldest, timestamp } = found;
  if (timestamp >= earliest && count <= keep) {
    return { events: keep - count, isFull: false, oldest: timestamp };
  }
  if (timestamp >= earliest && count === keep + 1) {
    sql`DELETE FROM events WHERE rowid = ${oldest}`;
    return { events: 0, isFull: true, oldest: timestamp };
  }
  if (timestamp < earliest) sql`DELETE FROM events WHERE timestamp < ${earliest}`;
  if (count > keep) pruneByCount(sql, keep);
  return null;
}

/** Makes room for the event that `insertEvent` has just stored in a full table, if it did store it. */
export function replaceOldest(sql: SqlTag): void {
  sql`DELETE FROM events WHERE changes() = 1 AND rowid =
    (SELECT rowid FROM events WHERE timestamp = (SELECT min(timestamp) FROM events) ORDER BY rowid LIMIT 1)`;
}

function pruneByCount(sql: SqlTag, keep: number): void {
  sql`DELETE FROM events WHERE rowid IN
    (SELECT rowid FROM events ORDER BY timestamp, rowid LIMIT max(0, (SELECT count(*) FROM events) - ${keep}))`;
}

const OPENING_BRACE = 0x7b;
const OPENING_BRACKET = 0x5b;

/** The body's own bytes where it is JSON: writing it again would cost time and could lose digits of large numbers. */
function payloadText({ rawBody, payload }: WebhookEvent): string | Uint8Array {
  const first = rawBody[0];
  return first === OPENING_BRACE || first === OPENING_BRACKET ? rawBody : JSON.stringify(payload);
}
