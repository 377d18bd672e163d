/** Disks of tests about instances' files: data folders that processes open, leave behind and find again. */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import type { InstanceDatabase } from "./instance-store.ts";
import { rawSql, sql } from "../../core/sql.ts";
import { InstanceFiles } from "./journal/journal-store.ts";

const ROOMY = 2 ** 30;

export interface InstanceDisks {
  /** Of all disks of the running test. */
  readonly folder: string;
  /** A process's files; what it settles in the background it has settled when the test ends. */
  open(disk: string, segmentBytes?: number, onStall?: (error: Error) => void): InstanceFiles;
  /** What a process that is killed now leaves behind. */
  copy(disk: string, to: string): void;
  journalOf(disk: string): string;
}

/** Fresh ones for each test of the file. */
export function useInstanceDisks(): InstanceDisks {
  let folder = "";
  let opened: InstanceFiles[] = [];
  beforeEach(() => {
    opened = [];
    folder = mkdtempSync(join(tmpdir(), "signalbox-disks-"));
  });
  afterEach(async () => {
    for (const files of opened) await files.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    get folder() {
      return folder;
    },
    open(disk, segmentBytes = ROOMY, onStall = fail) {
      const files = new InstanceFiles(join(folder, disk, "agents"), {
        segmentBytes,
        onFailure: fail,
        onStall,
      });
      opened.push(files);
      return files;
    },
    copy: (disk, to) => cpSync(join(folder, disk), join(folder, to), { recursive: true }),
    journalOf: (disk) => join(folder, disk, "agents/journal"),
  };
}

/** Commits a row and waits for the sync. */
export async function writeRow(database: InstanceDatabase, value: number): Promise<void> {
  commitRow(database, value);
  await database.sync();
}

export function commitRow(database: InstanceDatabase, value: number): void {
  database.begin();
  database.run(rawSql("CREATE TABLE IF NOT EXISTS t (x INTEGER)"));
  database.run(sql`INSERT INTO t VALUES (${value})`);
  database.commit();
}

/** Those written so, in order. */
export function readRows(database: InstanceDatabase): number[] {
  return database.all<{ x: number }>(rawSql("SELECT x FROM t ORDER BY rowid")).map(({ x }) => x);
}

function fail(error: Error): never {
  throw error;
}
