/**
 * The agent's object with its stored parts and its work pump, while the database is open. Turns receive it as their subject, so code outside
 * of turns cannot reach it.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import type { DeliveryOutcome } from "../../contracts/agent-deliveries.ts";
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import type { InstanceRef } from "./instance-ref.ts";
import { currentTurn, type OutputGate, type Transactions } from "../../engines/turn-runtime/index.ts";
import type { AnyAgent } from "../api/agent.ts";
import type { Connection } from "../api/connection.ts";
import type { AgentOrigin } from "../api/current-agent.ts";
import { openWork } from "../work/open-work.ts";
import { WorkPump } from "../work/work-pump.ts";
import { QUEUED_WEBHOOK, type QueuedWebhook, sendQueuedWebhook } from "../work/queued-webhook.ts";
import type { DeadLetters } from "../work/dead-letters.ts";
import type { Schedules } from "../work/schedules.ts";
import type { WorkQueue } from "../work/work-queue.ts";
import type { AgentDefinition, StateHook } from "./agent-definition.ts";
import { DeliveryLedger } from "./delivery-ledger.ts";
import { deliveryKey, handleEvent } from "./handle-event.ts";
import { InstanceHost } from "./instance-host.ts";
import { InstanceState } from "./instance-state.ts";
import type { Resident, ResidentParts } from "./resident.ts";
import { messageOf } from "../../core/stored-error.ts";

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
    parts.reports.stateOf(() => this.state.json);
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
    this.#parts.group.catchUp(() => {
      const state = this.state.committed;
      return state === undefined ? null : stateFrame(JSON.stringify(state));
    });
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
    this.#noteState();
    const json = this.state.set(next);
    group.broadcastFrame(stateFrame(json), source === "server" ? null : source.id);
    activity.recordState(environment.clock.now(), json.length, source === "server" ? "server" : source.id);
    if (this.definition.stateHook !== null) this.#callStateHook(this.definition.stateHook, next, source);
  }

  /** The timeline compares the state at the end of the turn with that before its first change. */
  #noteState(): void {
    const turn = currentTurn();
    if (turn !== undefined && turn.note === undefined) turn.note = this.state.json;
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

function stateFrame(json: string): string {
  return `{"type":"cf_agent_state","state":${json}}`;
}
