/** Nodes that share limits in a real PostgreSQL, inside one process. A killed node sends nothing more, and receives no answer. */
import type { SignalboxError } from "@signalbox/protocol";
import { openTestPostgres } from "../../../../../test/support/test-postgres.ts";
import type { Clock } from "../../core/clock.ts";
import { rawSql, sql } from "../../core/sql.ts";
import type { Database } from "../../database/database.ts";
import { migrate } from "../../database/migrate.ts";
import { PostgresDatabase } from "../../database/postgres/postgres-database.ts";
import type { Token, TokenPolicy } from "../../accounts/index.ts";
import type { Gateway } from "../settings/gateway.ts";
import { DEFAULT_SETTINGS, gatewayUpdate, pickSettings } from "../settings/gateway-settings.ts";
import type { CallRules } from "./call-rules.ts";
import { Refusal } from "./limit-refusal.ts";
import type { StepDemand } from "./limit-rule.ts";
import { Limits } from "./limits.ts";
import { ShareTable } from "./share-table.ts";
import { SharedLedger } from "./shared-ledger.ts";

export interface SharedNode {
  readonly limits: Limits;
  readonly ledger: SharedLedger;
  readonly inc: string;
  /** Messages of soft budgets. */
  readonly exceeded: number[];
  /** As `kill -9`, and declared dead. */
  kill(): Promise<void>;
  readonly whenKilled: Promise<void>;
  /** Declared dead while it runs, as after a pause; it joins again. */
  declareDead(): Promise<void>;
  stop(): Promise<void>;
}

export interface SharedCluster {
  readonly database: PostgresDatabase;
  /** What nodes reported. */
  readonly errors: unknown[];
  readonly server: Awaited<ReturnType<typeof openTestPostgres>>;
  /** Default: the clock of the test. */
  openNode(clock?: Clock): Promise<SharedNode>;
  /** Counts what dead nodes had, as every living node does. */
  settleDead(): Promise<void>;
  close(): Promise<void>;
}

export async function openSharedCluster(): Promise<SharedCluster> {
  const server = await openTestPostgres();
  const database = await PostgresDatabase.open(server.url, (error) => {
    throw error;
  });
  await migrate(database);
  const nodes: SharedNode[] = [];
  const errors: unknown[] = [];
  return {
    database,
    errors,
    server,
    async openNode(clock = { now: () => Date.now() }) {
      const node = await openNode(database, errors, clock);
      nodes.push(node);
      return node;
    },
    settleDead: () => new ShareTable(database).settleDead(),
    async close() {
      for (const node of nodes) await node.stop();
      await database.close();
      await server.drop();
    },
  };
}

/** The node has no heartbeats: the others must not take its silence for its death. */
export async function joinNode(database: Database): Promise<string> {
  const row = await database.get<{ inc: string }>(
    rawSql(`INSERT INTO signalbox_node SELECT (jsonb_populate_record(n, jsonb_build_object(
      'inc', nextval('signalbox_node_inc_seq'), 'state', 'up', 'dead_after_ms', 3600000))).*
      FROM signalbox_node n LIMIT 1 RETURNING inc::text AS inc`),
  );
  if (row === undefined) throw new Error("no incarnation");
  return row.inc;
}

async function openNode(shared: PostgresDatabase, errors: unknown[], clock: Clock): Promise<SharedNode> {
  let inc = await joinNode(shared);
  let isKilled = false;
  let isStopped = false;
  const killed = Promise.withResolvers<void>();
  const never = new Promise<never>(() => undefined);
  const lossy = async <T>(work: () => Promise<T>): Promise<T> => {
    if (isKilled) return never;
    const result = await work();
    return isKilled ? never : result;
  };
  const database: Database = {
    engine: "postgres",
    problem: null,
    all: (query) => lossy(() => shared.all(query)),
    scan: (query) => lossy(() => shared.all(query)),
    get: (query) => lossy(() => shared.get(query)),
    run: (query) => lossy(() => shared.run(query)),
    transaction: (work, options) => lossy(() => shared.transaction(work, options)),
    close: () => Promise.resolve(),
  };
  const exceeded: number[] = [];
  const ledger = new SharedLedger({
    database,
    clock,
    incarnation: () => inc,
    earlierJournal: "/nonexistent",
    onError: (error) => void errors.push(error),
    onSoftBudget: (_rule, used) => void exceeded.push(used),
  });
  const limits = new Limits(ledger);
  await ledger.start();
  const bury = () => shared.all(sql`UPDATE signalbox_node SET state = 'dead' WHERE inc = ${inc}::bigint`);
  return {
    limits,
    ledger,
    get inc() {
      return inc;
    },
    exceeded,
    whenKilled: killed.promise,
    async kill() {
      isKilled = true;
      await bury();
      killed.resolve();
    },
    async declareDead() {
      await bury();
      inc = await joinNode(shared);
    },
    async stop() {
      if (isKilled || isStopped) return;
      isStopped = true;
      await ledger.stop();
      await shared.all(sql`DELETE FROM signalbox_node WHERE inc = ${inc}::bigint`);
    },
  };
}

