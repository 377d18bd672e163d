/**
 * Every version whose data are kept (test/fixtures/kept, `npm run keep`) is upgraded to the present one: a data folder with SQLite, and a backup of
 * a node on PostgreSQL. A member that a later version has removed on purpose is removed from the record of the kept version, too.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { call, deliver, GATEWAY, tag } from "../support/kept/data-set.ts";
import {
  type KeptVersion,
  keptVersions,
  readArchive,
  readRecord,
  unpackFolder,
} from "../support/kept/kept-files.ts";
import { keptEnvironment, PROVIDER_KEY, startKeptNode } from "../support/kept/kept-node.ts";
import { readAll } from "../support/kept/reads.ts";
import { sendRequest } from "../support/send-request.ts";
import { runCliProcess, type ServerProcess } from "../support/server-process.ts";
import { openTestPostgres } from "../support/test-postgres.ts";
import { waitUntil } from "../support/wait-until.ts";

const HOUR_MS = 3_600_000;

let provider: ProviderPeer;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-kept-"));
  provider = await startProvider((_, response) =>
    sendJson(response, 200, { model: "kept", usage: { prompt_tokens: 2, completion_tokens: 3 } }),
  );
});
afterAll(async () => {
  await provider.close();
  await rm(folder, { recursive: true, force: true });
});

it.each(keptVersions())(
  "what $version has stored on $engine is there after an upgrade, and work goes on",
  async (kept) => {
    const record = readRecord(kept);
    const own = await mkdtemp(join(folder, "version-"));
    const dataDir = join(own, "data");
    const postgres = kept.engine === "postgres" ? await openTestPostgres() : null;
    const databaseUrl = postgres?.url ?? null;
    try {
      if (databaseUrl === null) unpackFolder(readArchive(kept), dataDir);
      else await restore(kept, own, dataDir, databaseUrl);
      const options = { engine: kept.engine, folder: own, dataDir, databaseUrl, providerUrl: provider.url };
      const upgraded = await startKeptNode({ ...options, at: record.at + HOUR_MS });
      for (const [i, { path, answer }] of (await readAll(upgraded.url, record.reads)).entries())
        expect.soft(answer, path).toMatchObject(record.reads[i]?.answer as object);
      await workOn(upgraded, record.token, 1);
      expect(await upgraded.end("SIGTERM")).toBe(0);
      // What was migrated and written is also there at the next start.
      const again = await startKeptNode({ ...options, at: record.at + 2 * HOUR_MS });
      await workOn(again, record.token, 2);
      expect(await again.end("SIGTERM")).toBe(0);
    } finally {
      await postgres?.drop();
    }
  },
);

async function restore(kept: KeptVersion, own: string, dataDir: string, databaseUrl: string): Promise<void> {
  const file = join(own, "backup.tar");
  await writeFile(file, readArchive(kept));
  const args = ["restore", file, "--data-dir", dataDir, "--database-url", databaseUrl];
  const { code, stderr } = await runCliProcess(args, { env: keptEnvironment(kept.engine), cwd: own });
  expect([code, stderr]).toEqual([0, ""]);
}

/** A call with the kept token and the stored key, a delivery to the kept instance, and a tag. `round`: how often this was done on the data. */
async function workOn(node: ServerProcess, token: string, round: number): Promise<void> {
  const get = async (path: string) => (await sendRequest(node, "GET", path)).body.result;
  const amount = async () => (await get(`${GATEWAY}/budgets`)).budgets[0].used as number;
  const used = await amount();
  provider.requests.length = 0;
  await call(node.url, token, "openai/chat/completions", "kept");
  await call(node.url, token, "compat/chat/completions", "dynamic/kept-route");
  expect(provider.requests.map(({ headers }) => headers.authorization)).toEqual(
    Array.from({ length: 2 }, () => `Bearer ${PROVIDER_KEY}`),
  );
  // The guardrail of the gateway.
  for (const { body } of provider.requests) expect(body).not.toContain("ada@example.com");
  // A call is charged when it has ended, which is after its answer has arrived.
  await waitUntil(amount, (now) => now === used + 10, 20);
  await waitUntil<{ id: string }[]>(
    () => get(`${GATEWAY}/logs?per_page=50`),
    (logs) => logs.length === 2 + 2 * round,
    20,
  );

  // Before it, the instance has had two deliveries and one of a route; in each round it has one of both.
  await deliver(node.url, "kept/acme", { type: "note", round });
  await deliver(node.url, "routed/acme", { type: "routed", round });
  const deliveries = 3 + 2 * round;
  const instance = await waitUntil<{ state: { deliveries: number } }>(
    () => get("/accounts/default/agents/kept-agent/instances/acme"),
    ({ state }) => state.deliveries === deliveries,
    20,
  );
  expect(instance).toMatchObject({ queue_count: 1, schedule_count: 1, dead_letter_count: 0 });
  const { body } = await sendRequest(node, "POST", "/agents/kept-agent/acme/rpc/notes", []);
  expect(body.result).toHaveLength(deliveries);

  await tag(node.url, `new-${round}`, { team: "platform" });
  const tagged: { id: string }[] = await get("/accounts/default/tags/resources?tag=team=platform");
  expect(tagged.map(({ id }) => id).sort()).toEqual([
    "kept",
    ...Array.from({ length: round }, (_, i) => `new-${i + 1}`),
  ]);
}
