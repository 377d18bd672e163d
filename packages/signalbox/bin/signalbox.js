#!/usr/bin/env node
// Plain JavaScript on purpose: an older Node must get as far as reading this message.
const [major] = process.versions.node.split(".").map(Number);
if (major < 24) {
  process.stderr.write(`signalbox needs Node 24 or newer, this is ${process.version}\n`);
  process.exit(2);
}
// Syncs of many databases run in libuv's pool side by side; its default of 4 threads would be the limit. Must be set before its first use.
process.env.UV_THREADPOOL_SIZE ??= "24";
const { runCli } = await import("../src/cli/main.ts");
process.exitCode = await runCli(process.argv.slice(2));
