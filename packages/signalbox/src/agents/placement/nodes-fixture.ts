/** Nodes of a cluster in one process: each with its own store, catalog and directory, on one real PostgreSQL. There are no links between them. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { Registry } from "prom-client";
import type { TestPostgres } from "../../../../../test/support/test-postgres.ts";
import { systemClock } from "../../core/clock.ts";
import type { Database } from "../../database/database.ts";
import { migrate } from "../../database/migrate.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import { openSharedStore, type SharedInstanceStore } from "../../engines/instance-store/index.ts";
import { OutgoingWebhooks } from "../../outgoing/index.ts";
import { createLogger, type Logger } from "../../telemetry/logger.ts";
import { createAgentMetrics } from "../agent-metrics.ts";
import type { AgentClass } from "../api/agent.ts";
import { SocketHub } from "../connections/socket-hub.ts";
import { ActivityHub } from "../instance/activity.ts";
import { AgentPulses } from "../instance/agent-pulse.ts";
import { AgentDefinition } from "../instance/agent-definition.ts";
import { BASE_SCHEMA, RESERVED_NAMES } from "../instance/base-schema.ts";
import { Directory } from "../instance/directory.ts";
import { ProblemIndex } from "../instance/problem-index.ts";
import { InstanceCatalog } from "../instance/instance-catalog.ts";
import { InstanceClasses } from "../instance/instance-classes.ts";
import type { InstanceEnvironment } from "../instance/instance-environment.ts";
import type { Instance } from "../instance/instance.ts";
import { databaseName } from "../instance/instance-ref.ts";
import { callMethod } from "../instance/method-call.ts";
import { ClusterInstances } from "./cluster-instances.ts";
import { ClusterPlacement } from "./cluster-placement.ts";
import { FakeNetwork, member } from "./placement-fixture.ts";

export class TestNodes {
  readonly postgres: TestPostgres;
  readonly nodes = new Map<string, TestNode>();
  readonly #folder: string;
  readonly #database: Database;
  readonly #definition: AgentDefinition;
  #incs = 0;

  private constructor(postgres: TestPostgres, folder: string, database: Database, agentClass: AgentClass) {
    this.postgres = postgres;
    this.#folder = folder;
    this.#database = database;
    this.#definition = new AgentDefinition(agentClass, null);
  }

  /** Removes all instances of earlier tests. */
  static async open(postgres: TestPostgres, agentClass: AgentClass): Promise<TestNodes> {
    const client = new Client({ connectionString: postgres.url });
    // A failed query reports it.
    client.on("error", () => undefined);
    await client.connect();
    await client.query("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    await client.end();
    const folder = await mkdtemp(join(tmpdir(), "signalbox-nodes-"));
    const database = await SqliteDatabase.open(join(folder, "signalbox.db"), fail);
    await migrate(database);
    return new TestNodes(postgres, folder, database, agentClass);
  }

  /** Another node joins. */
  async join(): Promise<TestNode> {
    const inc = String(++this.#incs);
    const node = await TestNode.open(inc, this, {
      folder: join(this.#folder, inc),
      database: this.#database,
      definition: this.#definition,
    });
    this.nodes.set(inc, node);
    this.changed();
    return node;
  }

  /** The others have declared the node dead. It does not know yet. */
  declareDead(node: TestNode): void {
    this.nodes.delete(node.inc);
    this.changed();
  }

  changed(): void {
    const members = [...this.nodes.values()].map(({ inc, isDraining }) =>
      member(inc, isDraining ? "draining" : "up"),
    );
    for (const { network } of this.nodes.values()) network.setMembers(...members);
  }

  async close(): Promise<void> {
    await this.#database.close();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

interface NodeParts {
  readonly folder: string;
  readonly database: Database;
  readonly definition: AgentDefinition;
}

export class TestNode {
  readonly inc: string;
  readonly network: FakeNetwork;
  readonly store: SharedInstanceStore;
  readonly directory: Directory;
  readonly catalog: InstanceCatalog;
  readonly placement: ClusterPlacement;
  readonly instances: ClusterInstances;
  /** Errors and warnings in the log. */
  readonly logged: string[];
  readonly logger: Logger;
  isDraining = false;
  readonly lease: { isFresh: boolean };
  readonly hub = new SocketHub({ pingIntervalMs: 30_000, maxBufferedBytes: 2 ** 20 });
  readonly definition: AgentDefinition;

  static async open(inc: string, nodes: TestNodes, parts: NodeParts): Promise<TestNode> {
    const lease = { isFresh: true };
    const store = await openSharedStore({
      folder: parts.folder,
      stores: [nodes.postgres.url],
      maxCacheBytes: 2 ** 30,
      nodes: {
        self: inc,
        get isLeaseFresh() {
          return lease.isFresh;
        },
        readLiving: () => Promise.resolve(new Set(nodes.nodes.keys())),
      },
      baseSchema: BASE_SCHEMA,
      reservedNames: RESERVED_NAMES,
      onFailure: fail,
      onStall: fail,
      onError: fail,
    });
    return new TestNode(inc, store, parts, lease);
  }

  private constructor(
    inc: string,
    store: SharedInstanceStore,
    { database, definition }: NodeParts,
    lease: { isFresh: boolean },
  ) {
    this.inc = inc;
    this.store = store;
    this.definition = definition;
    this.network = new FakeNetwork(inc);
    this.network.self = inc;
    const { ownership } = store;
    this.lease = lease;
    this.logged = [];
    const logger = createLogger({ level: "silent", isPretty: false });
    const record = (_: object, message: string) => this.logged.push(message);
    Object.assign(logger, { error: record, warn: record });
    this.logger = logger;
    this.catalog = new InstanceCatalog(database, fail, {
      self: inc,
      epochOf: (ref) => ownership.epochOf(databaseName(ref)),
    });
    const environment: InstanceEnvironment = {
      store,
      ownership,
      catalog: this.catalog,
      problems: new ProblemIndex({
        database,
        registered: () => this.catalog.flush(),
        isOwn: (ref) => ownership.isHeld(databaseName(ref)),
        onFailure: fail,
      }),
      timeline: null,
      pulses: new AgentPulses(),
      hub: this.hub,
      activity: new ActivityHub(),
      spans: null,
      alertFeed: { current: null },
      metrics: createAgentMetrics(new Registry()),
      clock: systemClock,
      logger,
      limits: { maxWaitingTurns: 1000, turnTimeoutMs: 0, maxStateBytes: 2 ** 20 },
      outgoing: new OutgoingWebhooks({ allowPrivateHosts: true, clock: systemClock }),
      callAgent: async () => unavailable(),
      variables: {},
      openSql: () => unavailable(),
      envOf: () => ({}),
      nameOf: () => unavailable(),
    };
    const classes = new InstanceClasses();
    classes.agents.set(definition.kebab, definition);
    const limits = { maxActiveInstances: 100, idleTimeoutMs: 3_600_000 };
    const nothing = async () => {};
    this.directory = new Directory({
      environment,
      limits,
      classes,
      beforeDestroy: nothing,
      onDestroy: nothing,
    });
    this.placement = new ClusterPlacement({ network: this.network, ownership, maxReachMs: 5000 });
    this.instances = new ClusterInstances({
      network: this.network,
      ownership,
      catalog: this.catalog,
      directory: this.directory,
      placement: this.placement,
      clock: systemClock,
      steadyClock: systemClock,
      logger,
    });
  }

  ref(name: string): { account: string; agent: string; name: string } {
    return { account: "default", agent: this.definition.kebab, name };
  }

  instance(name: string): Instance {
    return this.directory.get(this.definition, "default", name);
  }

  /** Calls a method of the instance, which must run here. */
  async call(name: string, method: string, ...args: unknown[]): Promise<unknown> {
    const result = await callMethod(this.instance(name), method, args, { callers: [] });
    return result === undefined ? undefined : JSON.parse(result);
  }

  async stop(): Promise<void> {
    this.instances.stop();
    await this.directory.stop();
    await this.catalog.close();
    await this.store.close();
  }
}

function unavailable(): never {
  throw new Error("not part of the fixture");
}

function fail(error: unknown): never {
  throw error;
}
