/** What an `Agent` object can do, in terms of its instance. */
import { SignalboxError } from "@signalbox/protocol";
import type { DeliveryOutcome } from "../../contracts/agents-door.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import type { SqlValue } from "../../core/sql.ts";
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import type { InstanceRef } from "./instance-ref.ts";
import type { OutputGate, Transactions } from "../../engines/turn-runtime/index.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { AgentEnvironment, AgentHost, WebhookOptions } from "../api/agent-host.ts";
import type { Connection } from "../api/connection.ts";
import type { ConnectionGroup, LiveConnection } from "../connections/live-connection.ts";
import type { DeadLetters } from "../work/dead-letters.ts";
import type { Schedules } from "../work/schedules.ts";
import type { WorkQueue } from "../work/work-queue.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import type { InstanceEnvironment } from "./instance-environment.ts";
import type { InstanceState } from "./instance-state.ts";

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

  constructor(live: HostedAgent, parts: HostParts) {
    const { definition, environment, ref } = parts;
    const { database } = live;
    this.account = ref.account;
    this.agent = ref.agent;
    this.name = ref.name;
    this.isNew = database.isNew;
    this.startedWith = database.isNew ? definition.initialSchema : "";
    this.env = environment.variables;
    this.logger = environment.logger;
    this.workQueue = live.workQueue;
    this.deadLetters = live.deadLetters;
    this.schedules = live.schedules;
    this.#live = live;
    this.#parts = parts;
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
    const { database, transactions } = this.#live;
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
      throw new TypeError(`${definition.className} has no method "${name}" of its own`);
  }

  isStarting(): boolean {
    return this.#live.isStarting;
  }

  broadcast(message: string | Uint8Array, withoutIds: readonly string[]): void {
    this.#parts.group.broadcast(message, withoutIds);
  }

  connections(tag?: string): Connection[] {
    return this.#parts.group.list(tag);
  }

  connection(id: string): Connection | undefined {
    return this.#parts.group.find(id);
  }

  setReadonly(connection: Connection, isReadonly: boolean): void {
    (connection as LiveConnection).isReadonly = isReadonly;
  }

  isReadonly(connection: Connection): boolean {
    return (connection as LiveConnection).isReadonly;
  }

  async sendWebhook(
    url: string,
    payload: unknown,
    options: WebhookOptions,
  ): Promise<{ readonly id: string; readonly status: number }> {
    // Serialised before the wait: the caller may change the payload afterwards.
    const body = JSON.stringify(payload ?? null);
    await this.#live.outputs.pass();
    return this.#parts.environment.outgoing.send({ url, body, ...options });
  }

  async fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    await this.#live.outputs.pass();
    return fetch(input, init);
  }

  destroy(): Promise<void> {
    return this.#parts.requestDestroy();
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
    default:
      if (value === null || value instanceof Uint8Array) return value;
  }
  throw new SignalboxError("agent_sql", {
    message: `SQL values are text, numbers, booleans, null or bytes, not ${value === undefined ? "undefined" : typeof value}`,
  });
}
