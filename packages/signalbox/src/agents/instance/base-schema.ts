/** Tables of the runtime that every database of an instance has. */
import type { BaseSchema } from "../../engines/instance-store/index.ts";

/**
 * Names that begin with one of these and an underscore are not for programs. The tables of the runtime have the first one; SQL of agents cannot write to them. The second one is reserved on
 * the originals.
 */
export const RESERVED_NAMES: readonly string[] = ["_signalbox", "_cf"];

/** The tables of queue, dead letters and schedules are created with the first row in one of them. */
export const BASE_SCHEMA: BaseSchema = {
  version: 1,
  create: `
    CREATE TABLE _signalbox_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE _signalbox_state (id INTEGER PRIMARY KEY CHECK (id = 1), value TEXT NOT NULL);
    -- Deliveries seen, by period.
    CREATE TABLE _signalbox_delivery (period INTEGER NOT NULL, id TEXT NOT NULL, PRIMARY KEY (period, id)) WITHOUT ROWID;`,
  upgrade: (version) => {
    throw new Error(`no version ${version} of the base tables was ever released`);
  },
};
