/**
 * The table of events in an instance's own database (section 2.3 of the contract) and its statements.
 *
 * Times are compared as text, so all must be ISO 8601 in UTC with milliseconds: `1767225600000` would sort before `2026-…` and be pruned. A
 * trigger converts other forms (seconds or milliseconds since the epoch, dates with an offset); a text that is no time becomes the current
 * time, so that nothing is deleted by mistake. `insertEvent` does not need the trigger, so it is created only for an agent that inserts rows of
 * its own: SQLite compiles the trigger with every `INSERT` that it prepares, which takes 50 µs for each instance that wakes (measured; opening
 * the file and preparing the statement take 100 µs without it).
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

/** The events that retention keeps. */
export interface Kept {
  /** The newest so many. */
  readonly events: number;
  /** ISO 8601; none older. */
  readonly earliest: string;
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

/** The schema that new instances start with. */
export const EVENT_SCHEMA = `${TABLE}; ${INDEX};`;

const CREATE_TABLE = Object.freeze([TABLE]);
const CREATE_INDEX = Object.freeze([INDEX]);
const CREATE_TRIGGER = Object.freeze([TRIGGER]);

/** For instances that did not start with the schema. Checks first, so that an instance that wakes for a read does not write. */
export function requireEventTable(sql: SqlTag): void {
  const [found] = sql<{ n: number }>`SELECT count(*) AS n FROM sqlite_schema
    WHERE tbl_name = 'events' AND name IN ('events', 'events_by_timestamp')`;
  if (found?.n === 2) return;
  sql(CREATE_TABLE);
  sql(CREATE_INDEX);
}

/** Runs before each statement of an agent that may insert events; a rollback may have removed the trigger. */
export function requireTimeTrigger(sql: SqlTag): void {
  sql(CREATE_TRIGGER);
}

/** The event's time must be ISO 8601 in UTC with milliseconds. A row with the same id (inserted by the handler, or by a replay) is not changed. */
export function insertEvent(sql: SqlTag, event: WebhookEvent): void {
  // The payload is bound as bytes: a string would be decoded from UTF-8 and encoded again.
  sql`INSERT INTO events (id, type, action, title, description, url, actor, payload, timestamp)
    VALUES (${event.id}, ${event.type}, ${event.action}, ${event.title}, ${event.description}, ${event.url}, ${event.actor},
            CAST(${payloadText(event)} AS TEXT), ${event.timestamp})
    ON CONFLICT (id) DO NOTHING`;
}

export function countEvents(sql: SqlTag): number {
  return sql<{ n: number }>`SELECT count(*) AS n FROM events`[0]?.n ?? 0;
}

/** The newest events first; no more than retention keeps, whether or not the table has been pruned. */
export function selectEvents(sql: SqlTag, kept: Kept, limit: number): EventRow[] {
  return sql<EventRow>`SELECT * FROM events WHERE timestamp >= ${kept.earliest} ORDER BY timestamp DESC, rowid DESC
    LIMIT min(${kept.events}, ${limit})`;
}

/** As `selectEvents`, of one type. */
export function selectEventsByType(sql: SqlTag, kept: Kept, type: string, limit: number): EventRow[] {
  return sql<EventRow>`SELECT * FROM events WHERE type = ${type} AND rowid IN
      (SELECT rowid FROM events WHERE timestamp >= ${kept.earliest} ORDER BY timestamp DESC, rowid DESC LIMIT ${kept.events})
    ORDER BY timestamp DESC, rowid DESC LIMIT ${limit}`;
}

/** Deletes the oldest rows beyond `kept`. Of events with the same time the one stored first is the oldest. */
export function pruneEvents(sql: SqlTag, kept: Kept): void {
  sql`DELETE FROM events WHERE rowid IN
    (SELECT rowid FROM events ORDER BY timestamp, rowid LIMIT max(
      (SELECT count(*) FROM events) - ${kept.events},
      (SELECT count(*) FROM events WHERE timestamp < ${kept.earliest})))`;
}

const OPENING_BRACE = 0x7b;
const OPENING_BRACKET = 0x5b;

/** The bytes of the body if it is JSON: serialising the payload again would take time and could lose digits of large numbers. */
function payloadText({ rawBody, payload }: WebhookEvent): string | Uint8Array {
  const first = rawBody[0];
  return first === OPENING_BRACE || first === OPENING_BRACKET ? rawBody : JSON.stringify(payload);
}
