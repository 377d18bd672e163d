/** A process with three routes is killed under load: no route loses an acknowledged delivery. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { patiently } from "../support/patience.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { eventIds, sendRequest } from "../support/send-request.ts";
import { startServerProcess } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";
import { SECRET, sendGeneric } from "../support/webhook-sender.ts";

const ENTITIES = ["a", "b", "c", "d"];
const ROUNDS = 3;
/** Acknowledged between two kills. */
const PER_ROUND = 60;

interface Got {
  readonly path: string;
  readonly event: string;
  readonly entity: string;
  readonly n: number;
}

it("kill -9 under load: an agent gets each delivery once, each address at least once with one id and one attempt at a time, and in order where asked", async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-routes-kill-"));
  const got: Got[] = [];
  const open = new Set<string>();
  const overlaps: string[] = [];
  const receiver = createServer((request, response) => {
    const event = String(request.headers["signalbox-event-id"]);
    if (open.has(event)) overlaps.push(event);
    open.add(event);
    response.once("close", () => open.delete(event));
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { entity, n } = JSON.parse(Buffer.concat(chunks).toString()) as { entity: string; n: number };
      got.push({ path: request.url ?? "", event, entity, n });
      // Some are open when the process is killed.
      setTimeout(() => response.end(), n % 3 === 0 ? 30 : 0);
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  const at = (path: string) => `http://127.0.0.1:${(receiver.address() as AddressInfo).port}${path}`;
  const config = join(folder, "signalbox.config.json");
  await writeFile(
    config,
    JSON.stringify(
      patiently({
        outgoing: { allowPrivateHosts: true },
        webhooks: {
          sources: {
            load: {
              scheme: "generic",
              routes: [
                { name: "agent", to: { agent: "webhook-agent" } },
                { name: "url", to: { url: at("/url") } },
                { name: "ordered", to: { url: at("/ordered") }, order: "entity" },
              ],
            },
          },
        },
      }),
    ),
  );
  const start = () =>
    startServerProcess(["--data-dir", join(folder, "data"), "--config", config, "--log-level", "error"], {
      env: { LOAD_WEBHOOK_SECRET: SECRET, SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
    });
  let server = await start();
  const acknowledged = new Map(ENTITIES.map((entity) => [entity, new Set<number>()]));
  const count = () => [...acknowledged.values()].reduce((sum, { size }) => sum + size, 0);
  let isEnding = false;
  /** As a sender does: the next delivery of an entity follows the answer to the one before, which is repeated until it is accepted. */
  const sendAll = async (entity: string) => {
    for (let n = 0; !isEnding; n++) {
      for (let isAccepted = false; !isAccepted && !isEnding;) {
        const payload = { id: `${entity}-${n}`, type: "t", entity, n };
        const answer = await sendGeneric(server.url, `load/kill-${entity}`, payload).catch(() => null);
        isAccepted = answer !== null && answer.status < 300;
        if (isAccepted) acknowledged.get(entity)?.add(n);
        else await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
  };
  try {
    const senders = ENTITIES.map(sendAll);
    for (let round = 0; round < ROUNDS; round++) {
      const before = count();
      await waitUntil(count, (found) => found >= before + PER_ROUND);
      await server.end("SIGKILL");
      server = await start();
    }
    const before = count();
    await waitUntil(count, (found) => found >= before + PER_ROUND);
    isEnding = true;
    await Promise.all(senders);
    await waitUntil(
      async () =>
        (await sendRequest(server, "GET", "/accounts/default/webhooks/sources/load/routes")).body.result as {
          events: { waiting: number; failed: number };
        }[],
      (routes) => routes.every(({ events }) => events.waiting === 0),
      100,
    );
    for (const [entity, sent] of acknowledged) {
      const numbers = [...sent];
      for (const path of ["/url", "/ordered"]) {
        const own = got.filter((one) => one.path === path && one.entity === entity);
        const found = new Set(own.map(({ n }) => n));
        expect([path, numbers.filter((n) => !found.has(n))]).toEqual([path, []]);
        // One id for all attempts.
        for (const n of numbers)
          expect(new Set(own.filter((one) => one.n === n).map(({ event }) => event)).size).toBe(1);
      }
      const order = got.filter((one) => one.path === "/ordered" && one.entity === entity).map(({ n }) => n);
      expect(order).toEqual(order.toSorted((x, y) => x - y));
      const handled = await sendRequest(
        server,
        "GET",
        `/accounts/default/agents/webhook-agent/instances/kill-${entity}`,
      );
      // A delivery whose acknowledgement was lost may have been stored, too.
      const { eventCount } = handled.body.result.state as { eventCount: number };
      expect(eventCount).toBeGreaterThanOrEqual(sent.size);
      expect(eventCount).toBeLessThanOrEqual(sent.size + 1);
      const ids = await eventIds(server, `kill-${entity}`, "webhook-agent");
      expect(new Set(ids).size).toBe(ids.length);
    }
    expect(overlaps).toEqual([]);
  } finally {
    isEnding = true;
    await server.end("SIGKILL");
    receiver.closeAllConnections();
    receiver.close();
    await rm(folder, { recursive: true, force: true });
  }
});
