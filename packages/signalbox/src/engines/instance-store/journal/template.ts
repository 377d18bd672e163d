/**
 * The files new instances start as: the runtime's tables and what the agent's class adds to them, empty, in WAL mode. Copying bytes takes a
 * quarter of the time that creating the tables takes. They are made once per process and schema, in memory.
 *
 * `PRAGMA user_version` numbers the runtime's schema; an older instance is brought forward when it is opened.
 */
import { hash } from "node:crypto";
import { SqliteConnection } from "../../sqlite-file/index.ts";
import { ID_BYTES, NO_ID, type Template } from "./record.ts";

/**
 * 2: the tables of queue, dead letters and schedules come with the first row in one of them.
 * 3: deliveries are kept by period.
 */
const SCHEMA_VERSION = 3;

/**
 * Small pages: an instance is a few rows, and a page is what a change costs in the log and what each open database caches. Against 4 KiB
 * an empty instance takes 10 instead of 40 KiB on disk and some 40 KiB less memory; very large tables are a level deeper.
 */
const PAGE_BYTES = 1024;

/** Deliveries seen. */
const DELIVERY_TABLE = `CREATE TABLE _signalbox_delivery (
  period INTEGER NOT NULL, id TEXT NOT NULL, PRIMARY KEY (period, id)) WITHOUT ROWID;`;

const SCHEMA = `
  CREATE TABLE _signalbox_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE _signalbox_state (id INTEGER PRIMARY KEY CHECK (id = 1), value TEXT NOT NULL);
  ${DELIVERY_TABLE}
  PRAGMA user_version = ${SCHEMA_VERSION};
`;

/** From 1 or 2. Periods are of thirty days. */
const TO_3 = `
  BEGIN IMMEDIATE;
  ALTER TABLE _signalbox_delivery RENAME TO _signalbox_delivery_2;
  ${DELIVERY_TABLE}
  INSERT INTO _signalbox_delivery (period, id) SELECT at / 2592000000, id FROM _signalbox_delivery_2;
  DROP TABLE _signalbox_delivery_2;
  PRAGMA user_version = 3;
  COMMIT;
`;

/** By the schema that a class adds; there are as many as there are such classes. */
const templates = new Map<string, Template>();

/** Throws when SQLite does not take the schema. */
export function instanceTemplate(ownSchema = ""): Template {
  let template = templates.get(ownSchema);
  if (template === undefined) {
    const bytes = build(ownSchema);
    const id = ownSchema === "" ? NO_ID : hash("sha256", bytes, "buffer").subarray(0, ID_BYTES);
    template = { id, bytes };
    templates.set(ownSchema, template);
  }
  return template;
}

function build(ownSchema: string): Uint8Array {
  const connection = SqliteConnection.open(":memory:");
  try {
    connection.exec(`PRAGMA page_size = ${PAGE_BYTES}; ${SCHEMA} ${ownSchema}`);
    const bytes = new Uint8Array(connection.serialize());
    // Bytes 18 and 19 of the header are the file format's versions; 2 means WAL (SQLite file format, section 1.3.3).
    bytes[18] = 2;
    bytes[19] = 2;
    return bytes;
  } finally {
    connection.close();
  }
}

/** Brings an older file forward; throws when it was written by a version that knows more than this one. */
export function requireSchema(connection: SqliteConnection): void {
  const row = connection.prepare("PRAGMA user_version").all([])[0];
  const version = Number(row?.["user_version"] ?? 0);
  if (version > SCHEMA_VERSION) {
    throw new Error(
      `the instance's database has schema ${version}, this version knows up to ${SCHEMA_VERSION}`,
    );
  }
  if (version < 3) connection.exec(TO_3);
}
