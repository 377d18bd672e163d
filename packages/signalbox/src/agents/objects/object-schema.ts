/** Tables that the database of an object has beside those of every instance: key-value storage, alarm, identity, planned restoration, facets. */
export const OBJECT_SCHEMA = `
  CREATE TABLE _signalbox_kv (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
  CREATE TABLE _signalbox_object (
    id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT, alarm_at INTEGER, alarm_retries INTEGER NOT NULL DEFAULT 0,
    alarm_running INTEGER NOT NULL DEFAULT 0,
    restoration INTEGER);
  CREATE TABLE _signalbox_facet (name TEXT PRIMARY KEY) WITHOUT ROWID;
  INSERT INTO _signalbox_object (id) VALUES (1);`;
