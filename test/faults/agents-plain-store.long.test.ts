/**
 * `kill -9` with `agents.store: "plain"`, and with a change of the engine at each start: every acknowledged change is there after the next start,
 * whichever engine opens the files that the other one left.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { auditLedgers, LEDGER_CONFIG, loadLedgers } from "../support/ledger/ledger-load.ts";
import { newLedgers } from "../support/ledger/ledger-model.ts";
import { createRandom } from "../support/ledger/random.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { StandbyServer } from "../support/standby-server.ts";

const KILLS = 6;
const MAX_LOAD_MS = 300;

it.each([
  ["the plain store", ["plain"]],
  ["the two stores in turn", ["plain", "journal"]],
] as const)("kills under load lose no acknowledged change with %s", async (_title, stores) => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const random = createRandom(seed);
  const dataDir = await mkdtemp(join(tmpdir(), "signalbox-plain-"));
  const models = newLedgers(3, 3);
  const prepare = (start: number) =>
    new StandbyServer({
      args: ["--data-dir", dataDir, "--config", LEDGER_CONFIG],
      env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, LEDGER_STORE: stores[start % stores.length] ?? "plain" },
    });
  const count = () => models.reduce((sum, model) => sum + model.reportedCount, 0);
  let standby = prepare(0);
  let current = standby;
  try {
    for (let kills = 0; kills <= KILLS; kills++) {
      current = standby;
      standby = prepare(kills + 1);
      const server = { ...(await current.start()), token: ROOT_TOKEN };
      await auditLedgers(server, models).catch((error: unknown) => {
        throw new Error(`after kill ${kills} (seed ${seed})`, { cause: error });
      });
      if (kills === KILLS) break;
      const before = count();
      const load = loadLedgers(server, models, random);
      // Without an acknowledged change a kill proves nothing.
      await expect.poll(count).toBeGreaterThan(before);
      await sleep(random() * MAX_LOAD_MS);
      await current.end("SIGKILL");
      await load;
    }
  } finally {
    await Promise.all([current.end("SIGKILL"), standby.end("SIGKILL")]);
    await rm(dataDir, { recursive: true, force: true });
  }
});
