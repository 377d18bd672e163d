/**
 * The parts of a backup that are in a data folder: the database of the control plane, the journal of spent amounts, secrets, the call log and the
 * instances.
 *
 * The order matters, because parts are copied one after the other while the server runs:
 * 1. The database comes first. A late delivery is deleted from it when the instance has handled the delivery: copied later than the instance, the
 *    delivery would be in neither. Copied earlier, it is in both, and the instance's ledger recognises it.
 * 2. The journal of spent amounts comes after the database, which says how far the journal is contained in it.
 * 3. The database says too little about instances that changed after it was copied. The restore reads them again from the instances
 *    (`restored-catalog.ts`).
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readAhead } from "../../core/read-ahead.ts";
import { type ArchivePart, bytesPart, temporaryFilePart } from "../../engines/archive/index.ts";
import type { LocalInstanceStore } from "../../engines/instance-store/index.ts";
import { copySqliteFile } from "../../engines/sqlite-file/index.ts";
import type { Staging } from "./staging.ts";

export interface FolderSource {
  readonly folder: string;
  /** False with PostgreSQL: the folder has neither the database nor the call log. */
  readonly hasDatabase: boolean;
  /** Null if the instances are in PostgreSQL. */
  readonly instances: LocalInstanceStore | null;
}

export interface FolderOptions {
  readonly callLogs: boolean;
  readonly secrets: boolean;
}

export interface FolderCounts {
  instances: number;
  call_log_days: number;
  secrets: string[];
}

export const DATABASE_FILE = "signalbox.db";
const SECRET_FILES = ["root-token", "encryption-key", "master-key", "webhook-secret"];
const JOURNAL_FOLDER = "limits";
const LOG_FOLDER = "logs";
const LOG_FILE = /^calls-\d{4}-\d{2}-\d{2}\.db$/;
/** A master key is replaced in three steps; copies before and after a step may not fit together. */
const MAX_ATTEMPTS = 5;

/** Most instances are idle and small. Their files are read a few ahead, because each takes several calls of the operating system that wait for each other. */
const SMALL_BYTES = 256 * 1024;
const AHEAD = 16;

/** What a restore accepts below a data folder. */
export const FOLDER_ENTRY =
  /^(?:signalbox\.db|root-token|encryption-key|master-key|webhook-secret|limits\/spend-\d{12}\.journal|logs\/calls-\d{4}-\d{2}-\d{2}\.db|agents\/[0-9a-f]{2}\/[0-9a-f]{40}\.db)$/;

export async function* folderParts(
  source: FolderSource,
  options: FolderOptions,
  staging: Staging,
  counts: FolderCounts,
): AsyncGenerator<ArchivePart> {
  const { database, secrets } = await copyDatabase(source, staging);
  if (database !== null) yield await temporaryFilePart(DATABASE_FILE, database);
  for (const name of filesOf(join(source.folder, JOURNAL_FOLDER))) {
    const part = readIfThere(source.folder, `${JOURNAL_FOLDER}/${name}`);
    if (part !== null && FOLDER_ENTRY.test(part.name)) yield part;
  }
  if (options.secrets)
    for (const part of secrets) {
      counts.secrets.push(part.name);
      yield part;
    }
  if (options.callLogs && source.hasDatabase)
    for (const name of filesOf(join(source.folder, LOG_FOLDER)).filter((file) => LOG_FILE.test(file))) {
      const copy = staging.newFile();
      // A day may be deleted meanwhile.
      if (!(await copySqliteFile(join(source.folder, LOG_FOLDER, name), copy))) continue;
      counts.call_log_days += 1;
      yield await temporaryFilePart(`${LOG_FOLDER}/${name}`, copy);
    }
  yield* instanceParts(source.instances, staging, counts);
}

async function* instanceParts(
  instances: LocalInstanceStore | null,
  staging: Staging,
  counts: FolderCounts,
): AsyncGenerator<ArchivePart> {
  if (instances === null) return;
  const readSmall = async (id: string) => ({ id, bytes: await instances.readClosed(id, SMALL_BYTES) });
  for await (const { id, bytes } of readAhead(instances.listIds(), AHEAD, readSmall)) {
    const name = `agents/${id.slice(0, 2)}/${id}.db`;
    if (bytes !== null) {
      counts.instances += 1;
      yield bytesPart(name, bytes);
      continue;
    }
    const copy = staging.newFile();
    if (!(await instances.copy(id, copy))) continue;
    counts.instances += 1;
    yield await temporaryFilePart(name, copy);
  }
}

/** The keys are those that decrypt the database: they were the same before and after the copy. */
async function copyDatabase(
  { folder, hasDatabase }: FolderSource,
  staging: Staging,
): Promise<{ database: string | null; secrets: ArchivePart[] }> {
  for (let attempt = 1; ; attempt++) {
    const before = readSecrets(folder);
    const copy = staging.newFile();
    const database = hasDatabase && (await copySqliteFile(join(folder, DATABASE_FILE), copy)) ? copy : null;
    const secrets = readSecrets(folder);
    if (isSame(before, secrets)) return { database, secrets: secrets.map(({ part }) => part) };
    if (attempt === MAX_ATTEMPTS) throw new Error("the secrets of the data folder change all the time");
  }
}

interface SecretPart {
  readonly text: string;
  readonly part: ArchivePart;
}

function readSecrets(folder: string): SecretPart[] {
  return SECRET_FILES.filter((name) => existsSync(join(folder, name))).map((name) => {
    const bytes = readFileSync(join(folder, name));
    return { text: `${name}\n${bytes.toString("latin1")}`, part: bytesPart(name, bytes) };
  });
}

function isSame(a: readonly SecretPart[], b: readonly SecretPart[]): boolean {
  return a.length === b.length && a.every(({ text }, i) => text === b[i]?.text);
}

function filesOf(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).toSorted() : [];
}

/** A file of the journal is deleted when the database has its amounts. */
function readIfThere(folder: string, name: string): ArchivePart | null {
  try {
    return bytesPart(name, readFileSync(join(folder, name)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
