/**
 * The power goes at random moments under load. The disk has what was synced, and a random part of what was written since; the server must
 * come up from that with everything it told anybody, and nothing half done.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { auditLedgers, LEDGER_CONFIG, loadLedgers } from "../support/ledger/ledger-load.ts";
import { type LedgerModel, newLedgers } from "../support/ledger/ledger-model.ts";
import { createRandom, type Random } from "../support/ledger/random.ts";
import { CuttableServer } from "../support/power-cut/power-cut.ts";
import { ROOT_TOKEN } from "../support/test-server.ts";

const CUTS = 8;
const MAX_LOAD_MS = 1500;

function createServer(random: Random, forgets?: "files" | "folders"): CuttableServer {
  return new CuttableServer({
    args: ["--config", LEDGER_CONFIG],
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
    random,
    ...(forgets === undefined ? {} : { forgets }),
  });
}

const newModels = () => newLedgers(2, 3);

/** Load for a random while, then the end as given. */
async function loadUntil(
  url: string,
  models: readonly LedgerModel[],
  random: Random,
  end: () => Promise<void>,
): Promise<number> {
  const load = loadLedgers({ url, token: ROOT_TOKEN }, models, random);
  await sleep(random() * MAX_LOAD_MS);
  await end();
  await load;
  return models.reduce((sum, model) => sum + model.toldCount, 0);
}

describe("when the power goes", { timeout: 300_000 }, () => {
  it("everything that was told is there afterwards, and nothing is half done", async () => {
    const seed = Math.floor(Math.random() * 2 ** 32);
    const random = createRandom(seed);
    const server = createServer(random);
    const models = newModels();
    let told = 0;
    try {
      await server.prepare();
      for (let cut = 1; cut <= CUTS; cut++) {
        const url = await server.start();
        await auditLedgers({ url, token: ROOT_TOKEN }, models).catch((error: unknown) => {
          throw new Error(`after cut ${cut - 1} (seed ${seed})`, { cause: error });
        });
        told += await loadUntil(url, models, random, () => server.cutPower());
      }
      await auditLedgers({ url: await server.start(), token: ROOT_TOKEN }, models);
    } finally {
      await server.remove();
    }
    // A run in which nobody was told anything proves nothing.
    expect(told).toBeGreaterThan(CUTS);
  });

  it("what was told after the process had been killed and started again is there, too", async () => {
    const seed = Math.floor(Math.random() * 2 ** 32);
    const random = createRandom(seed);
    const server = createServer(random);
    const models = newModels();
    try {
      await server.prepare();
      for (let round = 0; round < 3; round++) {
        // The new process finds in memory, not on the disk, what the killed one had not synced; the audit makes it tell of it.
        await loadUntil(await server.start(), models, random, () => server.kill());
        await auditLedgers({ url: await server.start(), token: ROOT_TOKEN }, models);
        await server.cutPower();
        await auditLedgers({ url: await server.start(), token: ROOT_TOKEN }, models).catch(
          (error: unknown) => {
            throw new Error(`in round ${round} (seed ${seed})`, { cause: error });
          },
        );
        await server.cutPower();
      }
    } finally {
      await server.remove();
    }
    expect(models.map((model) => model.known[0])).not.toContain(0);
  });

  it.each(["files", "folders"] as const)(
    "a server that does not sync its %s is found out",
    async (forgets) => {
      const random = createRandom(1);
      const server = createServer(random, forgets);
      const models = newModels();
      const findLoss = async (): Promise<unknown> => {
        for (let cut = 0; cut < CUTS; cut++) {
          try {
            const url = await server.start();
            await auditLedgers({ url, token: ROOT_TOKEN }, models);
            await loadUntil(url, models, random, () => server.cutPower());
          } catch (error) {
            return error;
          }
        }
        return null;
      };
      try {
        await server.prepare();
        // What is found first depends on chance: effects that are gone, rows that do not fit the state, a file that is damaged, a
        // journal that the server refuses, a folder without which it cannot go on.
        expect(await findLoss()).toBeInstanceOf(Error);
      } finally {
        await server.remove();
      }
    },
  );
});
