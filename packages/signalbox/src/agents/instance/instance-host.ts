/** What an `Agent` object can do, in terms of its instance. */
import { SignalboxError } from "@signalbox/protocol";
import type { DeliveryOutcome } from "../../contracts/agent-deliveries.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import type { SqlValue } from "../../core/sql.ts";
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import {
  currentTurn,
  type OutputGate,
  runOutsideTurns,
  type Transactions,
} from "../../engines/turn-runtime/index.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { type AgentContext, AgentId } from "../api/agent-context.ts";
import type { AgentEnvironment, AgentHost, WebhookOptions } from "../api/agent-host.ts";
import type { Connection, ConnectionMessage } from "../api/connection.ts";
import type { ConnectionGroup } from "../connections/connection-group.ts";
import type { LiveConnection } from "../connections/live-connection.ts";
import type { DeadLetters } from "../work/dead-letters.ts";
import type { Schedules } from "../work/schedules.ts";
import type { WorkQueue } from "../work/work-queue.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import type { InstanceEnvironment } from "./instance-environment.ts";
import type { InstanceRef } from "./instance-ref.ts";
import type { InstanceState } from "./instance-state.ts";
import { tracedFetch, tracedWebhook } from "./traced-sending.ts";

type SentWebhook = Awaited<ReturnType<AgentHost["sendWebhook"]>>;

/** The live agent, as its host uses it. */
export interface HostedAgent {
  readonly database: InstanceDatabase;
  readonly transactions: Transactions;
  readonly outputs: OutputGate;
  readonly state: InstanceState;
  readonly workQueue: WorkQueue;
  readonly deadLetters: DeadLetters;
  readonly schedules: Schedules;
  readonly isStarting: boolean;
  deliver(event: WebhookEvent): DeliveryOutcome | Promise<DeliveryOutcome>;
  writeState(next: unknown, source: Connection | "server"): void;
}

export interface HostParts {
  readonly definition: AgentDefinition;
  readonly ref: InstanceRef;
  readonly environment: InstanceEnvironment;
  readonly group: ConnectionGroup;
  readonly runtime: { hold(): () => void };
  readonly onHookError: (error: unknown, hook: string) => void;
  readonly requestDestroy: () => Promise<void>;
}

export class InstanceHost implements AgentHost {
  readonly account: string;
  readonly agent: string;
  readonly name: string;
  readonly isNew: boolean;
  readonly startedWith: string;
  readonly env: AgentEnvironment;
  readonly logger: Logger;
  readonly workQueue: WorkQueue;
  readonly deadLetters: DeadLetters;
  readonly schedules: Schedules;
  readonly #live: HostedAgent;
  readonly #parts: HostParts;
  #storage: AgentContext["storage"] | undefined;

  constructor(live: HostedAgent, parts: HostParts) {
    const { definition, environment, ref } = parts;
    const { database } = live;
    this.account = ref.account;
    this.agent = ref.agent;
    this.name = ref.name;
    this.isNew = database.isNew;
    this.startedWith = database.isNew ? definition.initialSchema : "";
    this.env = environment.envOf(ref.account);
    this.logger = environment.logger;
    this.workQueue = live.workQueue;
    this.deadLetters = live.deadLetters;
    this.schedules = live.schedules;
    this.#live = live;
    this.#parts = parts;
  }

  get id(): AgentId {
    return new AgentId(this.name);
  }

  /** Created on first use: few agents need it. */
  get storage(): AgentContext["storage"] {
    this.#storage ??= { sql: this.#parts.environment.openSql(this.#live) };
    return this.#storage;
  }

  now(): number {
    return this.#parts.environment.clock.now();
  }

  deliver(event: WebhookEvent): DeliveryOutcome | Promise<DeliveryOutcome> {
    return this.#live.deliver(event);
  }

  readState(): unknown {
    return this.#live.state.value;
  }

  writeState(next: unknown, source: Connection | "server"): void {
    this.#live.writeState(next, source);
  }

  query(parts: readonly string[], values: readonly unknown[]): Record<string, unknown>[] {
    const { spans } = this.#parts.environment;
    return spans === null ? this.#query(parts, values) : spans.sql(parts, () => this.#query(parts, values));
  }

  #query(parts: readonly string[], values: readonly unknown[]): Record<string, unknown>[] {
    const { database, transactions } = this.#live;
    transactions.requirePresent();
    const statement = database.guardedStatement(parts);
    if (statement.isWrite) transactions.open();
    return statement.all(values.map(toSqlValue));
  }

  mayInsert(parts: readonly string[], table: string): boolean {
    return this.#live.database.guardedStatement(parts).mayInsert(table);
  }

  checkMethod(name: string): void {
    const { definition } = this.#parts;
    if (!definition.hasMethod(name))
      throw new TypeError(`${definition.exportName} has no method "${name}" of its own`);
  }

  isStarting(): boolean {
    return this.#live.isStarting;
  }

  broadcast(message: ConnectionMessage, withoutIds: readonly string[]): void {
    // Also for code that belongs to no turn: the connections may belong to a successor of this object.
    this.#live.transactions.requirePresent();
    this.#parts.group.broadcast(message, withoutIds);
  }

  connections(tag?: string): Connection[] {
    return this.#parts.group.list(tag);
  }

  connection(id: string): Connection | undefined {
    return this.#parts.group.find(id);
  }

  setReadonly(connection: Connection, isReadonly: boolean): void {
    (connection as LiveConnection).isReadonlyForAgent = isReadonly;
  }

  isReadonly(connection: Connection): boolean {
    return (connection as LiveConnection).isReadonly;
  }

  hasProtocol(connection: Connection): boolean {
    return (connection as LiveConnection).hasProtocol;
  }

  asOwner(work: () => void): void {
    if (currentTurn()?.isWriteAllowed === false) runOutsideTurns(work);
    else work();
  }

  async sendWebhook(url: string, payload: unknown, options: WebhookOptions): Promise<SentWebhook> {
    // Serialised before the wait: the caller may change the payload afterwards.
    const body = JSON.stringify(payload ?? null);
    await this.#live.outputs.pass();
    const { outgoing, spans } = this.#parts.environment;
    const webhook = { url, body, ...options };
    return spans === null ? outgoing.send(webhook) : tracedWebhook(spans, outgoing, webhook);
  }

  async fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    await this.#live.outputs.pass();
    const { spans } = this.#parts.environment;
    return spans === null ? fetch(input, init) : tracedFetch(spans, input, init);
  }

  async destroy(): Promise<void> {
    currentTurn()?.requireWritable();
    return this.#parts.requestDestroy();
  }

  hold(): () => void {
    this.#live.transactions.requirePresent();
    return this.#parts.runtime.hold();
  }

  waitUntil(work: Promise<unknown>): void {
    const release = this.hold();
    Promise.resolve(work).then(release, (error: unknown) => {
      this.#parts.onHookError(error, "work passed to waitUntil");
      release();
    });
  }
}

function toSqlValue(value: unknown): SqlValue {
  switch (typeof value) {
    case "string":
    case "number":
    case "bigint":
      return value;
    case "boolean":
      return value ? 1 : 0;
    case "undefined":
      return null;
    default:
      if (value === null || value instanceof Uint8Array) return value;
      if (value instanceof ArrayBuffer) return new Uint8Array(value);
      if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  }
  throw new SignalboxError("agent_sql", {
    message: `SQL values are text, numbers, booleans, null, undefined or bytes, not ${typeof value}`,
  });
}
