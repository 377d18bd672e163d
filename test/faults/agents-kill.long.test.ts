/**
 * `kill -9` at any moment: everything an instance sent is durable, and no change is partial. A real process under
 * load is killed again and again at random moments: between and within turns, during the start, during the audit
 * after the start.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { auditLedgers, LEDGER_CONFIG, loadLedgers } from "../support/ledger/ledger-load.ts";
import { type LedgerModel, newLedgers } from "../support/ledger/ledger-model.ts";
import { createRandom } from "../support/ledger/random.ts";
import { StandbyServers } from "../support/standby-server.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";

const KILLS = 10;
/**
 * Half of the kills come this early, when instances are opened and first written; the other half up to five times as long after a client was informed of a
 * change: on a busy machine nothing else would be reported before them.
 */
const EARLY_MS = 60;

it("kills under load lose no reported change and leave no change partial", async () => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const random = createRandom(seed);
  const dataDir = await mkdtemp(join(tmpdir(), "signalbox-kill-"));
  const models = newLedgers(3, 3);
  const servers = new StandbyServers({
    args: ["--data-dir", dataDir, "--config", LEDGER_CONFIG],
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
  });
  let reported = 0;
  let kills = 0;
  try {
    while (kills < KILLS || reported <= KILLS) {
      kills += 1;
      if (random() < 0.1) {
        // Killed during the start: before, during or just after it opens its files.
        const starting = servers.startOnly();
        await sleep(random() * 300);
        await starting.end("SIGKILL");
        continue;
      }
      const server = { ...(await servers.start()), token: ROOT_TOKEN };
      await auditLedgers(server, models).catch((error: unknown) => {
        throw new Error(`after kill ${kills} (seed ${seed})`, { cause: error });
      });
      const load = loadLedgers(server, models, random);
      const isEarly = random() < 0.5;
      if (!isEarly) await untilReported(models);
      await sleep(random() * EARLY_MS * (isEarly ? 1 : 5));
      await server.end("SIGKILL");
      await load;
      reported += models.reduce((sum, model) => sum + model.reportedCount, 0);
    }
    const last = await servers.start();
    await auditLedgers({ ...last, token: ROOT_TOKEN }, models);
  } finally {
    await servers.close();
    await rm(dataDir, { recursive: true, force: true });
  }
  // Without any reported change the run proves nothing.
  expect(reported).toBeGreaterThan(KILLS);
});

async function untilReported(models: readonly LedgerModel[]): Promise<void> {
  await expect.poll(() => models.some(({ reportedCount }) => reportedCount > 0), { interval: 5 }).toBe(true);
}
