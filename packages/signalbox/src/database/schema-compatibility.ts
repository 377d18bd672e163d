/**
 * The table that says which versions can use the database after a migration: those that know migration `needs`. It is separate from
 * `schema_migrations`, whose columns earlier versions rely on. Nodes read it with each heartbeat, so it exists before the first migration.
 */
export const CREATE_COMPATIBILITY =
  "CREATE TABLE IF NOT EXISTS schema_compatibility (id BIGINT PRIMARY KEY, needs BIGINT NOT NULL)";
