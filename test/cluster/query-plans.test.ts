/**
 * Plans of the statements of every list, count and usage query on PostgreSQL: none may read the whole of a large table or of one of its indexes. A plan
 * with sequential scans switched off has one only where no index can be used, so the result does not depend on how many rows a test can afford.
 */
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { callRecord, LOG_OPTIONS } from "../../packages/signalbox/src/engines/call-log/call-log-fixture.ts";
import { InstanceCatalog } from "../../packages/signalbox/src/agents/instance/instance-catalog.ts";
import { PostgresCallLog } from "../../packages/signalbox/src/engines/call-log/postgres/postgres-call-log.ts";
import type { SqlQuery } from "../../packages/signalbox/src/core/sql.ts";
import type { Database } from "../../packages/signalbox/src/database/database.ts";
import { migrate } from "../../packages/signalbox/src/database/migrate.ts";
import { PostgresDatabase } from "../../packages/signalbox/src/database/postgres/postgres-database.ts";
import { openTestPostgres, type TestPostgres } from "../support/test-postgres.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

/** Tables that grow with the work of a server, and the partitions of the call log. */
const LARGE =
  /^(?:call_log(?:_body)?_\d+|call_log_(?:hour|totals)|webhook_(?:delivery|event|attempt|stored_delivery)|agent_(?:instance|failure|turn)|audit_entry|tag_(?:resource|value|value_type|posting|bitmap|change|job|job_failure))$/;

const ROWS = 3000;
/** The number of the type of the tagged resources among the values. */
const TYPE_NO = ROWS + 1;
const DAY_MS = 86_400_000;
const FAR_AWAY = 9_000_000_000_000;
const ACCOUNT = "/accounts/default";

/** Rows like those of the product, by table; `n` is the number of the row. */
const FILL: readonly string[] = [
  `INSERT INTO webhook_delivery (id, account_id, source, status, http_status, received_at, duration_ms, delivery_id, type, title, agent, instance, headers, body_bytes)
   SELECT 'd' || lpad(n::text, 8, '0'), 'default', 'source-' || n % 5, CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'accepted' END, 200, n, 1, 'x' || n, 'type-' || n % 9, '', 'webhook-agent', 'i' || n, '{}', 0 FROM rows`,
  `INSERT INTO webhook_stored_delivery (id, account_id, source, delivery_id, type, title, entity_is_exact, target, received_at, headers, body_bytes, body)
   SELECT 's' || lpad(n::text, 8, '0'), 'default', 'source-' || n % 5, 'x' || n, 'type', '', 1, '/', n, '{}', 0, '' FROM rows`,
  `INSERT INTO webhook_event (id, account_id, source, route, delivery, type, received_at, state, attempts, tries, cause)
   SELECT 'e' || lpad(n::text, 8, '0'), 'default', 'source-' || n % 5, 'route', 's' || lpad(n::text, 8, '0'), 'type', n, CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'delivered' END, 1, 1, 'arrival' FROM rows`,
  `INSERT INTO webhook_attempt (id, account_id, event, number, cause, started_at, duration_ms, outcome)
   SELECT 'a' || lpad(n::text, 8, '0'), 'default', 'e' || lpad(n::text, 8, '0'), 1, 'arrival', n, 1, 'delivered' FROM rows`,
  // Two of three belong to nodes that are gone. Nothing is due before the year 2255, so that the server wakes none of them.
  `INSERT INTO agent_instance (account_id, agent, name, created_at, last_active_at, next_due_at, node)
   SELECT 'default', 'webhook-agent', 'i' || n, n, n, ${FAR_AWAY} + n, n % 3 FROM rows`,
  `INSERT INTO agent_failure (id, account_id, agent, name, at, kind, label, error)
   SELECT 'f' || lpad(n::text, 8, '0'), 'default', 'webhook-agent', 'i' || n, n, 'event', '', '{}' FROM rows`,
  `INSERT INTO agent_turn (id, account_id, agent, name, at, duration_us, kind, label)
   SELECT 't' || lpad(n::text, 8, '0'), 'default', 'webhook-agent', 'i' || n % 9, n, 1, 'rpc', 'm' FROM rows`,
  `INSERT INTO audit_entry (account_id, seq, at, id, actor, action, outcome, resource_type, resource_id, request_id, entry, hash)
   SELECT 'default', n, n, 'au' || n, 'root', 'update', 'success', 'token', 't' || n % 9, 'r' || n,
     '{"at":"2026-01-01T00:00:00.000Z","actor":{"type":"root","id":"","name":"root","session":null,"ip":null}}', '' FROM rows`,
  `INSERT INTO tag_account VALUES ('default', 1, ${ROWS} + 1, 2, ${ROWS} + 2, ${ROWS} + 1, 0)`,
  `INSERT INTO tag_resource SELECT 1, n, 'worker', 'w' || n, '', '', 'w' || n, 'w' || n, '{"env":"v' || n || '"}', 'v1:x', n FROM rows`,
  `INSERT INTO tag_key VALUES (1, 0, ':type', ':type', NULL, ${ROWS}, 0), (1, 1, 'env', 'env', NULL, ${ROWS}, 0)`,
  `INSERT INTO tag_value SELECT 1, 1, n, convert_to('v' || n, 'UTF8'), convert_to('v' || n, 'UTF8'), NULL, 1, 0 FROM rows`,
  `INSERT INTO tag_value VALUES (1, 0, ${TYPE_NO}, 'worker', 'worker', NULL, ${ROWS}, 0)`,
  `INSERT INTO tag_value_type SELECT 1, 1, ${TYPE_NO}, n, 1 FROM rows`,
  `INSERT INTO tag_posting SELECT 1, 1, n, n FROM rows`,
  `INSERT INTO tag_posting SELECT 1, 0, ${TYPE_NO}, n FROM rows`,
  `INSERT INTO tag_change SELECT 1, n, n, n, 'root', 'set', NULL, '{"env":"v' || n || '"}' FROM rows`,
  `INSERT INTO tag_job (id, account_id, actor, request, state, upto, position, total, changed, unchanged, failed, created_at, ended_at)
   SELECT 'j' || lpad(n::text, 8, '0'), 'default', 'root', '{"query":{"filters":[],"types":[],"ids":[],"name":null,"isCaseInsensitive":false},"operation":"delete","tags":[]}', 'done', 1, 1, 1, 1, 0, 0, n, n FROM rows`,
  `INSERT INTO tag_job_failure SELECT 'j00000001', n, 'worker', 'w' || n, '', '', 'tags_too_many_tags' FROM rows`,
];

