/** Settings of the server on which the durability of acknowledged writes depends. */
import type { Client, Pool } from "pg";

export interface ServerSetting {
  readonly name: string;
  readonly value: string;
  /** False: the server may lose or damage acknowledged writes. */
  readonly isSafe: boolean;
  /** What the value means, if there is something to know. */
  readonly note: string | null;
}

interface Rule {
  readonly name: string;
  isSafe(value: string): boolean;
  note(value: string): string | null;
}

const RULES: readonly Rule[] = [
  {
    name: "fsync",
    isSafe: isOn,
    note: (value) =>
      isOn(value)
        ? null
        : "a crash of the server's machine loses acknowledged writes, or damages the database",
  },
  {
    name: "full_page_writes",
    isSafe: isOn,
    note: (value) => (isOn(value) ? null : "a crash of the server's machine may damage the database"),
  },
  {
    // Signalbox asks for `on` in each session; a connection pooler may drop that.
    name: "synchronous_commit",
    isSafe: (value) => value === "on" || value === "remote_apply",
    note: (value) =>
      value === "on" || value === "remote_apply" ? null : "a crash or a failover loses acknowledged writes",
  },
  {
    name: "synchronous_standby_names",
    isSafe: () => true,
    note: (value) =>
      value === "" ? "no synchronous standby: a failover may lose the last acknowledged writes" : null,
  },
];

export async function readDurability(pool: Pool | Client): Promise<ServerSetting[]> {
  const { rows } = await pool.query<{ name: string; setting: string }>(
    "SELECT name, setting FROM pg_settings WHERE name = ANY ($1::text[])",
    [RULES.map(({ name }) => name)],
  );
  return RULES.flatMap(({ name, isSafe, note }) => {
    const value = rows.find((row) => row.name === name)?.setting;
    return value === undefined ? [] : [{ name, value, isSafe: isSafe(value), note: note(value) }];
  });
}

function isOn(value: string): boolean {
  return value === "on";
}
