/**
 * A data folder of the version before instances belonged to accounts, as kill -9 left it: the control plane has the
 * earlier tables, and the instances' writes are in a journal that was not checkpointed. Instance files and journal
 * records have the same format in both versions.
 */
import { readdirSync, renameSync, rmSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sql } from "../../packages/signalbox/src/core/sql.ts";
import { SqliteDatabase } from "../../packages/signalbox/src/database/sqlite/sqlite-database.ts";
import { BEFORE_ACCOUNTS_OF_INSTANCES, migrateUpTo } from "../support/earlier-schema.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { eventIds, sendRequest } from "../support/send-request.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { sendGeneric, SECRET } from "../support/webhook-sender.ts";

const HELD = join(import.meta.dirname, "../fixtures/waking-agents.ts");
const ENTITIES = Array.from({ length: 110 }, (_, i) => `entity${i}`);

let folder: string;
let server: ServerProcess;

const start = async (env: Record<string, string> = {}) => {
  const config = join(folder, "signalbox.config.json");
  const agents = { modules: [HELD] };
  const sources = { held: { scheme: "generic", agent: "held-agent" } };
  await writeFile(config, JSON.stringify({ agents, webhooks: { sources } }));
  server = await startServerProcess(
    ["--data-dir", join(folder, "data"), "--config", config, "--log-level", "error"],
    {
      env: {
        HELD_WEBHOOK_SECRET: SECRET,
        WEBHOOK_SECRET: SECRET,
        SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN,
        ...env,
      },
    },
  );
};
const read = async (path: string) => (await sendRequest(server, "GET", path)).body.result;
const deliver = (path: string, id: string) =>
  sendGeneric(server.url, path, { about: path }, { "x-event-id": id });

/** Gives the control plane the tables and rows of the earlier version. */
async function revertToEarlierTables(data: string): Promise<void> {
  const current = new DatabaseSync(join(data, "signalbox.db"));
  const instances = current.prepare("SELECT * FROM agent_instance").all();
  const entities = current.prepare("SELECT * FROM webhook_claim").all();
  current.close();
  const earlier = join(data, "earlier.db");
  const database = await SqliteDatabase.open(earlier, (error) => {
    throw error;
  });
  await migrateUpTo(database, BEFORE_ACCOUNTS_OF_INSTANCES);
  for (const row of instances) {
    expect(row["account_id"]).toBe("default");
    const { agent, name, created_at, last_active_at, next_due_at } = row as Record<string, string>;
    await database.run(
      sql`INSERT INTO agent_instance (agent, name, created_at, last_active_at, next_due_at)
          VALUES (${agent ?? ""}, ${name ?? ""}, ${created_at ?? 0}, ${last_active_at ?? 0}, ${next_due_at ?? null})`,
    );
  }
  for (const row of entities) {
    const { agent, name, entity } = row as Record<string, string>;
    await database.run(
      sql`INSERT INTO webhook_entity (agent, name, entity) VALUES (${agent ?? ""}, ${name ?? ""}, ${entity ?? ""})`,
    );
  }
  await database.close();
  for (const name of readdirSync(data).filter((file) => file.startsWith("signalbox.db")))
    rmSync(join(data, name));
  renameSync(earlier, join(data, "signalbox.db"));
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-earlier-"));
  await start({ HOLD: "yes" });
  for (const entity of ENTITIES)
    expect((await deliver(`held/${entity}`, `first-of-${entity}`)).status).toBe(202);
  expect((await deliver("x%2Fy-z", "of-the-owner")).status).toBe(200);
  await server.end("SIGKILL");
  expect(readdirSync(join(folder, "data/agents/journal"))).not.toEqual([]);
  await revertToEarlierTables(join(folder, "data"));
  await start();
});
afterAll(async () => {
  await server.end("SIGTERM");
  await rm(folder, { recursive: true, force: true });
});

it("instances belong to the account default, with all their data and pending work", async () => {
  for (const entity of ENTITIES) {
    const path = `/accounts/default/agents/held-agent/instances/${entity}`;
    await expect.poll(async () => (await read(path)).state).toEqual({ events: 1, worked: 1, rang: 1 });
  }
  expect((await deliver("held/entity7", "first-of-entity7")).body).toEqual({ status: "duplicate" });
});

it("entities keep their names", async () => {
  expect((await deliver("x-y%2Fz", "of-the-second")).status).toBe(200);
  expect(await eventIds(server, "x-y-z")).toEqual(["of-the-owner"]);
  const names = (await read("/accounts/default/agents/webhook-agent/instances")).map(
    ({ name }: { name: string }) => name,
  );
  expect(names).toHaveLength(2);
});
