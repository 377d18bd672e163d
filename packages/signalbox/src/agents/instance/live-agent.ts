/**
 * The agent's object with its stored parts and its work pump, while the database is open. Turns receive it as their subject, so code outside
 * of turns cannot reach it.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import type { DeliveryOutcome } from "../../contracts/agents-door.ts";
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import type { InstanceRef } from "./instance-ref.ts";
import {
  currentTurn,
  runOutsideTurns,
  type OutputGate,
  type Transactions,
  type TurnRuntime,
} from "../../engines/turn-runtime/index.ts";
import type { AnyAgent } from "../api/agent.ts";
import type { Connection, ConnectionMessage } from "../api/connection.ts";
import { type AgentContext, AgentId } from "../api/agent-context.ts";
import type { AgentOrigin } from "../api/current-agent.ts";
import type { ConnectionGroup } from "../connections/connection-group.ts";
import type { LiveConnection } from "../connections/live-connection.ts";
import { openWork } from "../work/open-work.ts";
import { WorkPump } from "../work/work-pump.ts";
import { QUEUED_WEBHOOK, type QueuedWebhook, sendQueuedWebhook } from "../work/queued-webhook.ts";
import type { DeadLetters } from "../work/dead-letters.ts";
import type { Schedules } from "../work/schedules.ts";
import type { WorkQueue } from "../work/work-queue.ts";
import type { AgentDefinition, StateHook } from "./agent-definition.ts";
import { deliveryKey, DeliveryLedger, handleEvent } from "./delivery-ledger.ts";
import type { InstanceEnvironment } from "./instance-environment.ts";
import type { Resident, ResidentParts } from "./resident.ts";
import { InstanceState } from "./instance-state.ts";
import type { SqlValue } from "../../core/sql.ts";
import { messageOf } from "../../core/stored-error.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { AgentEnvironment, AgentHost, WebhookOptions } from "../api/agent-host.ts";
import { tracedFetch, tracedWebhook } from "./traced-sending.ts";

export interface LiveAgentParts extends ResidentParts<LiveAgent> {
  readonly definition: AgentDefinition;
}

const WORK_UNREADABLE = "the instance's queue and schedules cannot be read or written; retrying later";

export class LiveAgent implements Resident {
  readonly definition: AgentDefinition;
  readonly ref: InstanceRef;
  readonly database: InstanceDatabase;
  readonly transactions: Transactions;
  readonly outputs: OutputGate;
  readonly state: InstanceState;
  readonly workQueue: WorkQueue;
  readonly deadLetters: DeadLetters;
  readonly schedules: Schedules;
  readonly ledger: DeliveryLedger;
  readonly pump: WorkPump;
  readonly #parts: LiveAgentParts;
  #agent: AnyAgent | null = null;
  #isStarting = true;

  constructor(parts: LiveAgentParts) {
    const { database, environment, runtime } = parts;
    const { transactions } = runtime;
    this.#parts = parts;
    this.definition = parts.definition;
    this.ref = parts.ref;
    this.database = database;
    this.transactions = transactions;
    this.outputs = runtime.outputs;
    this.state = new InstanceState(database, transactions, environment.limits.maxStateBytes);
    const work = openWork(database, transactions, environment.clock, {
      workChanged: () => this.pump.changed(),
      lettersChanged: () => parts.figures.lettersChanged(),
    });
    transactions.join(parts.figures);
    this.workQueue = work.workQueue;
    this.deadLetters = work.deadLetters;
    this.schedules = work.schedules;
    this.ledger = new DeliveryLedger(database, transactions, environment.clock);
    this.pump = new WorkPump({
      run: (turn) => runtime.run(turn),
      transactions,
      queue: work.workQueue,
      schedules: work.schedules,
      clock: environment.clock,
      perform: (method, payload, item) => this.#performWork(method, payload, item),
      onDue: parts.onDue,
      whenDueStored: parts.whenDueStored,
      isStorageDown: () => environment.store.problem !== null,
      onIdle: parts.onIdle,
      onBuried: (kind, callback, error) => parts.reports.buried(kind, callback, error),
      onStorageFailure: (error) => parts.reports.logError(error, WORK_UNREADABLE),
    });
  }

  /** The object of the user's class. */
  get agent(): AnyAgent {
    if (this.#agent === null) throw new Error("the agent's object does not exist yet");
    return this.#agent;
  }

  /** Undefined before the object exists. */
  get object(): AnyAgent | undefined {
    return this.#agent ?? undefined;
  }

  get isStarting(): boolean {
    return this.#isStarting;
  }

  get reader(): this {
    return this;
  }

  get isIdle(): boolean {
    return this.pump.isIdle;
  }

  get errorHook(): Resident["errorHook"] {
    return this.definition.hasMethod("onError")
      ? (cause, origin) => this.#callErrorHook(cause, origin)
      : null;
  }

  /** A hook with two parameters takes the connection first, if there is one. */
  #callErrorHook(cause: unknown, origin: AgentOrigin | null): unknown {
    const { agent } = this;
    return origin?.connection !== undefined && agent.onError.length > 1
      ? agent.onError(origin.connection, cause)
      : agent.onError(cause);
  }

  ready(): void {
    this.#parts.figures.open(() => ({ ...this.workQueue.figures(), deadLetters: this.deadLetters.figure() }));
    this.pump.start(this.database.isNew, this.#parts.isResumed);
  }

  clockChanged(): void {
    this.pump.clockChanged();
  }

  stop(): void {
    this.pump.stop();
  }

  /** The first turn: constructs the object and runs `onStart`. */
  async start(): Promise<void> {
    const host = new InstanceHost(this, this.#parts);
    this.#agent = new this.definition.agentClass(host, host.env);
    await this.#agent.onStart();
    this.#isStarting = false;
  }

  invoke(method: string, args: readonly unknown[]): unknown {
    const methods = this.agent as unknown as Record<string, (...args: readonly unknown[]) => unknown>;
    return methods[method]?.(...args);
  }

  /** Performs due work; `item` is the queue item or schedule. Throws when the class no longer has the method. */
  #performWork(method: string, payload: unknown, item: unknown): unknown {
    const { outgoing, variables } = this.#parts.environment;
    if (method === QUEUED_WEBHOOK) return sendQueuedWebhook(outgoing, variables, payload as QueuedWebhook);
    if (!this.definition.hasMethod(method))
      throw new TypeError(`the agent has no method "${method}" any more`);
    return this.invoke(method, [payload, item]);
  }

  /** Handles an event in the running turn. */
  deliver(event: WebhookEvent): DeliveryOutcome | Promise<DeliveryOutcome> {
    const { deliveries } = this.#parts;
    return deliveries === null
      ? handleEvent(this, event)
      : deliveries.run(deliveryKey(event), () => handleEvent(this, event));
  }

  /** Validates, stores and broadcasts the state, in this order. A connection that is the source does not receive its own change. */
  writeState(next: unknown, source: Connection | "server"): void {
    const { activity, environment, group } = this.#parts;
    if (source === "server") this.agent.validateStateChange(next, source);
    else this.#validateForClient(next, source);
    const json = this.state.set(next);
    group.broadcastFrame(`{"type":"cf_agent_state","state":${json}}`, source === "server" ? null : source.id);
    activity.recordState(environment.clock.now(), json.length, source === "server" ? "server" : source.id);
    if (this.definition.stateHook !== null) this.#callStateHook(this.definition.stateHook, next, source);
  }

  /** The hook throws to refuse a state. That is an error of the client, not of the agent: it is neither logged nor passed to `onError`. */
  #validateForClient(next: unknown, source: Connection): void {
    try {
      this.agent.validateStateChange(next, source);
    } catch (cause) {
      if (cause instanceof SignalboxError) throw cause;
      throw new SignalboxError("invalid_request", { message: messageOf(cause), cause });
    }
  }

  #callStateHook(hook: StateHook, next: unknown, source: Connection | "server"): void {
    const report = (error: unknown) => this.#parts.onHookError(error, hook);
    try {
      const pending = this.agent[hook](next, source);
      // The turn that changed the state ends when the hook has ended.
      if (pending instanceof Promise) currentTurn()?.waitFor(pending.catch(report));
    } catch (error) {
      report(error);
    }
  }
}

/* What an `Agent` object can do, in terms of its instance. */

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
  readonly runtime: Pick<TurnRuntime<LiveAgent>, "hold">;
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
