/**
 * Loaded after `record-syncs.ts`: syncs of files (or of folders, by `POWER_CUT_FORGET`) return immediately and do
 * nothing, as if the server did not wait for the disk.
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  const handle = await fs.promises.open(process.execPath, "r");
  const prototype = Object.getPrototypeOf(handle) as Record<string, () => Promise<void>>;
  await handle.close();
  // The server syncs folders with `sync` and everything else with `datasync`.
  if (process.env["POWER_CUT_FORGET"] === "folders") {
    prototype["sync"] = () => Promise.resolve();
    fs.fsyncSync = () => undefined;
  } else {
    prototype["datasync"] = () => Promise.resolve();
    fs.fdatasyncSync = () => undefined;
    const forget = (_fd: number, callback: fs.NoParamCallback) => setImmediate(callback, null);
    fs.fdatasync = forget as unknown as typeof fs.fdatasync;
  }
  syncBuiltinESMExports();
}
