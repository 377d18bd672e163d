/**
 * A power cut while entities send for the first time. Each first event creates an instance: its file, its tables and
 * its event are all new, and journal files begin and end all the time. Acknowledged events must be there once.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { createRandom } from "../support/ledger/random.ts";
import { CuttableServer } from "../support/power-cut/power-cut.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { eventIds } from "../support/send-request.ts";
import { SECRET, sendGeneric } from "../support/webhook-sender.ts";

const CUTS = 6;
const SENDERS = 8;
const MAX_LOAD_MS = 1000;

it("entities whose first event was acknowledged are there after a power cut", async () => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const random = createRandom(seed);
  const folder = mkdtempSync(join(tmpdir(), "signalbox-first-touch-"));
  const config = join(folder, "signalbox.config.json");
  // The smallest allowed journal files, and instances that leave memory between two requests.
  writeFileSync(config, JSON.stringify({ agents: { journalFileBytes: 64 * 1024, idleTimeoutMs: 50 } }));
  const server = new CuttableServer({
    args: ["--config", config],
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, WEBHOOK_SECRET: SECRET },
    random,
  });
  const acknowledged: string[] = [];
  let count = 0;
  const audit = async (url: string, cut: number) => {
    for (const entity of acknowledged)
      expect(await eventIds({ url }, entity), `${entity} after cut ${cut} (seed ${seed})`).toEqual(["first"]);
  };
  try {
    await server.prepare();
    for (let cut = 1; cut <= CUTS; cut++) {
      const url = await server.start();
      await audit(url, cut - 1);
      let isOver = false;
      const sender = async () => {
        while (!isOver) {
          count += 1;
          const entity = `entity-${count}`;
          try {
            const { status } = await sendGeneric(url, entity, { id: "first", text: "x".repeat(2000) });
            if (status === 200) acknowledged.push(entity);
          } catch {
            // No response: the event may be there or not.
          }
        }
      };
      const senders = Array.from({ length: SENDERS }, sender);
      await sleep(random() * MAX_LOAD_MS);
      isOver = random() < 0.5;
      await server.cutPower();
      isOver = true;
      await Promise.all(senders);
    }
    await audit(await server.start(), CUTS);
  } finally {
    await server.remove();
    rmSync(folder, { recursive: true, force: true });
  }
  // Without any acknowledged event the run proves nothing.
  expect(acknowledged.length).toBeGreaterThan(CUTS);
});
