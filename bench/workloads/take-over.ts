/**
 * A node that was killed has left instances whose work is due. How fast another node takes them over and performs their work, and how long everybody
 * else waits meanwhile. The instances are copies, in PostgreSQL, of one that the killed node had: its log, its owner and its row of the catalog.
 */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "pg";
import { openTestPostgres } from "../../test/support/test-postgres.ts";
import { meterCpu } from "../support/cpu-times.ts";
import { timeRequest } from "../support/node-load.ts";
import { startProbe } from "../support/probe.ts";
import { isQuick } from "../support/quick.ts";
import { buildRequest } from "../support/requests.ts";
import { type RunningSignalbox, startSignalbox, THIS_CHECKOUT } from "../support/signalbox.ts";
import { percentile } from "../support/statistics.ts";
import { type Contender, ownFigure, type Sample, type Workload } from "../support/workload.ts";

const AGENT = join(import.meta.dirname, "../support/due-agent.ts");
const TOKEN = "sbx_benchmark_of_take_over";
const HEADERS = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
const INSTANCES = isQuick ? 2000 : 100_000;
/** All of them take longer than a benchmark may; the rate does not depend on how many are left. */
const WINDOW_MS = 150_000;
/** The killed node must not perform the work itself. */
const LEAD_MS = 15_000;
const SCENARIO = `${INSTANCES.toLocaleString("en")} instances of a killed node, all with overdue work`;
const CALL = buildRequest(
  "POST",
  "/v1/default/default/echo/chat/completions",
  { "content-type": "application/json" },
  JSON.stringify({ model: "echo", messages: [{ role: "user", content: "Hello" }] }),
);

/** Each copy has the name `i<n>`; the key of an instance is the beginning of the hash of its name. */
const COPY: readonly string[] = [
  `CREATE TEMP TABLE first AS SELECT * FROM agent_owner WHERE key = substring(sha256('due-agent'::bytea || '\\x00'::bytea || 'first'::bytea) FOR 20)`,
  `CREATE TEMP TABLE copy AS SELECT n, substring(sha256('due-agent'::bytea || '\\x00'::bytea || convert_to('i' || n, 'UTF8')) FOR 20) AS key FROM generate_series(1, ${INSTANCES}) n`,
  `INSERT INTO agent_owner (key, store, owner, epoch, format, snap_seq, snap_pages, page_bytes, part_bytes)
   SELECT copy.key, store, owner, epoch, format, snap_seq, snap_pages, page_bytes, part_bytes FROM first, copy`,
  `INSERT INTO agent_log SELECT own.id, log.seq, log.epoch, log.kind, log.data
   FROM first JOIN agent_log log ON log.agent = first.id, copy JOIN agent_owner own ON own.key = copy.key`,
  `INSERT INTO agent_part SELECT own.id, part.part, part.seq, part.data
   FROM first JOIN agent_part part ON part.agent = first.id, copy JOIN agent_owner own ON own.key = copy.key`,
  `INSERT INTO agent_instance (account_id, agent, name, created_at, last_active_at, next_due_at, node, epoch)
   SELECT account_id, agent, 'i' || n, created_at, last_active_at, next_due_at, node, epoch FROM agent_instance, copy WHERE name = 'first'`,
  "ANALYZE",
];

async function call<T>({ url }: RunningSignalbox, method: string, args: unknown[] = []): Promise<T> {
  const response = await fetch(
    `${url}/agents/due-agent/${method === "plan" ? "first" : "observer"}/rpc/${method}`,
    {
      method: "POST",
      headers: HEADERS,
      body: JSON.stringify(args),
    },
  );
  if (!response.ok) throw new Error(`${method}: ${response.status} ${await response.text()}`);
  return ((await response.json()) as { result: T }).result;
}

