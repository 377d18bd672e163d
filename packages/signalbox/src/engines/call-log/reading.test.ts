import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteCallLog } from "./sqlite-call-log.ts";
import { describeCallLog } from "./call-log-contract.ts";

describeCallLog("SQLite", async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-calls-"));
  const open = () =>
    SqliteCallLog.open({
      folder: join(folder, "logs"),
      maxAgeDays: 3650,
      flushIntervalMs: 200,
      maxBodyBytes: 10_000_000,
      maxTotalBytes: 1_000_000_000,
      maxQueuedCalls: 10_000,
      maxQueuedBytes: 64_000_000,
      onError: rethrow,
      onFatal: rethrow,
    });
  let log = await open();
  return {
    log,
    async reopen() {
      await log.close();
      log = await open();
      return log;
    },
    async cleanUp() {
      await log.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
});

function rethrow(error: Error): never {
  throw error;
}
