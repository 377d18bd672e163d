/** Loaded after `record-syncs.ts`: a process whose syncs return at once and do nothing, as if the server did not wait for the disk. */
import fs from "node:fs";
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  const handle = await fs.promises.open(process.execPath, "r");
  const prototype = Object.getPrototypeOf(handle) as { datasync: () => Promise<void> };
  await handle.close();
  prototype.datasync = () => Promise.resolve();
}
