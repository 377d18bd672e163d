/** Agents with the catalog in PostgreSQL. */
import { join } from "node:path";
import { expect, it } from "vitest";
import { migrate } from "../../packages/signalbox/src/database/migrate.ts";
import { PostgresDatabase } from "../../packages/signalbox/src/database/postgres/postgres-database.ts";
import { sql } from "../../packages/signalbox/src/core/sql.ts";
import { readMetric } from "../support/read-metric.ts";
import { openTestPostgres } from "../support/test-postgres.ts";
import { startTestServer } from "../support/test-server.ts";
import { sendGeneric, SECRET } from "../support/webhook-sender.ts";

const HELD = join(import.meta.dirname, "../fixtures/waking-agents.ts");

it("all due instances of the catalog are woken, and accounts have names of their own", async () => {
  const postgres = await openTestPostgres();
  const database = await PostgresDatabase.open(postgres.url, (error) => {
    throw error;
  });
  await migrate(database);
  const names = Array.from({ length: 230 }, (_, i) => `entity${i}`);
  for (const name of names)
    await database.run(
      sql`INSERT INTO agent_instance (account_id, agent, name, created_at, last_active_at, next_due_at)
          VALUES ('default', 'held-agent', ${name}, 1, 1, 7)`,
    );
  await database.close();
  const server = await startTestServer({
    environment: { DATABASE_URL: postgres.url, WEBHOOK_SECRET: SECRET, B_WEBHOOK_SECRET: SECRET },
    file: {
      agents: { modules: [HELD], maxActiveInstances: 20 },
      webhooks: { sources: { b: { scheme: "generic", account: "b" } } },
    },
  });
  try {
    await server.api("POST", "/accounts", { id: "b" });
    const list = async (account: string, agent: string) =>
      (await server.api("GET", `/accounts/${account}/agents/${agent}/instances?limit=1000`)).body.result;
    expect(await list("default", "held-agent")).toHaveLength(230);
    const starts = 'signalbox_agent_starts_total{outcome="new"}';
    await expect.poll(() => readMetric(server, starts)).toBe(230);
    for (const path of ["x%2Fy", "b/x%2Fy"]) {
      const sent = await sendGeneric(server.url, path, { about: path }, { "x-event-id": path });
      expect(sent.status).toBe(200);
    }
    const namesOf = async (account: string) =>
      (await list(account, "webhook-agent")).map(({ name }: { name: string }) => name);
    expect(await namesOf("default")).toEqual(["x-y"]);
    expect(await namesOf("b")).toEqual(["x-y"]);
  } finally {
    await server.stop();
    await postgres.drop();
  }
});
