/**
 * Brings the catalog of instances in line with the files of a backup, which are newer than the database: instances that were created meanwhile are
 * added, those that were destroyed are removed, and each is looked at when its work is due: at the start if that time has passed. To look at all that have any
 * work would keep the event loop busy for minutes after the start, with a hundred thousand of them.
 */
import { hash } from "node:crypto";
import { existsSync } from "node:fs";
import { sql } from "../../core/sql.ts";
import type { Database } from "../../database/database.ts";
import { databaseName } from "../../agents/index.ts";
import { listLocalInstances, readLocalInstance } from "../local-instances.ts";

/** Hexadecimal digits of an instance's file name. */
const ID_DIGITS = 40;
/** Rows that one transaction writes. */
const BATCH = 1000;

export interface DamagedInstance {
  readonly file: string;
  readonly reason: string;
}

/** Checks each file; a damaged one, as it was backed up, is left as it is and returned. */
export async function restoreCatalog(
  database: Database,
  folder: string,
  now: number,
): Promise<DamagedInstance[]> {
  const damaged: DamagedInstance[] = [];
  const files = existsSync(folder) ? listLocalInstances(folder) : [];
  const known = new Set(files.map((file) => file.slice(-(ID_DIGITS + ".db".length), -".db".length)));
  const rows = await database.all<{ account_id: string; agent: string; name: string }>(
    sql`SELECT account_id, agent, name FROM agent_instance`,
  );
  for (const batch of batches(rows.filter((row) => !known.has(idOf(nameOf(row))))))
    await database.transaction(async (tx) => {
      for (const { account_id, agent, name } of batch)
        await tx.run(
          sql`DELETE FROM agent_instance WHERE account_id = ${account_id} AND agent = ${agent} AND name = ${name}`,
        );
    });
  for (const batch of batches(files))
    await database.transaction(async (tx) => {
      for (const file of batch) {
        const instance = read(file, damaged);
        if (instance === null) continue;
        const { ref, createdAt, nextDueAt } = instance;
        const dueAt = nextDueAt === null ? null : Math.max(nextDueAt, now);
        await tx.run(
          sql`INSERT INTO agent_instance (account_id, agent, name, created_at, last_active_at, next_due_at)
              VALUES (${ref.account}, ${ref.agent}, ${ref.name}, ${createdAt}, ${now}, ${dueAt})
              ON CONFLICT (account_id, agent, name) DO UPDATE SET next_due_at = excluded.next_due_at`,
        );
      }
    });
  return damaged;
}

function read(file: string, damaged: DamagedInstance[]): ReturnType<typeof readLocalInstance> | null {
  try {
    return readLocalInstance(file, idOf);
  } catch (error) {
    damaged.push({ file, reason: error instanceof Error ? error.message : String(error) });
    return null;
  }
}

function nameOf({ account_id, agent, name }: { account_id: string; agent: string; name: string }): string {
  return databaseName({ account: account_id, agent, name });
}

function idOf(name: string): string {
  return hash("sha256", name, "hex").slice(0, ID_DIGITS);
}

function* batches<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let i = 0; i < all.length; i += BATCH) yield all.slice(i, i + BATCH);
}
