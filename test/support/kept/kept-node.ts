/**
 * The server whose data are kept for later versions, and the later versions that are started on them. What is written here must stay: the kept
 * data were made with these secrets and names.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Client } from "pg";
import type { ConfigFileInput } from "../../../packages/signalbox/src/config/index.ts";
import { IMMORTAL, patiently } from "../patience.ts";
import { ROOT_TOKEN } from "../root-token.ts";
import { type ServerProcess, startServerProcess } from "../server-process.ts";

export const KEPT = join(import.meta.dirname, "../../fixtures/kept");
export const ENGINES = ["sqlite", "postgres"] as const;
export type Engine = (typeof ENGINES)[number];

/** Of the sources `kept` and `routed`. */
export const WEBHOOK_SECRET = "webhook-secret-of-the-kept-data";
/** The stored key, which only the right master key decrypts. */
export const PROVIDER_KEY = "sk-the-kept-key-of-the-provider";

const PRELOAD = pathToFileURL(join(import.meta.dirname, "../clock-preload.ts")).href;

export const keptEnvironment = (engine: Engine): Record<string, string> => ({
  SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN,
  WEBHOOK_SECRET,
  KEPT_WEBHOOK_SECRET: WEBHOOK_SECRET,
  ROUTED_WEBHOOK_SECRET: WEBHOOK_SECRET,
  // On SQLite, the generated keys in the data folder are kept with it.
  ...(engine === "sqlite"
    ? {}
    : {
        SIGNALBOX_CLUSTER_SECRET: "cluster-secret-of-the-kept-versions",
        SIGNALBOX_ENCRYPTION_KEY: "encryption-key-of-the-kept-versions",
        SIGNALBOX_MASTER_KEY: "cd".repeat(32),
        // Answers name the node, which would else have the name of the machine.
        SIGNALBOX_NODE_NAME: "kept",
      }),
});

export interface KeptNodeOptions {
  readonly engine: Engine;
  /** For the configuration file. */
  readonly folder: string;
  readonly dataDir: string;
  readonly databaseUrl: string | null;
  readonly providerUrl: string;
  /**
   * The time at which the clock of the node begins; null for the present. Data of years ago would else be deleted by their age, and what is due
   * later would run.
   */
  readonly at: number | null;
}

export async function startKeptNode(options: KeptNodeOptions): Promise<ServerProcess> {
  const { engine, at } = options;
  if (options.databaseUrl !== null && at !== null)
    await setDatabaseClock(options.databaseUrl, at - Date.now());
  const clock: Record<string, string> =
    at === null
      ? {}
      : { NODE_OPTIONS: `--import=${PRELOAD}`, SIGNALBOX_TEST_CLOCK_MS: String(at - Date.now()) };
  return startServerProcess(await keptArguments(options), { env: { ...keptEnvironment(engine), ...clock } });
}

/**
 * Nodes on PostgreSQL take the time of shared things from it. A function of the same name that is found before PostgreSQL's own sets its clock; it
 * holds for connections that are opened from now on.
 */
async function setDatabaseClock(url: string, aheadMs: number): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`CREATE OR REPLACE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
      AS $$ SELECT pg_catalog.clock_timestamp() + interval '${aheadMs} milliseconds' $$`);
    await client.query("ALTER DATABASE postgres SET search_path = public, pg_catalog");
  } finally {
    await client.end();
  }
}

/** Options of `serve` and `backup`. Writes the configuration file. */
export async function keptArguments(options: KeptNodeOptions): Promise<string[]> {
  const { folder, dataDir, databaseUrl, providerUrl } = options;
  const file: ConfigFileInput = {
    agents: { modules: [join(import.meta.dirname, "../../fixtures/kept-agents.ts")] },
    webhooks: {
      sources: {
        kept: { scheme: "generic", agent: "kept-agent" },
        routed: { scheme: "generic" },
      },
    },
    providers: { openai: { baseUrl: providerUrl } },
    gateway: { prices: { openai: { kept: { in: 1_000_000, out: 1_000_000 } } } },
    cluster: IMMORTAL,
  };
  const config = join(folder, "kept.json");
  await writeFile(config, JSON.stringify(patiently(file)));
  const database = databaseUrl === null ? [] : ["--database-url", databaseUrl];
  return ["--data-dir", dataDir, "--config", config, ...database];
}
