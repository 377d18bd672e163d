#!/usr/bin/env node
// Plain JavaScript, and nothing newer than Node 20 before the first check: an older Node must get as far as reading this message.
import * as nodeModule from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [major] = process.versions.node.split(".").map(Number);
if (major < 24) {
  process.stderr.write(`signalbox needs Node 24 or newer, this is ${process.version}\n`);
  process.exit(2);
}
// Syncs of many databases run in libuv's pool side by side; its default of 4 threads would be the limit. Must be set before its first use.
process.env.UV_THREADPOOL_SIZE ??= "24";
// Compiled modules are kept between starts, beside the package and not in a temporary folder that others may write to. Without it, most of a
// start is reading TypeScript; where the folder cannot be written, the start is only slower.
const main = new URL("../src/cli/main.ts", import.meta.url);
const cache = process.env.NODE_COMPILE_CACHE ?? join(dirname(fileURLToPath(import.meta.url)), "../.cache");

// A long-running server keeps far less memory with few malloc arenas and a small young generation, and does its work in less time with its code
// and what malloc gives it on large pages of memory, where the system has them (measured: docs/benchmarks.md). Its threads share the cache only
// through the environment. All of that is read when a process starts, so the server replaces itself once; short commands do not pay for it.
if (
  process.argv[2] === "serve" &&
  process.platform !== "win32" &&
  process.env.MALLOC_ARENA_MAX === undefined
) {
  if (main.pathname.endsWith(".ts")) {
    const { warmCache } = await import("./warm-cache.js");
    warmCache(main, cache);
  }
  const flags = ["--max-semi-space-size=8", "--use-largepages=silent", ...process.execArgv];
  const environment = {
    GLIBC_TUNABLES: "glibc.malloc.hugetlb=1",
    ...process.env,
    MALLOC_ARENA_MAX: "2",
    NODE_COMPILE_CACHE: cache,
  };
  // Behind the dashes node looks at no argument: `--env-file` is ours, and its own error would not say so.
  process.execve(process.execPath, [process.execPath, ...flags, "--", ...process.argv.slice(1)], environment);
}
nodeModule.enableCompileCache(cache);
const { runCli } = await import(main.href);
process.exitCode = await runCli(process.argv.slice(2));
