/**
 * Fills the cache of compiled modules for a server that starts from its TypeScript sources.
 *
 * A process that had to read TypeScript keeps node's reader of it, some 30 MB, for as long as it lives. So one that ends reads what
 * has changed since the last time, and the server finds all of it in the cache; together they take no longer than the server alone would.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const SOURCES = ["../src", "../../protocol/src"];

/** Does nothing when no source is newer than the last time, or something cannot be read or written: then the server reads for itself. */
export function warmCache(main, cache) {
  const stamp = join(cache, `warm-${process.version}`);
  let files;
  try {
    files = SOURCES.flatMap((folder) => listTypeScript(folder));
    const warmedAt = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (files.every((file) => statSync(file).mtimeMs < warmedAt)) return;
    // Before the work: what is edited meanwhile is newer, and servers that start together do not all do it.
    mkdirSync(cache, { recursive: true });
    writeFileSync(stamp, "");
  } catch {
    return;
  }
  // Threads load modules of their own. They refuse to run here, but are compiled before they do.
  const modules = [
    main,
    ...files.filter((file) => file.endsWith(".worker.ts")).map((file) => pathToFileURL(file)),
  ];
  const script = modules.map((url) => `await import("${url}").catch(() => undefined);`).join("\n");
  spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    stdio: "ignore",
    env: { ...process.env, NODE_COMPILE_CACHE: cache },
  });
}

function listTypeScript(folder) {
  const path = fileURLToPath(new URL(folder, import.meta.url));
  return readdirSync(path, { recursive: true })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(path, name));
}
