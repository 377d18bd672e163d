/**
 * Compiles the C programs in `bench/load` into a temporary folder, once per run. They need epoll, so Linux, and a C compiler; without
 * either, the benchmarks use their substitutes in TypeScript, which cost several times more CPU per request.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const COMPILER = process.env["CC"] ?? "cc";
const SOURCES = join(import.meta.dirname, "../load");

interface NativePrograms {
  readonly load: string;
  readonly provider: string;
}

let folder: string | undefined;
let programs: NativePrograms | null | undefined;

export function nativePrograms(): NativePrograms | null {
  if (programs === undefined) programs = compileAll();
  return programs;
}

/** For the report: which load generator made the requests; null if none has been used. */
export function usedLoadGenerator(): string | null {
  if (programs === undefined) return null;
  return programs === null ? "Node.js (no C compiler)" : "C (bench/load/load.c)";
}

/** Writes buffers in the format that the programs read (`bench/load/records.h`); returns the path. */
export function writeRecords(name: string, records: readonly Buffer[]): string {
  const parts = records.flatMap((record) => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(record.length);
    return [length, record];
  });
  const path = join(temporaryFolder(), name);
  writeFileSync(path, Buffer.concat(parts));
  return path;
}

function compileAll(): NativePrograms | null {
  if (process.platform !== "linux") return null;
  const load = compile("load");
  const provider = compile("provider");
  return load === null || provider === null ? null : { load, provider };
}

function compile(name: string): string | null {
  const program = join(temporaryFolder(), name);
  const { status } = spawnSync(COMPILER, ["-O2", "-o", program, join(SOURCES, `${name}.c`)], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  return status === 0 ? program : null;
}

function temporaryFolder(): string {
  if (folder === undefined) {
    const created = mkdtempSync(join(tmpdir(), "signalbox-bench-load-"));
    process.once("exit", () => rmSync(created, { recursive: true, force: true }));
    folder = created;
  }
  return folder;
}
