/** A host of objects for tests: real store, catalog and directory in a folder. */
import { join } from "node:path";
import { Registry } from "prom-client";
import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { migrate } from "../../database/migrate.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import { type InstanceStore, openInstanceStore } from "../../engines/instance-store/index.ts";
import { OutgoingWebhooks } from "../../outgoing/index.ts";
import { createLogger } from "../../telemetry/logger.ts";
import { createAgentMetrics } from "../agent-metrics.ts";
import { SocketHub } from "../connections/socket-hub.ts";
import { ActivityHub } from "../instance/activity.ts";
import { AgentPulses } from "../instance/agent-pulse.ts";
import { BASE_SCHEMA, RESERVED_NAMES } from "../instance/base-schema.ts";
import { Directory } from "../instance/directory.ts";
import type { AnyInstance } from "../instance/instance.ts";
import type { MemoryLimits } from "../instance/instance-memory.ts";
import { ProblemIndex } from "../instance/problem-index.ts";
import { InstanceCatalog } from "../instance/instance-catalog.ts";
import { InstanceClasses } from "../instance/instance-classes.ts";
import { LOCAL_OBJECTS, type ObjectReach } from "./object-calls.ts";
import { ObjectHost } from "./object-host.ts";
import { ObjectPasts } from "./object-past.ts";
import type { ObjectClass, ObjectNamespace } from "./object-types.ts";
import { bindWorker } from "./worker-binding.ts";
import { installWorkerGlobals } from "./worker-globals.ts";

export interface HostOptions extends Partial<MemoryLimits> {
  readonly clock?: Clock;
  readonly historyDays?: number;
  /** Called before each sync of a database, which waits for it. */
  readonly beforeSync?: () => Promise<void>;
  /** Called before each database is closed, which waits for it. */
  readonly beforeClose?: () => Promise<void>;
  /** Called with each trusted statement without rows. */
  readonly onRun?: (text: string) => void;
  /** Variables and bindings beside the namespaces. */
  readonly env?: Readonly<Record<string, unknown>>;
}

export interface TestHost {
  readonly host: ObjectHost;
  readonly hub: SocketHub;
  readonly directory: Directory;
  /** The namespaces by export. */
  readonly env: Readonly<Record<string, ObjectNamespace>>;
  /** Those in memory. */
  instances(): Iterable<AnyInstance>;
  /** From now on stubs find objects on other nodes, too. */
  connect(reach: ObjectReach): void;
  close(): Promise<void>;
}

export async function openHost(
  folder: string,
  classes: Readonly<Record<string, ObjectClass>>,
  options: HostOptions = {},
): Promise<TestHost> {
  const { clock = systemClock, maxActiveInstances = 100, idleTimeoutMs = 3_600_000 } = options;
  const logger = createLogger({ level: "silent", isPretty: false });
  const database = await SqliteDatabase.open(join(folder, "signalbox.db"), fail);
  await migrate(database);
  const store = await openInstanceStore("journal", {
    folder: join(folder, "agents"),
    baseSchema: BASE_SCHEMA,
    reservedNames: RESERVED_NAMES,
    segmentBytes: 2 ** 20,
    onFailure: fail,
    onStall: fail,
  });
  const hub = new SocketHub({ pingIntervalMs: 30_000, maxBufferedBytes: 2 ** 20 });
  const catalog = new InstanceCatalog(database);
  const problems = new ProblemIndex({
    database,
    registered: () => catalog.flush(),
    isOwn: () => true,
    onFailure: () => undefined,
  });
  const metrics = createAgentMetrics(new Registry());
  const { beforeSync, beforeClose, onRun } = options;
  const isWatched = beforeSync !== undefined || beforeClose !== undefined || onRun !== undefined;
  const environment = {
    store: isWatched ? watched(store, options) : store,
    catalog,
    problems,
    timeline: null,
    pulses: new AgentPulses(),
    hub,
    activity: new ActivityHub(),
    metrics,
    ownership: null,
    clock,
    logger,
    limits: { maxWaitingTurns: 1000, turnTimeoutMs: 30_000, maxStateBytes: 2 ** 20 },
    outgoing: new OutgoingWebhooks({ allowPrivateHosts: true, clock }),
    spans: null,
    alertFeed: { current: null },
    callAgent: async () => unavailable(),
    variables: {},
    openSql: () => unavailable(),
    envOf: () => ({}),
    nameOf: () => unavailable(),
  };
  const registry = new InstanceClasses();
  const directory = new Directory({
    environment,
    limits: { maxActiveInstances, idleTimeoutMs },
    classes: registry,
    beforeDestroy: (ref) => host.removePast(ref),
    onDestroy: async () => {},
  });
  let reach = LOCAL_OBJECTS;
  const host = new ObjectHost({
    directory,
    clock,
    logger,
    account: "default",
    classes: registry,
    reach: () => reach,
    builtInNames: new Set(["built-in"]),
    pasts: new ObjectPasts({ ...environment, historyDays: options.historyDays ?? 0 }),
  });
  installWorkerGlobals();
  const env: Record<string, ObjectNamespace> = {};
  for (const [name, objectClass] of Object.entries(classes)) {
    host.register(name, objectClass);
    env[name] = host.namespace(name);
  }
  bindWorker({ env: { ...options.env, ...env }, exports: env, waitUntil: () => undefined });
  directory.start();
  return {
    host,
    hub,
    directory,
    env,
    instances: () => directory.instances(),
    connect(other) {
      reach = other;
    },
    async close() {
      await directory.stop();
      await host.settlePasts();
      await catalog.close();
      await store.close();
      await database.close();
    },
  };
}

/** The store, with databases whose syncs and closes wait, and whose statements are reported. */
function watched(store: InstanceStore, { beforeSync, beforeClose, onRun }: HostOptions): InstanceStore {
  const delayed = Object.create(store) as InstanceStore;
  for (const name of ["openToRead", "destroy", "queryReadOnly", "requireRoom"] as const)
    Object.defineProperty(delayed, name, { value: (store[name] as () => unknown).bind(store) });
  Object.defineProperty(delayed, "problem", { get: () => store.problem });
  delayed.open = async (...args) => {
    const database = await store.open(...args);
    const sync = database.sync.bind(database);
    if (beforeSync !== undefined) database.sync = () => beforeSync().then(sync);
    const close = database.close.bind(database);
    if (beforeClose !== undefined) database.close = () => beforeClose().then(close);
    const run = database.run.bind(database);
    database.run = (query) => {
      onRun?.(query.parts.join("?"));
      return run(query);
    };
    return database;
  };
  return delayed;
}

function fail(error: Error): never {
  throw error;
}

function unavailable(): never {
  throw new Error("there are no agents");
}
