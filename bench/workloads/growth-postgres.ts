/**
 * The requests of the workload `growth` on PostgreSQL: a million calls, 100,000 instances and deliveries, a million tagged resources. Instances and
 * deliveries are rows that SQL has made, so that building the data takes some minutes. `--quick` builds a fiftieth.
 */
import { Client } from "pg";
import { migrate } from "../../packages/signalbox/src/database/migrate.ts";
import { PostgresDatabase } from "../../packages/signalbox/src/database/postgres/postgres-database.ts";
import { PostgresCallLog } from "../../packages/signalbox/src/engines/call-log/postgres/postgres-call-log.ts";
import { openTestPostgres } from "../../test/support/test-postgres.ts";
import { LOG_OPTIONS } from "../support/call-record.ts";
import { storeCalls } from "../support/growth-data.ts";
import {
  createGateways,
  growthRequests,
  measureRequest,
  REQUEST_METRICS,
} from "../support/growth-requests.ts";
import { isQuick } from "../support/quick.ts";
import { startSignalbox, THIS_CHECKOUT } from "../support/signalbox.ts";
import { storeTagsIn } from "../support/store-tags.ts";
import { TagData } from "../support/tag-data.ts";
import { ROOT_TOKEN } from "../support/tag-server.ts";
import { type Contender, ownFigure, type Workload } from "../support/workload.ts";

const SHARE = isQuick ? 1 / 50 : 1;
const CALLS = 1_000_000 * SHARE;
const INSTANCES = 100_000 * SHARE;
const RESOURCES = 1_000_000 * SHARE;
const REQUESTS = growthRequests(Math.ceil(333 * SHARE));
/** Nothing is due while the benchmark runs. */
const NEVER = "NULL";

/** `rows` has the numbers of the rows. Every thousandth instance has a problem, every fiftieth delivery has failed. */
const FILL: readonly string[] = [
  `INSERT INTO agent_instance (account_id, agent, name, created_at, last_active_at, next_due_at, node, dead_letters)
   SELECT 'default', 'webhook-agent', 'device-' || n, n, n, ${NEVER}, NULL, CASE WHEN n % 1000 = 0 THEN 1 ELSE 0 END FROM rows`,
  `INSERT INTO webhook_delivery (id, account_id, source, status, http_status, received_at, duration_ms, delivery_id, type, title, agent, instance, headers, body_bytes)
   SELECT '01KA' || lpad(n::text, 22, '0'), 'default', 'generic', CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'accepted' END, 200, n, 1, 'x' || n,
     CASE WHEN n % 50 = 1 THEN 'alarm' ELSE 'reading' END, '', 'webhook-agent', 'device-' || n, '{}', 30 FROM rows`,
  "ANALYZE",
];

function rethrow(error: Error): never {
  throw error;
}

const signalbox: Contender = {
  name: "signalbox",
  async start() {
    const postgres = await openTestPostgres(["fsync=on", "shared_buffers=512MB", "max_wal_size=4GB"]);
    const database = await PostgresDatabase.open(postgres.url, rethrow);
    await migrate(database);
    const log = await PostgresCallLog.open({ ...LOG_OPTIONS, maxAgeDays: 31, database, url: postgres.url });
    await storeCalls(log, CALLS);
    await storeTagsIn(database, new TagData(RESOURCES));
    await database.close();
    const admin = new Client({ connectionString: postgres.url });
    await admin.connect();
    await admin.query(`CREATE TEMP TABLE rows AS SELECT n FROM generate_series(1, ${INSTANCES}) n`);
    for (const statement of FILL) await admin.query(statement);
    await admin.end();
    const server = await startSignalbox({
      checkout: THIS_CHECKOUT,
      config: { webhooks: { keepDeliveries: 100_000 }, gateway: { logs: { maxAgeDays: 31 } } },
      env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, SIGNALBOX_LOG_LEVEL: "error", DATABASE_URL: postgres.url },
    });
    await createGateways(server.port);
    return {
      measure: (scenario) => measureRequest(server, REQUESTS[scenario] ?? ""),
      cpuTimes: server.cpuTimes,
      async stop() {
        await server.stop();
        await postgres.drop();
      },
    };
  },
};

export const workload: Workload = {
  name: "growth-postgres",
  summary: `${CALLS.toLocaleString("en")} calls, ${INSTANCES.toLocaleString("en")} instances and deliveries, ${RESOURCES.toLocaleString("en")} tagged resources on PostgreSQL`,
  rounds: isQuick ? 1 : 2,
  contenders: [signalbox],
  scenarios: Object.keys(REQUESTS).map((name) => ({ name, metrics: REQUEST_METRICS })),
  headlines: [
    ownFigure(
      "usage of 30 days by user on PostgreSQL, over a million calls",
      "usage: 30 days by user",
      "p50",
      "ms",
    ),
  ],
  goals: [
    {
      text: "usage of 30 days under 200 ms",
      isMet: (median) =>
        Object.keys(REQUESTS)
          .filter((name) => name.startsWith("usage"))
          .every((name) => (median(signalbox.name, name, "p50") ?? Infinity) < 200),
    },
    {
      text: "other requests wait under 50 ms",
      isMet: (median) =>
        Object.keys(REQUESTS).every((name) => (median(signalbox.name, name, "healthz") ?? Infinity) < 50),
    },
  ],
};
