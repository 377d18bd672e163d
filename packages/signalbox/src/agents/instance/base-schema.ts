/** Tables of the runtime that every database of an instance has. */
import type { BaseSchema } from "../../engines/instance-store/index.ts";

/** Tables of the runtime begin with this name and an underscore. SQL of agents cannot write to them. */
export const RESERVED_NAME = "_signalbox";

/** Deliveries seen, by period. */
const DELIVERY_TABLE = `CREATE TABLE _signalbox_delivery (
  period INTEGER NOT NULL, id TEXT NOT NULL, PRIMARY KEY (period, id)) WITHOUT ROWID;`;

/**
 * Version 2: the tables of queue, dead letters and schedules are created with the first row in one of them.
 * Version 3: deliveries are kept by period.
 */
export const BASE_SCHEMA: BaseSchema = {
  version: 3,
  create: `
    CREATE TABLE _signalbox_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE _signalbox_state (id INTEGER PRIMARY KEY CHECK (id = 1), value TEXT NOT NULL);
    ${DELIVERY_TABLE}`,
  // From version 1 or 2. A period has thirty days.
  upgrade: () => `
    ALTER TABLE _signalbox_delivery RENAME TO _signalbox_delivery_2;
    ${DELIVERY_TABLE}
    INSERT INTO _signalbox_delivery (period, id) SELECT at / 2592000000, id FROM _signalbox_delivery_2;
    DROP TABLE _signalbox_delivery_2;`,
};
