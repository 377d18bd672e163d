/** Kept cases: inputs that once caused a failure, one file each, run again with the tests. */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../../..");
const FOLDER = join(import.meta.dirname, "../cases");

/** A failing input. */
export interface Find {
  readonly input: unknown;
  readonly problem: string;
}

export interface KeptCase {
  readonly file: string;
  /** The failure when the case was found. */
  readonly problem: string;
  readonly input: unknown;
}

export function readCases(target: string): KeptCase[] {
  const folder = join(FOLDER, target);
  mkdirSync(folder, { recursive: true });
  return readdirSync(folder)
    .filter((file) => file.endsWith(".json"))
    .sort()
    .map((file) => ({
      file,
      ...(JSON.parse(readFileSync(join(folder, file), "utf8")) as { problem: string; input: unknown }),
    }));
}

/** Writes a failing input as a case and returns its path. */
export function keepCase(target: string, find: Find): string {
  const folder = join(FOLDER, target);
  mkdirSync(folder, { recursive: true });
  const text = JSON.stringify(find.input);
  const name = createHash("sha256").update(text).digest("hex").slice(0, 12);
  const path = join(folder, `${name}.json`);
  // Without paths of the machine.
  const problem = find.problem.replaceAll(ROOT, "").replaceAll(tmpdir(), "").slice(0, 1000);
  writeFileSync(path, `${JSON.stringify({ problem, input: find.input }, null, 2)}\n`);
  return path;
}
