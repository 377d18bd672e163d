#!/usr/bin/env node
// See src/cli/README.md.
// Plain JavaScript, and before the version check nothing newer than Node 18, so that an older Node gets as far as the check.
import * as nodeModule from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isNodeSupported, runOnRequiredNode } from "./required-node.js";

process.exitCode = isNodeSupported() ? await start() : await runOnRequiredNode(process.argv.slice(2));

async function start() {
  // Syncs of many databases run in parallel in libuv's thread pool, whose default size is 4. Read at the pool's first use.
  process.env.UV_THREADPOOL_SIZE ??= "24";
  // The compile cache is in the package, not in a temporary folder that other users can write to. Without a cache, most of the start time is
  // the compilation of TypeScript; if the folder is not writable, the start is slower.
  const main = new URL("../src/cli/main.ts", import.meta.url);
  const cache = process.env.NODE_COMPILE_CACHE ?? join(dirname(fileURLToPath(import.meta.url)), "../.cache");

  const { reexec } = await import("./reexec.js");
  reexec(main, cache);

  nodeModule.enableCompileCache(cache);
  const { resolveOwnModules } = await import("./own-modules.js");
  resolveOwnModules();
  const { runCli } = await import(main.href);
  return runCli(process.argv.slice(2));
}
