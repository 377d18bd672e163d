/**
 * Seven kills on one data folder at random moments while all areas are in use. After each start the server runs idle
 * for a while; then everything that was acknowledged is there, and nothing that was rolled back.
 */
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { createRandom } from "../support/ledger/random.ts";
import { INSTANCES, loadEverything, MixedModel } from "../support/mixed-load.ts";
import { patiently } from "../support/patience.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { sendRequest, type Target } from "../support/send-request.ts";
import { StandbyServers } from "../support/standby-server.ts";
import { waitUntil } from "../support/wait-until.ts";
import { SECRET } from "../support/webhook-sender.ts";

const KILLS = 7;
/** With fewer acknowledged writes the run proves little; a slow machine gets more time for them. */
const ACKNOWLEDGED_PER_PROCESS = 20;
/** Idle time after each start, so that the server does due work without a request. */
const IDLE_MS = 500;

const INSTANCES_PATH = "/accounts/default/agents/mixed-agent/instances";
const MODULE = join(import.meta.dirname, "../fixtures/mixed-agent.ts");

it("everything acknowledged survives seven kills at random moments under mixed load", async () => {
  const seed = Number(process.env["FAULT_SEED"] ?? Math.floor(Math.random() * 2 ** 32));
  const random = createRandom(seed);
  const folder = await mkdtemp(join(tmpdir(), "signalbox-mixed-"));
  const dataDir = join(folder, "data");
  const config = join(folder, "signalbox.config.json");
  const webhooks = {
    answerWithinMs: 300,
    sources: { mixed: { scheme: "generic" as const, agent: "mixed-agent" } },
  };
  await writeFile(
    config,
    // Small journal files, so that the journal changes files and is checkpointed all the time.
    JSON.stringify(
      patiently({
        agents: { modules: [MODULE], journalFileBytes: 64 * 1024, idleTimeoutMs: 300 },
        webhooks,
      }),
    ),
  );
  const servers = new StandbyServers({
    args: ["--data-dir", dataDir, "--config", config, "--log-level", "error"],
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, MIXED_WEBHOOK_SECRET: SECRET },
  });
  const model = new MixedModel();
  let server = await servers.start();
  try {
    for (let kill = 1; kill <= KILLS; kill++) {
      const enough = model.acknowledged + ACKNOWLEDGED_PER_PROCESS;
      const load = loadEverything(server, model, random);
      await sleep(300 + random() * 600);
      await waitUntil(
        () => model.acknowledged,
        (count) => count > enough,
      );
      await server.end("SIGKILL");
      await load;
      server = await servers.start();
      await sleep(IDLE_MS);
      await expectControlPlane(server, model, `after kill ${kill}, seed ${seed}`);
    }
    expect(model.unexpected).toEqual([]);
    await expectInstances(server, model, `seed ${seed}`);
    expect(await server.end("SIGTERM")).toBe(0);
    await expectIntactFiles(dataDir);
    expect(model.acknowledged).toBeGreaterThan(KILLS * ACKNOWLEDGED_PER_PROCESS);
    expect(model.stored).toBeGreaterThan(0);
  } finally {
    await servers.close();
    await rm(folder, { recursive: true, force: true });
  }
});

async function expectControlPlane(target: Target, model: MixedModel, when: string): Promise<void> {
  for (const [id, version] of model.tags) {
    const answer = await sendRequest(
      target,
      "GET",
      `/accounts/default/tags?resource_type=worker&resource_id=${id}`,
    );
    expect(Number(answer.body.result.tags.v), when).toBeGreaterThanOrEqual(version);
  }
  for (const [id, { secret, fate }] of model.tokens) {
    if (fate === "deleting") continue;
    const holder = { url: target.url, credential: secret };
    const { status } = await sendRequest(holder, "GET", "/accounts/default/tags/keys");
    // An address that has sent hundreds of wrong tokens is answered 429; right ones are accepted.
    const outcome = status === 401 || status === 429 ? "refused" : status;
    expect([id, outcome], when).toEqual([id, fate === "alive" ? 200 : "refused"]);
  }
  for (const [id, fate] of model.gateways) {
    if (fate === "deleting") continue;
    const { status } = await sendRequest(target, "GET", `/accounts/default/ai-gateway/gateways/${id}`);
    expect([id, status], when).toEqual([id, fate === "alive" ? 200 : 404]);
  }
}

/** Management reads only, which load no instance: due work is done without a request. */
async function expectInstances(target: Target, model: MixedModel, when: string): Promise<void> {
  const late = async () =>
    (await sendRequest(target, "GET", "/accounts/default/webhooks/late-deliveries")).body.result;
  await expect.poll(late).toEqual([]);
  for (const name of INSTANCES) {
    const show = async () => {
      const { body } = await sendRequest(target, "GET", `${INSTANCES_PATH}/${name}`);
      const { queue_count, schedule_count, dead_letter_count } = body.result;
      return { queue_count, schedule_count, dead_letter_count };
    };
    await expect
      .poll(show, { message: `${name}, ${when}` })
      .toEqual({ queue_count: 0, schedule_count: 0, dead_letter_count: 0 });
    const done = async (what: string) => {
      const sql = `SELECT id FROM done WHERE what = '${what}' ORDER BY id LIMIT 1000`;
      // A machine that pauses may cost a query its time.
      const answer = await waitUntil(
        () => sendRequest(target, "POST", `${INSTANCES_PATH}/${name}/sql`, { sql }),
        ({ status }) => status === 200,
      );
      const ids: string[] = answer.body.result.rows.map(({ id }: { id: string }) => id);
      expect(new Set(ids).size, `${name} ${what} twice, ${when}`).toBe(ids.length);
      return new Set(ids);
    };
    const missing = (acknowledged: ReadonlySet<string> | undefined, found: ReadonlySet<string>) =>
      [...(acknowledged ?? [])].filter((id) => !found.has(id));
    const handled = await done("handled");
    expect(missing(model.handled.get(name), handled), `${name} lost deliveries, ${when}`).toEqual([]);
    expect(missing(model.noted.get(name), await done("noted")), `${name} lost notes, ${when}`).toEqual([]);
    const requested = await done("requested");
    expect(missing(model.requested.get(name), requested), `${name} lost requests, ${when}`).toEqual([]);
    expect([await done("worked"), await done("rang")], `${name}, ${when}`).toEqual([requested, requested]);
  }
}

async function expectIntactFiles(dataDir: string): Promise<void> {
  const files = (await readdir(dataDir, { recursive: true })).filter((file) => file.endsWith(".db"));
  expect(files.length).toBeGreaterThan(INSTANCES.length);
  for (const file of files) {
    const database = new DatabaseSync(join(dataDir, file));
    expect([file, database.prepare("PRAGMA integrity_check").all()]).toEqual([
      file,
      [{ integrity_check: "ok" }],
    ]);
    database.close();
  }
}
