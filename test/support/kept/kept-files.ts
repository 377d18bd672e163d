/** The files of a kept version: `<engine>.json` with what it has answered, `<engine>.tar.gz` with its data folder or its backup. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { ENGINES, type Engine, KEPT } from "./kept-node.ts";
import type { AnsweredRead } from "./reads.ts";

export interface KeptRecord {
  readonly version: string;
  /** The time at which the data were kept. */
  readonly at: number;
  readonly token: string;
  readonly reads: readonly AnsweredRead[];
}

export interface KeptVersion {
  readonly version: string;
  readonly engine: Engine;
}

export function keptVersions(): KeptVersion[] {
  return readdirSync(KEPT).flatMap((version) => ENGINES.map((engine) => ({ version, engine })));
}

export function readRecord({ version, engine }: KeptVersion): KeptRecord {
  return JSON.parse(readFileSync(join(KEPT, version, `${engine}.json`), "utf8")) as KeptRecord;
}

/** SQLite: a data folder; PostgreSQL: the tar archive of a backup. */
export function readArchive({ version, engine }: KeptVersion): Buffer {
  return gunzipSync(readFileSync(join(KEPT, version, `${engine}.tar.gz`)));
}

/** Returns the size of the archive. */
export function keep({ version, engine }: KeptVersion, record: KeptRecord, tar: Buffer): number {
  const folder = join(KEPT, version);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${engine}.json`), `${JSON.stringify(record, null, 1)}\n`);
  const packed = gzipSync(tar, { level: 9 });
  writeFileSync(join(folder, `${engine}.tar.gz`), packed);
  return packed.length;
}

export function packFolder(folder: string): Buffer {
  return execFileSync("tar", ["-C", folder, "-cf", "-", "."], { maxBuffer: 2 ** 30 });
}

export function unpackFolder(tar: Buffer, folder: string): void {
  mkdirSync(folder, { recursive: true });
  execFileSync("tar", ["-C", folder, "-xf", "-"], { input: tar });
}