/** About an hour in seconds: a fixed window of this length has at least half of itself left, so that none ends during a test. */
export function aboutAnHour(): number {
  let seconds = 3600;
  while (Date.now() % (seconds * 1000) > seconds * 500) seconds -= 1;
  return seconds;
}

let gateways = 0;

/** A gateway with rules, and no row: limits need only its settings. */
export function gatewayWith(settings: object, rules: readonly object[] = []): Gateway {
  gateways += 1;
  const spend_limits = rules.length === 0 ? null : { enabled: true, rules };
  return {
    accountId: "default",
    id: `g${gateways}`,
    isDefault: false,
    createdAt: 1,
    modifiedAt: 1,
    settings: { ...DEFAULT_SETTINGS, ...pickSettings(gatewayUpdate.parse({ ...settings, spend_limits })) },
    cacheGeneration: 0,
  };
}

/** The same gateway with other rules. */
export function withRules(gateway: Gateway, rules: readonly object[]): Gateway {
  const spend_limits = { enabled: true, rules };
  return {
    ...gateway,
    settings: { ...gateway.settings, ...pickSettings(gatewayUpdate.parse({ spend_limits })) },
  };
}

export function demandOf(dollars: number, tokens = 0, isBounded = true, most = dollars): StepDemand {
  return { provider: "openai", model: "m", cost: dollars, most, tokens, isBounded };
}

export function rulesOf(node: SharedNode, gateway: Gateway): CallRules {
  const rules = node.limits.rulesOf(gateway, null);
  if (rules === null) throw new Error("the gateway has no rules");
  return rules;
}

/** Counts one request; null when it passes. */
export async function request(node: SharedNode, gateway: Gateway): Promise<SignalboxError | null> {
  const taken = await rulesOf(node, gateway).arrive([demandOf(0)]);
  if (taken instanceof Refusal) return taken.toError();
  taken.release();
  return null;
}

/** Reserves; the refusal, or what settles the call. */
export async function reserve(
  node: SharedNode,
  gateway: Gateway,
  demand: StepDemand,
): Promise<SignalboxError | ((cost: number, tokens?: number) => void)> {
  const rules = rulesOf(node, gateway);
  const taken = await rules.reserve([demand]);
  if (taken instanceof Refusal) return taken.toError();
  return (cost, tokens = 0) => rules.settle(taken, [{ provider: "openai", models: ["m"], cost, tokens }]);
}

/** What the database has of a bucket; undefined when it has no row. */
export function rowOf(database: Database, gateway: Gateway, bucket: string) {
  return database.get<{
    used: Record<string, number>;
    held: number;
    spare: number;
    loans: Record<string, number[]>;
    window_key: string;
  }>(
    sql`SELECT used, held, spare, loans, window_key FROM limit_share
        WHERE owner LIKE ${`gateway ${gateway.id} %`} AND bucket = ${bucket}`,
  );
}

export function usedOf(row: { readonly used: Record<string, number> } | undefined): number {
  return Object.values(row?.used ?? {}).reduce((sum, amount) => sum + amount, 0);
}

/** A token with a policy. */
export function tokenWith(policy: Partial<TokenPolicy>): Token {
  return {
    id: `t${++gateways}`,
    accountId: "default",
    name: "test",
    hash: "",
    suffix: "",
    permissions: new Set(),
    gatewayId: null,
    createdAt: 1,
    expiresAt: null,
    isDisabled: false,
    previous: null,
    policy: {
      budgets: [],
      softBudget: null,
      rateLimits: [],
      models: [],
      providers: [],
      routes: [],
      guardrails: [],
      metadata: {},
      owner: null,
      tags: {},
      ...policy,
    },
  };
}
