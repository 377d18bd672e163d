/**
 * One instance of an agent in memory: its database, its turn runtime and its live agent.
 *
 *   starting → active → leaving → gone
 *   starting → gone (the database or `onStart` failed; everything that waited receives the error)
 *
 * Invariants:
 * 1. `onStart` has ended before any other turn begins.
 * 2. `leaving` begins only when nothing runs, waits, or is not durable, or when the instance is destroyed or its storage failed. Later events
 *    go to a successor, which opens the database only when this instance has closed it.
 * 3. Outputs wait for the database's sync and for the catalog's entry of this instance and of its next due work. The due time is written
 *    before the sync: a crash between the two causes a needless wake, and never work that is not woken.
 */
import { SignalboxError } from "@signalbox/protocol";
import { overloaded } from "../../core/overload.ts";
import type { Ranked } from "../../core/recency-list.ts";
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import { databaseName, type InstanceRef } from "./instance-ref.ts";
import { currentTurn, type Turn, type TurnOrigin, TurnRuntime } from "../../engines/turn-runtime/index.ts";
import { kebabCase } from "@signalbox/protocol";
import type { AgentClass, AnyAgent } from "../api/agent.ts";
import type { AgentCall, AgentCaller } from "../api/agent-stub.ts";
import type { AgentOrigin, AgentOwner } from "../api/current-agent.ts";
import type { ConnectionGroup } from "../connections/live-connection.ts";
import { Activity } from "./activity.ts";
import { InstanceReports, isAgentFailure } from "./instance-reports.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import type { AgentTurn, TurnTarget } from "./agent-turn.ts";
import { CatalogPresence } from "./catalog-presence.ts";
import type { InstanceEnvironment } from "./instance-environment.ts";
import { InstanceIdentity } from "./instance-identity.ts";
import { LiveAgent } from "./live-agent.ts";
import { SerialByKey } from "./serial-by-key.ts";

type Phase =
  | { readonly kind: "starting" }
  | { readonly kind: "active"; readonly live: LiveAgent }
  | { readonly kind: "leaving" }
  | { readonly kind: "gone" };

export interface Leaving {
  /** Resolves when a successor may open the database. */
  readonly closed: Promise<void>;
  /** When the instance must be woken at the latest; null for never. */
  readonly wakeAt: number | null;
  /** The instance could not start, or its storage failed. */
  readonly hasFailed: boolean;
}

export interface InstanceEvents {
  /** Nothing runs or waits any more. */
  onIdle(instance: Instance): void;
  /** The instance takes no more events. */
  onLeave(instance: Instance, leaving: Leaving): void;
  /** The instance's code called `destroy`. */
  onDestroyRequest(instance: Instance): Promise<void>;
}

export class Instance implements AgentCaller, AgentOwner, TurnTarget, Ranked<Instance> {
  readonly definition: AgentDefinition;
  readonly ref: InstanceRef;
  /** Identifies the instance in memory. */
  readonly key: string;
  readonly activity: Activity;
  readonly group: ConnectionGroup;
  /** Only an interleaving agent can have two copies of one delivery in progress. */
  readonly deliveries: SerialByKey | null;
  readonly #environment: InstanceEnvironment;
  readonly #events: InstanceEvents;
  readonly #runtime: TurnRuntime<LiveAgent>;
  readonly #presence: CatalogPresence;
  readonly #reports: InstanceReports;
  /** Null unless the database is new. */
  #identity: InstanceIdentity | null = null;
  #phase: Phase = { kind: "starting" };
  #started: Promise<void> = Promise.resolve();
  #left: Promise<void> = Promise.resolve();
  #hasFailed = false;
  lastActiveAt: number;
  /** Neighbours in the directory's list. */
  older: Instance | null = null;
  newer: Instance | null = null;