/** Values of path parameters. */
const PARAMETERS: Readonly<Record<string, string>> = {
  account_id: "default",
  gateway_id: "default",
  agent_name: "webhook-agent",
  name: "i7",
  instance: "i7",
  delivery: "d00000007",
  event_id: "e00000007",
  job_id: "j00000001",
  tag_key: "env",
};

/** Filters and orders of lists, besides each list without them. */
const VARIANTS: readonly string[] = [
  ...["success=false", "model=gpt-5-mini", "status_code=200"].map((text) => {
    const [key, value] = text.split("=");
    return `/ai-gateway/gateways/default/logs?filters.key=${key}&filters.operator=eq&filters.value=${value}`;
  }),
  "/ai-gateway/gateways/default/logs?order_by=cost",
  "/ai-gateway/gateways/default/logs?search=user-1&meta_info=true",
  "/ai-gateway/gateways/default/logs?page=10",
  "/ai-gateway/logs?search=nothing",
  ...["hour", "day", "model", "provider", "gateway", "token", "owner", "user", "metadata:team"].map(
    (group) => `/ai-gateway/usage?group_by=${group}&start=2026-11-01T00:00:00Z&end=2026-12-01T00:00:00Z`,
  ),
  "/ai-gateway/usage?group_by=user&group_by=day&only=user=user-1",
  ...[
    "status=failed",
    "source=source-1",
    "type=type-3",
    "instance=i7",
    "delivery_id=x7",
    "unresolved=true",
    "search=x7",
  ].map((filter) => `/webhooks/deliveries?${filter}`),
  ...[
    "state=failed",
    "source=source-1",
    "route=route",
    "text=needle",
    "delivery=s00000007",
    "issue=is00000001",
    "replay=r00000001",
  ].map((filter) => `/webhooks/events?${filter}`),
  "/webhooks/deliveries/histogram?since=2026-11-01T00:00:00Z&until=2026-11-02T00:00:00Z&step_seconds=3600",
  ...["", "?failed=true", "?kind=rpc", "?cursor=t00000007"].map(
    (query) => `/agents/webhook-agent/instances/i7/timeline${query}`,
  ),
  ...["order=last_active", "order=queued", "order=dead_letters", "problem=any", "search=i77"].map(
    (filter) => `/agents/webhook-agent/instances?${filter}`,
  ),
  "/tags?resource_type=worker&resource_id=w7",
  "/tags/history?resource_type=worker&resource_id=w7",
  ...[
    "tag=env=v7",
    "tag=env",
    "tag=env!=v7",
    "tag=!nothing&total=exact",
    "type=worker",
    "id=w7",
    "name=w77",
  ].map((filter) => `/tags/resources?${filter}`),
  "/tags/values/env?prefix=v1&counts=true",
  "/tags/values/env?type=worker",
  "/tags/changes?after=5",
  ...["action=update", "resource_type=token", "actor=root"].map((filter) => `/audit_logs?${filter}`),
];

interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly Plans?: readonly PlanNode[];
}

interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

let postgres: TestPostgres;
let server: TestServer;
let admin: Client;
const statements = new Map<string, Statement & { readonly path: string }>();
let currentPath = "";
const original = Client.prototype.query;

beforeAll(async () => {
  postgres = await openTestPostgres();
  await fill();
  Client.prototype.query = function (this: Client, ...args: unknown[]) {
    const [first, second] = args as [string | Statement, unknown];
    const whole = typeof first === "string" ? first : first.text;
    const [, copied] = /^COPY \((.*)\) TO STDOUT/s.exec(whole) ?? [];
    const text = copied ?? whole;
    const values = typeof first === "string" ? (Array.isArray(second) ? second : []) : (first.values ?? []);
    if (currentPath !== "" && /^\s*(?:SELECT|WITH)\b/i.test(text) && !statements.has(text))
      statements.set(text, { text, values, path: currentPath });
    return Reflect.apply(original, this, args) as never;
  };
  server = await startTestServer({ environment: { DATABASE_URL: postgres.url } });
});
afterAll(async () => {
  Client.prototype.query = original;
  await server.stop();
  await admin.end();
  await postgres.drop();
});

async function fill(): Promise<void> {
  const rethrow = (error: Error) => {
    throw error;
  };
  const database = await PostgresDatabase.open(postgres.url, rethrow);
  await migrate(database);
  const log = await PostgresCallLog.open({ ...LOG_OPTIONS, database, url: postgres.url });
  for (let i = 0; i < ROWS; i++) {
    if (!log.hasRoom) await log.whenRoom();
    const createdAt = Date.now() - (i % 3) * DAY_MS;
    const metadata = JSON.stringify({ user: `user-${i % 20}`, team: "search" });
    log.record(callRecord({ createdAt, gatewayId: "default", tokenId: `t${i % 5}`, metadata }));
  }
  await log.close();
  await database.close();
  admin = new Client({ connectionString: postgres.url });
  await admin.connect();
  await admin.query(`CREATE TEMP TABLE rows AS SELECT n FROM generate_series(1, ${ROWS}) n`);
  for (const statement of FILL) await admin.query(statement);
  await admin.query("ANALYZE");
  await admin.query("SET enable_seqscan = off");
  const { rows } = await admin.query<{ name: string }>(
    "SELECT relname AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indpred IS NOT NULL",
  );
  partialIndexes = new Set(rows.map(({ name }) => name));
}

/** Indexes of few rows of a table, such as those with work that waits. */
let partialIndexes: ReadonlySet<string>;

