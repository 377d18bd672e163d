/**
 * Deliveries at full speed over 200 entities while the process is killed twenty times. Senders behave like providers
 * and repeat unacknowledged deliveries under the same id. At the end every acknowledged delivery must be there
 * exactly once.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { Agent as HttpAgent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { sendRequest, type Target } from "../support/send-request.ts";
import { StandbyServers } from "../support/standby-server.ts";
import { waitUntil } from "../support/wait-until.ts";
import { hexSignature, SECRET } from "../support/webhook-sender.ts";

const ENTITIES = 200;
const SENDERS = 32;
const KILLS = 12;
/** Time under load before each kill; it varies, so that kills hit every phase of a write. */
const loadMs = (kill: number) => 100 + ((kill * 97) % 400);
const MODULE = join(import.meta.dirname, "../fixtures/webhook-agents.ts");

interface Everything {
  readonly runs: string[];
  readonly events: string[];
  readonly eventCount: number;
}

it("kill -9 at full speed loses no acknowledged delivery and runs none twice", async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-kill-"));
  const config = join(folder, "signalbox.config.json");
  await writeFile(
    config,
    JSON.stringify({
      agents: { modules: [MODULE] },
      webhooks: { sources: { keep: { scheme: "generic", agent: "keeping-agent" } } },
    }),
  );
  const servers = new StandbyServers({
    args: ["--data-dir", join(folder, "data"), "--config", config, "--log-level", "error"],
    env: { KEEP_WEBHOOK_SECRET: SECRET, SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
  });
  let server = servers.start();
  let isOver = false;
  let sequence = 0;
  const acknowledged = new Map<string, string>();
  const sent = new Set<string>();
  const sender = async () => {
    const agent = new HttpAgent({ keepAlive: true });
    while (!isOver) {
      const number = sequence++;
      const entity = `entity-${number % ENTITIES}`;
      const id = `d-${number}`;
      sent.add(id);
      while (!isOver) {
        const status = await deliver(agent, (await server).url, entity, id);
        // 202: the machine is slow and the delivery is stored, which is an acknowledgement as well.
        if (status === 200 || status === 202) {
          acknowledged.set(id, entity);
          break;
        }
        // No response (killed) or 503: the same delivery is sent again, as providers do.
        if (status !== null && status !== 503) throw new Error(`unexpected answer ${status}`);
      }
    }
    agent.destroy();
  };
  try {
    const senders = Array.from({ length: SENDERS }, sender);
    for (let kill = 0; kill < KILLS; kill++) {
      const { end } = await server;
      const enough = acknowledged.size + ENTITIES / KILLS;
      await sleep(loadMs(kill));
      // A slow machine gets more time, so that each process acknowledges deliveries before it is killed.
      await waitUntil(
        () => acknowledged.size,
        (count) => count > enough,
      );
      server = end("SIGKILL").then(() => servers.start());
    }
    const last = await server;
    await sleep(500);
    isOver = true;
    await Promise.all(senders);

    await expect.poll(() => countLate(last)).toBe(0);
    expect(acknowledged.size).toBeGreaterThan(ENTITIES);
    const byEntity = new Map<string, string[]>();
    for (const [id, entity] of acknowledged) byEntity.set(entity, [...(byEntity.get(entity) ?? []), id]);
    for (const [entity, ids] of byEntity) {
      const { runs, events, eventCount } = await readEverything(last, entity);
      expect(new Set(runs).size, `${entity} ran a delivery twice`).toBe(runs.length);
      expect(new Set(events), `${entity}: effects and events differ`).toEqual(new Set(runs));
      expect(eventCount).toBe(runs.length);
      expect(
        ids.filter((id) => !runs.includes(id)),
        `${entity} lost acknowledged deliveries`,
      ).toEqual([]);
      expect(runs.filter((id) => !sent.has(id))).toEqual([]);
    }
  } finally {
    isOver = true;
    await servers.close();
    await rm(folder, { recursive: true, force: true });
  }
});

/** The status, or null if the connection broke. */
function deliver(agent: HttpAgent, url: string, entity: string, id: string): Promise<number | null> {
  const body = JSON.stringify({ id, type: "load", padding: "x".repeat(500) });
  return new Promise((resolve) => {
    const outgoing = request(`${url}/webhooks/keep/${entity}`, {
      method: "POST",
      agent,
      headers: {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        "x-signature": hexSignature(body),
      },
    });
    outgoing.once("response", (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode ?? null));
      response.once("error", () => resolve(null));
    });
    outgoing.once("error", () => resolve(null));
    outgoing.end(body);
  });
}

/** Deliveries that were answered 202 and are not handled yet. */
async function countLate(server: Target): Promise<number> {
  const { body } = await sendRequest(server, "GET", "/accounts/default/webhooks/late-deliveries");
  return body.result.length;
}

async function readEverything(server: Target, entity: string): Promise<Everything> {
  const path = `/agents/keeping-agent/${entity}/rpc/everything`;
  return (await sendRequest(server, "POST", path, [])).body.result;
}
