/**
 * One instance of an agent in memory: its database, its mailbox, its parts, and the user's object.
 *
 *   starting → active → leaving → gone
 *   starting → gone (its database or `onStart` failed; everything that waited gets the error)
 *
 * Invariants:
 * 1. `onStart` has ended before any other turn begins.
 * 2. `leaving` begins only when nothing runs, waits, or is unsynced, or when the instance is destroyed or its storage failed. Then
 *    later events go to a successor, which opens the database only when this one has closed it.
 * 3. Acknowledgements wait for the database's sync and for the catalog's entry of this instance and of its next due work.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Ranked } from "../../core/recency-list.ts";
import type { InstanceDatabase, InstanceRef } from "../../engines/instance-store/index.ts";
import { Activity } from "./activity.ts";
import { CatalogPresence } from "./catalog-presence.ts";
import type { AnyAgent } from "../api/agent.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import type { ConnectionGroup } from "../connections/connection-group.ts";
import { DeadLetters } from "../work/dead-letters.ts";
import { DeliveryLedger } from "./delivery-ledger.ts";
import { createHost } from "./instance-host.ts";
import type { InstanceEnvironment } from "./instance-environment.ts";
import { InstanceIdentity } from "./instance-identity.ts";
import { InstanceState } from "./instance-state.ts";
import { callOwn } from "./own-work.ts";
import {
  Mailbox,
  OutputGate,
  Transactions,
  type Turn,
  type TurnOwner,
  type TurnSpec,
} from "../../engines/turn-runtime/index.ts";
import { Schedules } from "../work/schedules.ts";
import { WorkPump } from "../work/work-pump.ts";
import { WorkQueue } from "../work/work-queue.ts";
import { WorkTables } from "../work/work-tables.ts";

/** What exists only while the database is open. */
export interface InstanceParts {
  readonly agent: AnyAgent;
  readonly database: InstanceDatabase;
  readonly gate: OutputGate;
  readonly transactions: Transactions;
  readonly state: InstanceState;
  readonly workQueue: WorkQueue;
  readonly deadLetters: DeadLetters;
  readonly schedules: Schedules;
  readonly ledger: DeliveryLedger;
  readonly pump: WorkPump;
}

type Phase =
  | { readonly kind: "starting" }
  | { readonly kind: "active"; readonly parts: InstanceParts }
  | { readonly kind: "leaving" }
  | { readonly kind: "gone" };

export interface Leaving {
  /** Resolves when a successor may open the database. */
  readonly closed: Promise<void>;
  /** When it must be woken at the latest; null for never. */
  readonly wakeAt: number | null;
  /** It could not start, or its storage failed. */
  readonly hasFailed: boolean;
}

export interface InstanceEvents {
  /** Nothing runs or waits any more. */
  onIdle(instance: Instance): void;
  /** The instance takes no events any more. */
  onLeave(instance: Instance, leaving: Leaving): void;
  /** The instance's code asked for its own end. */
  onDestroyRequest(instance: Instance): Promise<void>;
}

export class Instance implements TurnOwner, Ranked<Instance> {
  readonly definition: AgentDefinition;
  readonly ref: InstanceRef;
  /** What it is known by in memory. */
  readonly key: string;
  readonly activity: Activity;
  readonly group: ConnectionGroup;
  readonly environment: InstanceEnvironment;
  readonly #events: InstanceEvents;
  readonly #mailbox: Mailbox;
  #phase: Phase = { kind: "starting" };
  #started: Promise<void> = Promise.resolve();
  #isStarting = false;
  /** Null unless the database is new. */
  #identity: InstanceIdentity | null = null;
  readonly #presence: CatalogPresence;
  #hasFailed = false;
  #left: Promise<void> = Promise.resolve();
  lastActiveAt: number;
  /** The directory's. */
  older: Instance | null = null;
  newer: Instance | null = null;