/** Reads of a large table, or of one of its indexes, from end to end. A page reads an index without a condition up to its limit. */
function wholeReads(node: PlanNode, isLimited = false, parentTable = ""): string[] {
  const limited = isLimited || node["Node Type"] === "Limit";
  // The scan of an index for a bitmap has the table above it.
  const table = node["Relation Name"] ?? parentTable;
  const below = (node.Plans ?? []).flatMap((plan) => wholeReads(plan, limited, table));
  const index = node["Index Name"] ?? "";
  const isScan = node["Node Type"] === "Seq Scan";
  const isWholeIndex =
    /^(?:Index|Index Only|Bitmap Index) Scan$/.test(node["Node Type"]) &&
    node["Index Cond"] === undefined &&
    !limited &&
    !partialIndexes.has(index);
  return LARGE.test(table) && (isScan || isWholeIndex)
    ? [`${node["Node Type"]} of ${table}${isScan ? "" : ` by ${index}`}`, ...below]
    : below;
}

async function planOf(text: string, values: readonly unknown[]): Promise<PlanNode> {
  const { rows } = await admin.query<{ "QUERY PLAN": [{ Plan: PlanNode }] }>(
    `EXPLAIN (FORMAT JSON) ${text}`,
    [...values],
  );
  return rows[0]?.["QUERY PLAN"][0].Plan as PlanNode;
}

async function explain(text: string, values: readonly unknown[]): Promise<string[]> {
  return wholeReads(await planOf(text, values));
}

function nodeTypes(node: PlanNode): string[] {
  return [node["Node Type"], ...(node.Plans ?? []).flatMap(nodeTypes)];
}

it("a statement that reads a whole table or index is found", async () => {
  expect(await explain("SELECT * FROM webhook_delivery WHERE title = $1", ["x"])).toEqual([
    "Seq Scan of webhook_delivery",
  ]);
  expect((await explain("SELECT count(*) FROM audit_entry", [])).join()).toMatch(/of audit_entry/);
  expect(
    await explain("SELECT * FROM audit_entry WHERE account_id = $1 AND seq = $2", ["default", 7]),
  ).toEqual([]);
});

it("no list, count or usage query reads the whole of a large table", async () => {
  const { body } = await server.api("GET", "/openapi.json");
  const paths = Object.entries(body.paths as Record<string, { get?: unknown }>)
    .filter(([path, { get }]) => get !== undefined && path.startsWith("/accounts/{account_id}"))
    .map(([path]) => path.replaceAll(/\{(\w+)\}/g, (_, name: string) => PARAMETERS[name] ?? "none"))
    // An export reads everything by intention.
    .filter((path) => !path.endsWith("/export"));
  for (const path of [...paths, ...VARIANTS.map((variant) => ACCOUNT + variant)]) {
    currentPath = path;
    const { status } = await server.api("GET", path);
    expect([path, status < 500]).toEqual([path, true]);
  }
  currentPath = "";
  const found: string[] = [];
  for (const { text, values, path } of statements.values()) {
    const reads = await explain(text, values);
    if (reads.length > 0)
      found.push(`${path}: ${[...new Set(reads)].join(", ")}\n${text.replaceAll(/\s+/g, " ").slice(0, 400)}`);
  }
  expect(statements.size).toBeGreaterThan(60);
  expect([...statements.keys()].some((text) => text.includes("call_log_totals"))).toBe(true);
  expect(found).toEqual([]);
});

it("a page of the work that dead nodes have left is read in its order, however much there is", async () => {
  const pages: Statement[] = [];
  const read = async ({ parts, values }: SqlQuery) => {
    const text = parts.reduce((before, part, i) => `${before}$${i}${part}`);
    pages.push({ text, values });
    return (await admin.query(text, [...values])).rows;
  };
  const catalog = new InstanceCatalog({ all: read } as unknown as Database);
  const all = { agent: "webhook-agent", account: null, without: new Set<string>(), after: undefined };
  const living = ["0", "7"];
  const first = await catalog.orphans(living, all, 2 * FAR_AWAY, 100);
  const second = await catalog.orphans(living, { ...all, after: first.at(-1) }, 2 * FAR_AWAY, 100);
  const own = await catalog.orphans(living, { ...all, account: "default" }, 2 * FAR_AWAY, 100);
  const others = await catalog.orphans(living, { ...all, without: new Set(["default"]) }, 2 * FAR_AWAY, 100);
  expect([first.length, second.length, own.length, others.length]).toEqual([100, 100, 100, 0]);
  for (const { text, values } of pages)
    expect(nodeTypes(await planOf(text, values))).toEqual(["Limit", "Index Scan"]);
});
