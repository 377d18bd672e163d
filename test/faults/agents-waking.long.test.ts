/**
 * A killed server leaves accepted work (202) and schedules of many instances. After the restart they are done without
 * any request to the instances. There are more instances than one query of the catalog returns and many more than fit
 * in memory; some cannot start, and some belong to a class that is gone.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { sendRequest } from "../support/send-request.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";
import { sendGeneric, SECRET } from "../support/webhook-sender.ts";

const HELD = join(import.meta.dirname, "../fixtures/waking-agents.ts");
const REMOVED = join(import.meta.dirname, "../fixtures/removed-agents.ts");
/** Far fewer than are due. */
const MAX_IN_MEMORY = 30;
const DONE = { events: 1, worked: 1, rang: 1 };

/** Names by the source that reaches them. Broken instances are due first, so they come first. */
const ENTITIES: readonly { readonly source: string; readonly entity: string }[] = [
  ...Array.from({ length: 40 }, (_, i) => ({ source: "held", entity: `broken${i}` })),
  ...Array.from({ length: 120 }, (_, i) => ({ source: "removed", entity: `gone${i}` })),
  ...Array.from({ length: 500 }, (_, i) => ({ source: "other", entity: `entity${i}` })),
  ...Array.from({ length: 500 }, (_, i) => ({ source: "held", entity: `entity${i}` })),
];

describe("after kill -9 of a server with due work of 1,160 instances", () => {
  let folder: string;
  let server: ServerProcess;
  /** Of the server without the removed class. */
  let startedAt = 0;

  const start = async (
    modules: readonly string[],
    maxActiveInstances: number,
    env: Record<string, string> = {},
  ) => {
    const config = join(folder, "signalbox.config.json");
    const held = { scheme: "generic", agent: "held-agent" };
    await writeFile(
      config,
      JSON.stringify({
        agents: { modules, maxActiveInstances },
        webhooks: {
          sources: {
            held,
            other: { ...held, account: "other" },
            ...(modules.includes(REMOVED) ? { removed: { scheme: "generic", agent: "removed-agent" } } : {}),
          },
        },
      }),
    );
    const secrets = Object.fromEntries(
      ["HELD", "OTHER", "REMOVED"].map((name) => [`${name}_WEBHOOK_SECRET`, SECRET]),
    );
    server = await startServerProcess(
      ["--data-dir", join(folder, "data"), "--config", config, "--log-level", "error"],
      { env: { ...secrets, SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, ...env } },
    );
  };
  const read = async (path: string) => (await sendRequest(server, "GET", path)).body.result;
  const accountOf = (source: string) => (source === "other" ? "other" : "default");
  const stateOf = async ({ source, entity }: (typeof ENTITIES)[number]) => {
    const agent = source === "removed" ? "removed-agent" : "held-agent";
    return (await read(`/accounts/${accountOf(source)}/agents/${agent}/instances/${entity}`)).state;
  };
  const deliver = ({ source, entity }: (typeof ENTITIES)[number]) =>
    sendGeneric(
      server.url,
      `${source}/${entity}`,
      { entity_id: entity },
      { "x-event-id": `first-of-${entity}` },
    );
  const eachOf = async (
    entities: typeof ENTITIES,
    work: (entity: (typeof ENTITIES)[number]) => Promise<unknown>,
  ) => {
    const rest = entities.values();
    const workers = Array.from({ length: 16 }, async () => {
      for (const entity of rest) await work(entity);
    });
    await Promise.all(workers);
  };
  const isHealthy = ({ source, entity }: (typeof ENTITIES)[number]) =>
    source !== "removed" && !entity.startsWith("broken");
  const healthy = ENTITIES.filter(isHealthy);
  const removed = ENTITIES.filter(({ source }) => source === "removed");

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "signalbox-waking-"));
    await start([HELD, REMOVED], 2000, { HOLD: "yes" });
    await sendRequest(server, "POST", "/accounts", { id: "other" });
    await eachOf(ENTITIES, async (entity) => {
      // A sender repeats what a starved server refuses with 503.
      const { status } = await waitUntil(
        () => deliver(entity),
        (answer) => answer.status !== 503,
      );
      expect(status).toBe(202);
    });
    await server.end("SIGKILL");
    startedAt = performance.now();
    await start([HELD], MAX_IN_MEMORY, { BREAK: "broken" });
  });
  afterAll(async () => {
    await server.end("SIGTERM");
    await rm(folder, { recursive: true, force: true });
  });

  it("all work is done once without any request", async () => {
    await eachOf(healthy, async (entity) => {
      await expect.poll(() => stateOf(entity)).toEqual(DONE);
    });
  });

  it("instances that cannot start are retried rarely and keep their work", async () => {
    const tries = server.stderr().split("the instance could not start").length - 1;
    expect(tries).toBeGreaterThanOrEqual(40);
    // The first pause is ten seconds, and each further one twice as long.
    const rounds = 1 + Math.floor(Math.log2(1 + (performance.now() - startedAt) / 10_000));
    expect(tries).toBeLessThanOrEqual(40 * rounds);
    expect(server.stderr()).not.toContain("waking instances with due work failed");
    expect(await read("/accounts/default/agents/held-agent/instances/broken0")).toMatchObject({
      queue_count: 1,
      schedule_count: 1,
      state: { events: 1, worked: 0, rang: 0 },
    });
  });

  it("the ledger has every accepted delivery", async () => {
    const sample = healthy.filter((_, i) => i % 50 === 0);
    for (const entity of sample) expect((await deliver(entity)).body).toEqual({ status: "duplicate" });
    for (const entity of sample) expect(await stateOf(entity)).toEqual(DONE);
  });

  it("work of a class that is not loaded waits until the class is loaded again", async () => {
    await server.end("SIGKILL");
    await start([HELD, REMOVED], MAX_IN_MEMORY);
    await eachOf(removed, async (entity) => {
      await expect.poll(() => stateOf(entity)).toEqual(DONE);
    });
    await expect.poll(() => stateOf({ source: "held", entity: "broken7" })).toEqual(DONE);
  });
});