function startNode(databaseUrl: string): Promise<RunningSignalbox> {
  return startSignalbox({
    checkout: THIS_CHECKOUT,
    config: { agents: { modules: [AGENT] } },
    env: {
      DATABASE_URL: databaseUrl,
      SIGNALBOX_CLUSTER_SECRET: "cluster-secret-of-the-take-over-benchmark",
      SIGNALBOX_ENCRYPTION_KEY: "encryption-key-of-the-take-over-benchmark",
      SIGNALBOX_MASTER_KEY: "ab".repeat(32),
      WEBHOOK_SECRET: "webhook-secret-of-the-take-over-benchmark",
      SIGNALBOX_ROOT_TOKEN: TOKEN,
      SIGNALBOX_LOG_LEVEL: "error",
    },
  });
}

/** PostgreSQL with the instances of a node that was killed; their work is due when it resolves. */
async function leaveInstances(databaseUrl: string): Promise<void> {
  const killed = await startNode(databaseUrl);
  const dueAt = Date.now() + LEAD_MS;
  await call(killed, "plan", [dueAt]);
  process.kill(killed.pid, "SIGKILL");
  await killed.stop();
  const admin = new Client({ connectionString: databaseUrl });
  await admin.connect();
  for (const statement of COPY) await admin.query(statement);
  await admin.end();
  await pause(Math.max(0, dueAt - Date.now()));
}

async function measure(server: RunningSignalbox): Promise<Sample> {
  const ranBefore = await call<number>(server, "ran");
  await call(server, "measureLoop");
  const startedAt = performance.now();
  const meter = meterCpu(server);
  const probe = startProbe(server.port);
  const waits: number[] = [];
  let isDone = false;
  const calling = (async () => {
    while (!isDone) {
      waits.push(await timeRequest(server.port, CALL));
      await pause(5);
    }
  })();
  let ran = ranBefore;
  while (ran < INSTANCES && performance.now() - startedAt < WINDOW_MS) {
    await pause(500);
    ran = await call<number>(server, "ran");
  }
  const seconds = (performance.now() - startedAt) / 1000;
  const taken = ran - ranBefore;
  const { cpu } = meter(taken);
  const loop = await call<{ p50: number; p99: number; max: number }>(server, "loopDelay");
  isDone = true;
  await calling;
  waits.sort((a, b) => a - b);
  return {
    taken,
    rate: taken / seconds,
    loop99: loop.p99,
    loopMax: loop.max,
    p50: percentile(waits, 0.5),
    p99: percentile(waits, 0.99),
    healthz: await probe.stop(),
    ...(cpu === undefined ? {} : { cpu }),
  };
}

const signalbox: Contender = {
  name: "signalbox",
  async start() {
    return {
      async measure() {
        const postgres = await openTestPostgres(["fsync=on", "shared_buffers=512MB", "max_wal_size=4GB"]);
        try {
          await leaveInstances(postgres.url);
          const server = await startNode(postgres.url);
          try {
            return await measure(server);
          } finally {
            await server.stop();
          }
        } finally {
          await postgres.drop();
        }
      },
      stop: async () => undefined,
    };
  },
};

export const workload: Workload = {
  name: "take-over",
  summary: SCENARIO,
  rounds: 1,
  contenders: [signalbox],
  scenarios: [
    {
      name: SCENARIO,
      metrics: [
        { name: "taken", unit: "instances whose work has run after 150 s", better: "higher" },
        { name: "rate", unit: "instances/s", better: "higher" },
        { name: "cpu", unit: "µs of CPU time of the node for an instance", better: "lower" },
        { name: "loop99", unit: "ms by which timers are late, 99th percentile", better: "lower" },
        { name: "loopMax", unit: "ms by which timers are late, at most", better: "lower", isDetail: true },
        { name: "p50", unit: "ms of a gateway call", better: "lower" },
        { name: "p99", unit: "ms of a gateway call", better: "lower" },
        { name: "healthz", unit: "ms at most", better: "lower", isDetail: true },
      ],
    },
  ],
  headlines: [
    ownFigure(
      "by which timers are late, 99th percentile, while a node takes over 100,000 instances",
      SCENARIO,
      "loop99",
      "ms",
    ),
  ],
  goals: [
    {
      text: "timers are late by less than 50 ms at the 99th percentile",
      isMet: (median) => (median("signalbox", SCENARIO, "loop99") ?? Infinity) < 50,
    },
  ],
};
