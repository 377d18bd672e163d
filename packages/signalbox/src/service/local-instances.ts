/** The instances in the data folder of a process that was alone: reads their files, which no process has open. */
import { readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { BASE_SCHEMA, databaseName, type InstanceRef, RESERVED_NAMES } from "../agents/index.ts";
import { rawSql, sql } from "../core/sql.ts";
import { openInstanceStore } from "../engines/instance-store/index.ts";
import { SqliteConnection } from "../engines/sqlite-file/index.ts";

export interface LocalInstance {
  readonly path: string;
  readonly ref: InstanceRef;
  readonly createdAt: number;
  readonly lastActiveAt: number;
  /** When its queue, its schedules or its alarm have work next; null for never. It may be in the past. */
  readonly nextDueAt: number | null;
}

/** Copies what a crash left in the journal or in WAL files into the databases. */
export async function recoverLocalInstances(folder: string): Promise<void> {
  const fail = (error: Error): never => {
    throw error;
  };
  const store = await openInstanceStore("journal", {
    folder,
    baseSchema: BASE_SCHEMA,
    reservedNames: RESERVED_NAMES,
    segmentBytes: 64 * 1024,
    onFailure: fail,
    onStall: fail,
  });
  await store.close();
}

/** The files of the instances. */
export function listLocalInstances(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".db"))
    .toSorted()
    .map((name) => join(folder, name));
}

/** Throws for a damaged file, and for one that is not the file of the instance it names. */
export function readLocalInstance(path: string, idOf: (name: string) => string): LocalInstance {
  const url = pathToFileURL(path);
  // The file has no WAL, and none must be created.
  url.searchParams.set("immutable", "1");
  const connection = SqliteConnection.open(url, { readOnly: true, takesQuotedText: true });
  try {
    const [check] = connection.all<{ integrity_check: string }>(rawSql("PRAGMA integrity_check(1)"));
    if (check?.integrity_check !== "ok") throw new Error(`damaged: ${check?.integrity_check ?? "no answer"}`);
    const rows = connection.all<{ key: string; value: string }>(sql`SELECT key, value FROM _signalbox_meta`);
    const meta = new Map(rows.map(({ key, value }) => [key, value]));
    const ref = {
      account: meta.get("account") ?? "default",
      agent: meta.get("agent") ?? "",
      name: meta.get("name") ?? "",
    };
    if (basename(path, ".db") !== idOf(databaseName(ref)))
      throw new Error(`the file is not that of the instance ${ref.agent}/${ref.name}, which it names`);
    const { mtimeMs } = statSync(path);
    return {
      path,
      ref,
      createdAt: Number(meta.get("created_at") ?? mtimeMs),
      lastActiveAt: Math.round(mtimeMs),
      nextDueAt: nextDueAt(connection),
    };
  } finally {
    connection.close();
  }
}

const WORK = new Map([
  ["_signalbox_queue", rawSql("SELECT min(next_at) AS at FROM _signalbox_queue")],
  ["_signalbox_schedule", rawSql("SELECT min(next_at) AS at FROM _signalbox_schedule")],
  ["_signalbox_object", rawSql("SELECT min(alarm_at) AS at FROM _signalbox_object")],
]);
const TABLES = rawSql("SELECT name FROM sqlite_schema WHERE type = 'table'");

function nextDueAt(connection: SqliteConnection): number | null {
  const times = connection.all<{ name: string }>(TABLES).flatMap(({ name }) => {
    const query = WORK.get(name);
    return query === undefined ? [] : connection.all<{ at: number | null }>(query).map(({ at }) => at);
  });
  const known = times.filter((at) => at !== null);
  return known.length === 0 ? null : Math.min(...known);
}
