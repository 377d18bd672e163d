/**
 * Compiles the service once for a test run. Tests start hundreds of servers, and most of them are killed: Node writes its compile cache only
 * when a process ends in order, so without this each of them would compile all of the sources.
 */
import { readdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const PACKAGE = new URL("../../packages/signalbox/", import.meta.url);
const CACHE = fileURLToPath(new URL(".cache", PACKAGE));

/**
 * The test runner imports a test file under an address with the time, so each run adds an entry for each of its files, about 5 MB for all. Sources and
 * packages have some 10,000 entries.
 */
const MAX_ENTRIES = 30_000;

interface Reexec {
  warmCache(main: URL, cache: string): void;
}

/** Called once for each project of the test runner. */
export default async function setup(): Promise<void> {
  if (countEntries() > MAX_ENTRIES) rmSync(CACHE, { recursive: true, force: true });
  const { warmCache } = (await import(new URL("bin/reexec.js", PACKAGE).href)) as Reexec;
  warmCache(new URL("src/cli/main.ts", PACKAGE), CACHE);
  // Inherited by the servers, so that their worker threads use it, too.
  process.env["NODE_COMPILE_CACHE"] = CACHE;
}

function countEntries(): number {
  try {
    return readdirSync(CACHE, { recursive: true }).length;
  } catch {
    return 0;
  }
}