  constructor(
    environment: InstanceEnvironment,
    events: InstanceEvents,
    definition: AgentDefinition,
    ref: InstanceRef,
    key: string,
  ) {
    this.#environment = environment;
    this.#events = events;
    this.definition = definition;
    this.ref = ref;
    this.key = key;
    this.lastActiveAt = environment.clock.now();
    this.activity = new Activity(environment.activity, key, ref);
    this.group = environment.hub.group(key);
    this.deliveries = definition.isInterleaving ? new SerialByKey() : null;
    this.#presence = new CatalogPresence(environment.catalog, ref, environment.clock);
    this.#reports = new InstanceReports(environment, ref, this.activity);
    const { maxWaitingTurns, turnTimeoutMs } = environment.limits;
    this.#runtime = new TurnRuntime({
      owner: this,
      key,
      maxWaiting: maxWaitingTurns,
      timeoutMs: turnTimeoutMs,
      isInterleaving: definition.isInterleaving,
      createOverloadError,
      createTimeoutError: () => createTimeoutError(turnTimeoutMs),
      onTurnEnd: (turn, error) => this.#onTurnEnd(turn, error),
      onIdle: () => this.#checkIdle(),
      onCommitFailure: (error) => this.#startAgain(error),
    });
  }

  get waitingTurns(): number {
    return this.#runtime.waitingCount;
  }

  get isIdle(): boolean {
    return this.#phase.kind === "active" && this.#runtime.isIdle && this.#phase.live.pump.isIdle;
  }

  /** Resolves when the instance has started or failed to start. */
  get started(): Promise<void> {
    return this.#started;
  }

  run<T>(turn: AgentTurn<T>): Promise<T> {
    return this.#runtime.run(turn);
  }

  passGate(): Promise<void> {
    return this.#runtime.outputs.pass();
  }

  callAgent(agent: AgentClass | string, name: string, call: AgentCall): Promise<unknown> {
    const { callAgent, nameOf } = this.#environment;
    const target = typeof agent === "string" ? kebabCase(agent) : nameOf(agent);
    return callAgent({ account: this.ref.account, agent: target, name }, call);
  }

  get agentObject(): AnyAgent | undefined {
    return this.#phase.kind === "active" ? this.#phase.live.object : undefined;
  }

  recordConnect(connection: string): void {
    this.activity.record("connect", this.#environment.clock.now(), { connection });
  }

  recordDisconnect(connection: string, code: number): void {
    this.activity.record("disconnect", this.#environment.clock.now(), { connection, code });
  }

  /**
   * Opens the database when the predecessor has closed it, and runs `onStart`. Never fails: those who wait for turns receive the error. An
   * instance that `isWoken` for its due work is not created: it may have been destroyed in the meantime.
   */
  start(predecessor: Promise<void> | undefined, isWoken: boolean): void {
    this.#started = this.#start(predecessor, isWoken);
  }

  /** Leaves memory. The caller has checked that the instance is idle. */
  hibernate(): void {
    if (this.#phase.kind !== "active") return;
    this.#reports.hibernated();
    this.#leave(this.#phase.live.database);
  }

  /** Finishes the running turns, refuses the waiting ones with `reason`, and leaves memory. */
  async end(reason: unknown): Promise<void> {
    this.#runtime.close(() => reason);
    await this.#started;
    if (this.#phase.kind === "active") {
      const { live } = this.#phase;
      live.pump.stop();
      await this.#runtime.whenQuiet();
      this.#leave(live.database, reason);
    }
    await this.#left;
  }

  async #start(predecessor: Promise<void> | undefined, isWoken: boolean): Promise<void> {
    let database: InstanceDatabase | undefined;
    try {
      await predecessor;
      await this.#presence.load().catch(throwInternal);
      if (isWoken && !this.#presence.isKnown && this.#runtime.isIdle) {
        this.#leave(undefined);
        return;
      }
      const { store } = this.#environment;
      database = await store.open(databaseName(this.ref), this.definition.initialSchema).catch(throwInternal);
      this.#presence.opened(this.lastActiveAt, database.isNew);
      await this.#open(database);
    } catch (error) {
      this.#hasFailed = true;
      this.#reports.startFailed(error);
      this.#leave(database, error);
    }
  }

  async #open(database: InstanceDatabase): Promise<void> {
    this.#runtime.open(database, () => this.#sync(database));
    const live = new LiveAgent({
      definition: this.definition,
      ref: this.ref,
      environment: this.#environment,
      group: this.group,
      activity: this.activity,
      database,
      runtime: this.#runtime,
      reports: this.#reports,
      deliveries: this.deliveries,
      onDue: (at) => this.#presence.setDue(at),
      onIdle: () => this.#checkIdle(),
      onHookError: (error, hook) => this.#reportHookError(error, hook),
      requestDestroy: () => this.#events.onDestroyRequest(this),
    });
    this.group.outputs = live.outputs;
    if (database.isNew) {
      this.#identity = new InstanceIdentity(database, live.transactions, {
        ref: this.ref,
        createdAt: this.lastActiveAt,
        onStored: () => (this.#identity = null),
      });
      // Outputs depend on the creation of the instance like on a commit.
      live.outputs.countCommit();
    }
    this.#phase = { kind: "active", live };
    const first: AgentTurn<void> = {
      kind: "start",
      label: "onStart",
      isInternal: true,
      body: () => live.start(),
    };
    await this.#runtime.start(live, first);
    this.#reports.started(database.isNew);
    live.pump.start(database.isNew);
    this.#checkIdle();
  }

  /** Makes the commits durable, and what the catalog has to know of them (invariant 3). */
  #sync(database: InstanceDatabase): Promise<void> {
    const startedAt = performance.now();
    const { syncDurations } = this.#environment.metrics;
    return this.#presence
      .withSync(() => database.sync())
      .then(
        () => syncDurations.observe((performance.now() - startedAt) / 1000),
        (error: unknown) => {
          this.#startAgain(error);
          throw error;
        },
      );
  }

  #onTurnEnd(turn: Turn, error: unknown): void {
    if (turn.kind !== "start") this.#identity?.require();
    // Reading through the management interface is no activity: it must neither fill the list of activity nor keep the instance in memory.
    const isActivity = turn.kind !== "inspect" || error !== null;
    if (isActivity) this.lastActiveAt = this.#environment.clock.now();
    this.#reports.turnEnded(turn, error, isActivity ? this.lastActiveAt : null);
    if (error === null || !isAgentFailure(turn, error)) return;
    this.#reports.logError(error, "a turn failed", { kind: turn.kind, label: turn.label });
    this.#callErrorHook(error, turn.origin);
  }

  #reportHookError(error: unknown, hook: string): void {
    this.#reports.logError(error, `${hook} failed`);
    this.#callErrorHook(error, currentTurn()?.origin ?? null);
  }

  /** Calls `onError` in a turn of its own, if the agent has the hook. */
  #callErrorHook(cause: unknown, origin: TurnOrigin | null): void {
    if (this.#phase.kind !== "active" || !this.definition.hasMethod("onError")) return;
    this.run<void>({
      kind: "hook",
      label: "onError",
      isInternal: true,
      body: ({ agent }) => {
        const connection = (origin as AgentOrigin | null)?.connection;
        return connection !== undefined && agent.onError.length > 1
          ? agent.onError(connection, cause)
          : agent.onError(cause);
      },
    }).catch((failure: unknown) => this.#reports.logError(failure, "onError failed"));
  }

  /**
   * A commit, a sync or a write to the catalog failed, so the state in memory may differ from the stored one. The instance leaves memory, and the
   * next event starts it from what is stored.
   */
  #startAgain(error: unknown): void {
    this.#reports.logError(error, "the instance's storage failed; the instance restarts from what is stored");
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
      // The directory has logged that the database could not be closed.
    }
  }

  #checkIdle(): void {
    if (this.isIdle) this.#events.onIdle(this);
  }

  #leave(database: InstanceDatabase | undefined, reason?: unknown): void {
    if (this.#phase.kind === "leaving" || this.#phase.kind === "gone") return;
    const closed = this.#close(database);
    this.#phase = { kind: "leaving" };
    this.#left = closed.then(() => {
      this.#phase = { kind: "gone" };
    });
    this.#runtime.close(() => reason ?? new SignalboxError("stopping"));
    const hasFailed = this.#hasFailed;
    const wakeAt = this.#presence.leave(this.lastActiveAt, hasFailed);
    this.#events.onLeave(this, { closed: this.#left, wakeAt, hasFailed });
  }

  async #close(database: InstanceDatabase | undefined): Promise<void> {
    if (this.#phase.kind === "active") {
      this.#phase.live.pump.stop();
      this.#identity?.require();
      this.#runtime.finish();
    }
    this.group.outputs = null;
    this.#environment.hub.releaseIfUnused(this.group);
    await database?.close();
  }
}

function createOverloadError(): SignalboxError {
  return overloaded("The instance has too many waiting events", { "retry-after": "1" });
}

function createTimeoutError(timeoutMs: number): SignalboxError {
  return new SignalboxError("agent_turn_timeout", {
    message: `The turn took longer than ${timeoutMs} ms`,
  });
}

/** Callers see the messages of errors that agents' code throws; messages of storage name files, so they are hidden. */
function throwInternal(cause: unknown): never {
  if (cause instanceof SignalboxError) throw cause;
  throw new SignalboxError("internal", { cause });
}