  constructor(
    environment: InstanceEnvironment,
    events: InstanceEvents,
    definition: AgentDefinition,
    ref: InstanceRef,
    key: string,
  ) {
    this.environment = environment;
    this.#events = events;
    this.definition = definition;
    this.ref = ref;
    this.key = key;
    this.lastActiveAt = environment.clock.now();
    this.activity = new Activity(environment.activity, key, ref);
    this.group = environment.hub.group(this.key);
    this.#presence = new CatalogPresence(environment.catalog, this.ref, environment.clock);
    this.#mailbox = new Mailbox({
      maxWaiting: environment.limits.maxWaitingTurns,
      timeoutMs: environment.limits.turnTimeoutMs,
      isInterleaving: definition.isInterleaving,
      owner: this,
      onEnd: (turn, error) => this.#onTurnEnd(turn, error),
      onIdle: () => this.#checkIdle(),
    });
  }

  get isStarting(): boolean {
    return this.#isStarting;
  }

  get waitingTurns(): number {
    return this.#mailbox.waitingCount;
  }

  /** The open parts; only turns may ask, and turns run only while they are open. */
  get parts(): InstanceParts {
    if (this.#phase.kind !== "active") throw new Error(`the instance ${this.key} is not in memory`);
    return this.#phase.parts;
  }

  get isIdle(): boolean {
    return (
      this.#phase.kind === "active" &&
      this.#mailbox.isIdle &&
      this.#phase.parts.pump.isIdle &&
      this.#phase.parts.gate.isIdle &&
      !this.#phase.parts.transactions.isOpen
    );
  }

  /** Queues a turn; resolves with its result when everything it did and saw is durable. */
  run<T>(spec: TurnSpec<T>): Promise<T> {
    return this.#mailbox.run(spec);
  }

  passGate(): Promise<void> {
    return this.parts.gate.pass();
  }

  /** Of the same account: an instance reaches no other. */
  callAgent(...[target, ...call]: Parameters<TurnOwner["callAgent"]>): Promise<unknown> {
    return this.environment.callAgent({ ...target, account: this.ref.account }, ...call);
  }

  /** Resolves when it has started or has failed to. */
  get started(): Promise<void> {
    return this.#started;
  }

  /**
   * Opens the database, after the predecessor has closed it, and runs `onStart`. Never fails: who waits learns of a failure. One that `isWoken` for
   * its due work is not created: it may have been destroyed meanwhile.
   */
  start(predecessor: Promise<void> | undefined, isWoken: boolean): void {
    this.#started = this.#start(predecessor, isWoken);
  }

  async #start(predecessor: Promise<void> | undefined, isWoken: boolean): Promise<void> {
    const { environment, definition, ref } = this;
    let database: InstanceDatabase | undefined;
    try {
      await predecessor;
      await this.#presence.look().catch(failInternally);
      if (isWoken && !this.#presence.isKnown && this.#mailbox.isIdle) {
        this.#leave(this.#close(undefined));
        return;
      }
      database = await environment.store.open(ref, definition.initialSchema).catch(failInternally);
      this.#presence.opened(this.lastActiveAt, database.isNew);
      await this.#open(database);
      environment.metrics.starts.inc({ outcome: database.isNew ? "new" : "woken" });
    } catch (error) {
      environment.metrics.starts.inc({ outcome: "failed" });
      this.#hasFailed = true;
      this.#logError(error, "the instance could not start");
      this.#leave(this.#close(database), error);
    }
  }

  /** Leaves memory; the caller has seen that it is idle. */
  hibernate(): void {
    const { parts } = this;
    this.environment.metrics.hibernations.inc();
    this.activity.record("hibernate", this.environment.clock.now(), {});
    this.#leave(this.#close(parts.database));
  }

  /** Finishes the running turn, if any, refuses the rest with `reason`, and leaves memory. */
  async end(reason: unknown): Promise<void> {
    this.#mailbox.close(() => reason);
    await this.#started;
    if (this.#phase.kind === "active") {
      const { pump, gate, database } = this.#phase.parts;
      pump.stop();
      await this.#mailbox.whenQuiet();
      // A gate that has failed has told everybody who waited at it.
      await gate.pass().catch(() => undefined);
      this.#leave(this.#close(database), reason);
    }
    await this.#left;
  }

  recordDisconnect(connection: string, code: number): void {
    this.activity.record("disconnect", this.environment.clock.now(), { connection, code });
  }

  requestDestroy(): Promise<void> {
    return this.#events.onDestroyRequest(this);
  }

  async #open(database: InstanceDatabase): Promise<void> {
    const { environment } = this;
    const { clock, limits, metrics } = environment;
    const gate = new OutputGate(
      () => {
        const startedAt = performance.now();
        const indexed = this.#presence.takePending();
        const synced = indexed === null ? database.sync() : Promise.all([database.sync(), indexed]);
        return synced.then(
          () => metrics.syncDurations.observe((performance.now() - startedAt) / 1000),
          (error: unknown) => {
            this.#startAgain(error);
            throw error;
          },
        );
      },
      () => this.#checkIdle(),
    );
    const transactions = new Transactions(database, gate, (error) => this.#startAgain(error));
    const state = new InstanceState(database, transactions, limits.maxStateBytes);
    const changed = () => pump.changed();
    const tables = new WorkTables(database, transactions);
    const deadLetters = new DeadLetters(tables, clock, changed);
    const workQueue = new WorkQueue(tables, deadLetters, clock, changed);
    const schedules = new Schedules(tables, deadLetters, clock, changed);
    const ledger = new DeliveryLedger(database, transactions, clock);
    const pump = new WorkPump({
      mailbox: this.#mailbox,
      transactions,
      queue: workQueue,
      schedules,
      clock,
      call: (method, payload, about) => callOwn(this, method, payload, about),
      onDue: (at) => this.#presence.setDue(at),
      onIdle: () => this.#checkIdle(),
      onBuried: (kind, callback, error) => this.#onBuried(kind, callback, error),
      onStorageFailure: (error) =>
        this.#logError(
          error,
          "the instance's queue and schedules cannot be read or written; trying again later",
        ),
    });
    this.group.gate = gate;
    this.#isStarting = true;
    if (database.isNew) {
      this.#identity = new InstanceIdentity(database, transactions, this.ref, this.lastActiveAt);
      // That it is there is as good as a commit: whoever asked for the instance is answered when that is synced.
      gate.transactionOpened();
      gate.transactionCommitted();
    }
    await this.#mailbox.open(gate, transactions, async () => {
      const host = createHost(this, {
        ledger,
        state,
        workQueue,
        deadLetters,
        schedules,
        gate,
        database,
        transactions,
      });
      const agent = new this.definition.agentClass(host, environment.variables);
      const parts = {
        agent,
        database,
        gate,
        transactions,
        state,
        workQueue,
        deadLetters,
        schedules,
        ledger,
        pump,
      };
      this.#phase = { kind: "active", parts };
      await agent.onStart();
      this.#isStarting = false;
    });
    this.activity.record("start", clock.now(), { new: database.isNew });
    pump.start(database.isNew);
    this.#checkIdle();
  }

  #onBuried(kind: "queue" | "schedule", callback: string, error: unknown): void {
    this.environment.metrics.buried.inc({ kind });
    this.activity.record("buried", this.environment.clock.now(), { kind, callback });
    this.#logError(error, `the ${kind === "queue" ? "queue item" : "schedule"} used up its attempts`, {
      callback,
    });
  }

  #onTurnEnd(turn: Turn, error: unknown): void {
    const { metrics, clock } = this.environment;
    const durationMs = performance.now() - turn.startedAt;
    if (turn.kind !== "start") this.#identity?.require();
    metrics.turns.add(turn.kind, error === null ? "ok" : "error");
    metrics.turnDurations.observe(turn.kind, durationMs / 1000);
    // Whoever watches an instance must not fill its history with their own looking, nor keep it awake.
    if (turn.kind === "look" && error === null) return;
    this.lastActiveAt = clock.now();
    const message = error === null ? null : messageOf(error);
    this.activity.recordTurn(this.lastActiveAt, turn.kind, turn.label, durationMs, message);
    if (error === null) return;
    if (turn.kind !== "hook" && turn.kind !== "start" && !(error instanceof SignalboxError)) {
      this.#logError(error, "a turn failed", { kind: turn.kind, label: turn.label });
      this.#tellAgent(error);
    }
  }

  /** Calls `onError` in a turn of its own, if the agent has one. */
  #tellAgent(cause: unknown): void {
    if (this.#phase.kind !== "active" || !this.definition.hasMethod("onError")) return;
    const { agent } = this.#phase.parts;
    const hook = () => agent.onError(cause);
    this.run({ kind: "hook", label: "onError", isGated: false, body: hook }).then(
      undefined,
      (failure: unknown) => this.#logError(failure, "onError failed"),
    );
  }

  /** Errors of hooks that must not fail the turn they belong to. */
  reportHookError(error: unknown, hook: string): void {
    this.#logError(error, `${hook} failed`);
    this.#tellAgent(error);
  }

  /**
   * A commit failed, or a sync, or the catalog's entry: what memory holds, or what was promised, can no longer be trusted. The instance
   * leaves and the next event starts it from what is stored.
   */
  #startAgain(error: unknown): void {
    this.#logError(error, "the instance's storage failed; it starts again from what is stored");
    const reason =
      error instanceof SignalboxError
        ? error
        : new SignalboxError("overloaded", { message: "The instance's storage failed", cause: error });
    this.#hasFailed = true;
    // It never rejects.
    setImmediate(() => void this.#endFailed(reason));
  }

  async #endFailed(reason: unknown): Promise<void> {
    try {
      await this.end(reason);
    } catch {
      // It could not even be closed, as the directory has logged.
    }
  }

  #checkIdle(): void {
    if (this.isIdle) this.#events.onIdle(this);
  }

  #leave(closed: Promise<void>, reason?: unknown): void {
    if (this.#phase.kind === "leaving" || this.#phase.kind === "gone") return;
    this.#phase = { kind: "leaving" };
    this.#left = closed.then(() => {
      this.#phase = { kind: "gone" };
    });
    this.#mailbox.close(() => reason ?? new SignalboxError("stopping"));
    const hasFailed = this.#hasFailed;
    const wakeAt = this.#presence.leave(this.lastActiveAt, hasFailed);
    this.#events.onLeave(this, { closed: this.#left, wakeAt, hasFailed });
  }

  async #close(database: InstanceDatabase | undefined): Promise<void> {
    if (this.#phase.kind === "active") {
      this.#phase.parts.pump.stop();
      this.#identity?.require();
      this.#phase.parts.transactions.finish();
    }
    this.group.gate = null;
    this.environment.hub.releaseIfUnused(this.group);
    await database?.close();
  }

  #logError(error: unknown, message: string, detail: object = {}): void {
    this.environment.logger.error(
      { err: error, account: this.ref.account, agent: this.ref.agent, instance: this.ref.name, ...detail },
      message,
    );
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Callers learn the message of what an agent's code throws; what storage says names files. */
function failInternally(cause: unknown): never {
  if (cause instanceof SignalboxError) throw cause;
  throw new SignalboxError("internal", { cause });
}
