/** `signalbox doctor` with a real server and a real PostgreSQL. */
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCommand } from "../support/run-cli.ts";
import { openTestPostgres } from "../support/test-postgres.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

interface Check {
  readonly check: string;
  readonly status: string;
  readonly message: string;
}

async function examine(...args: string[]): Promise<{ code: number; checks: readonly Check[] }> {
  const { code, out } = await runCommand(server, ["doctor", "--json", "--data-dir", server.dataDir, ...args]);
  return { code, checks: (JSON.parse(out) as { checks: Check[] }).checks };
}

const of = (checks: readonly Check[], name: string) => checks.filter(({ check }) => check === name);

it("a running server is ready and has this version; a refused token and an absent server are failures", async () => {
  const healthy = await examine();
  expect(of(healthy.checks, "server")).toMatchObject([
    { status: "ok", message: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+ is ready, version \d/) },
  ]);
  const refused = await examine("--token", "nonsense-token");
  expect(refused.code).toBe(1);
  expect(of(refused.checks, "server")).toMatchObject([
    { status: "fail", message: `${server.url} refuses the token of --token` },
  ]);
  expect(JSON.stringify(refused)).not.toContain("nonsense");
  const absent = await examine("--url", "127.0.0.1:9");
  expect(of(absent.checks, "server")).toMatchObject([{ status: "fail" }]);
});

it("gateways that need no token are reported if other machines reach the server", async () => {
  const { checks } = await examine("--host", "0.0.0.0");
  expect(of(checks, "exposure").map(({ message }) => message)).toContainEqual(
    expect.stringMatching(/^gateway default takes calls without a token/),
  );
});

it("PostgreSQL is checked without writing to it: before the first start, and with tables of a newer version", async () => {
  const postgres = await openTestPostgres();
  const client = new Client({ connectionString: postgres.url });
  await client.connect();
  try {
    const first = await examine("--database-url", postgres.url);
    expect(of(first.checks, "postgresql")).toMatchObject([
      { message: expect.stringMatching(/PostgreSQL \d+\.\d+.*no tables yet|fsync|full_page_writes/) },
    ]);
    const { rows } = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'");
    expect(rows).toEqual([]);
    await client.query(
      "CREATE TABLE schema_migrations (id BIGINT, name TEXT, checksum TEXT, applied_at BIGINT)",
    );
    await client.query("CREATE TABLE schema_compatibility (id BIGINT, needs BIGINT)");
    await client.query(
      "INSERT INTO schema_migrations VALUES (9998, 'usable', '', 0), (9999, 'from-the-future', '', 0)",
    );
    await client.query("INSERT INTO schema_compatibility VALUES (9998, 1), (9999, 9999)");
    const newer = await examine("--database-url", postgres.url);
    expect(newer.code).toBe(1);
    expect(of(newer.checks, "postgresql")).toContainEqual(
      expect.objectContaining({
        status: "fail",
        message: expect.stringContaining("was written by a newer version (migration 9999-from-the-future)"),
      }),
    );
  } finally {
    await client.end();
    await postgres.drop();
  }
});
