/**
 * One instance in memory: its database, its turn runtime and its resident, which is a native agent or an object.
 *
 *   starting → active → leaving → gone
 *   starting → gone (the database or `onStart` failed; everything that waited receives the error)
 *
 * Invariants:
 * 1. `onStart` has ended before any other turn begins.
 * 2. `leaving` begins only when nothing runs, waits, holds the instance, or is not durable, or when the instance is destroyed or aborted or its
 *    storage failed. Later events go to a successor, which opens the database only when this instance has closed it.
 * 3. Outputs wait for the database's sync and for the catalog's entry of this instance and of its next due work. The due time is written
 *    before the sync: a crash between the two causes a needless wake, and never work that is not woken.
 * 4. Code that outlives the instance can neither write nor send: it receives `InstanceGoneError`.
 * 5. An instance that another node has, or may have, leaves memory silently: nothing is written, sent or logged, and its connections stay.
 *    Turns that have not begun fail with `InstanceElsewhereError`, so that they can run elsewhere; those that have begun, with
 *    `InstanceFencedError`. If no other node is known to have it, its due work is looked for again soon.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import type { Ranked } from "../../core/recency-list.ts";
import {
  type Fence,
  type InstanceDatabase,
  InstanceElsewhereError,
  InstanceFencedError,
  type Ownership,
} from "../../engines/instance-store/index.ts";
import {
  currentTurn,
  PendingTimers,
  type Turn,
  type TurnOrigin,
  TurnRuntime,
} from "../../engines/turn-runtime/index.ts";
import type { AgentClass, AnyAgent } from "../api/agent.ts";
import type { AgentCall, AgentCaller } from "../api/agent-stub.ts";
import type { AgentOwner } from "../api/current-agent.ts";
import type { ConnectionGroup } from "../connections/connection-group.ts";
import { Activity } from "./activity.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import type { ResidentTurn } from "./agent-turn.ts";
import { CatalogPresence } from "./catalog-presence.ts";
import { requireShortTransaction } from "./inspection.ts";
import { eventTimeoutMs, type InstanceEnvironment } from "./instance-environment.ts";
import { InstanceFigures } from "./instance-figures.ts";
import { InstanceIdentity } from "./instance-identity.ts";
import {
  createOverloadError,
  createStorageError,
  createTimeoutError,
  explainPartial,
  failureOf,
  throwInternal,
} from "./instance-failures.ts";
import { InstanceGoneError } from "./instance-gone-error.ts";
import type { InstanceEvents } from "./instance-events.ts";
import { databaseName, type InstanceRef } from "./instance-ref.ts";
import { InstanceReports, isAgentFailure } from "./instance-reports.ts";
import { type LeaveOptions, FENCED_PAUSE_MS, type InstanceFailure } from "./leaving.ts";
import type { LiveAgent } from "./live-agent.ts";
import type { Holder, Resident, ResidentDefinition } from "./resident.ts";
import { SerialByKey } from "../../core/serial.ts";

/** How long a stop waits for running turns, which may have no time limit, before it ends without them. */
const END_GRACE_MS = 5000;

type Phase<R extends Resident> =
  | { readonly kind: "starting" }
  | { readonly kind: "active"; readonly live: R }
  | { readonly kind: "leaving" }
  | { readonly kind: "gone" };

export type AnyInstance = Instance<Resident, unknown>;

/** `Definition` is what the code that created the instance knows of its class; the instance itself uses `ResidentDefinition` only. */
export class Instance<R extends Resident = LiveAgent, Definition = AgentDefinition>
  implements Holder, AgentCaller, AgentOwner, Ranked<AnyInstance>
{
  readonly ref: InstanceRef;
  /** Identifies the instance in memory. */
  readonly key: string;
  readonly activity: Activity;
  /** The time limit of turns that someone waits for who cannot wait long. */
  readonly eventTimeoutMs: number;
  readonly definition: Definition;
  readonly group: ConnectionGroup;
  /** Only an interleaving agent can have two copies of one delivery in progress. */
  readonly deliveries: SerialByKey | null;
  readonly #environment: InstanceEnvironment;
  readonly #reports: InstanceReports;
  readonly #residents: ResidentDefinition<R>;
  readonly #events: InstanceEvents<AnyInstance>;
  readonly #runtime: TurnRuntime<R>;
  readonly #presence: CatalogPresence;
  /** Null unless the database is new. */
  #identity: InstanceIdentity | null = null;
  #phase: Phase<R> = { kind: "starting" };
  #started: Promise<void> = Promise.resolve();
  #left: Promise<void> = Promise.resolve();
  #failure: InstanceFailure | null = null;
  /** Why another node has the instance, or may have it; null if this node has it. */
  #fence: Fence["reason"] | "elsewhere" | null = null;
  #isDisposable = false;
  /** When the instance left memory, for code that outlives it. */
  #goneAt: number | null = null;
  lastActiveAt: number;
  /** When something that held the instance ended last. */
  #releasedAt = 0;
  /** Null until code of the instance sets a timer. */
  #timers: PendingTimers | null = null;
  /** Neighbours in the directory's list. */
  older: AnyInstance | null = null;
  newer: AnyInstance | null = null;

  constructor(
    environment: InstanceEnvironment,
    events: InstanceEvents<AnyInstance>,
    definition: Definition,
    residents: ResidentDefinition<R>,
    ref: InstanceRef,
    key: string,
  ) {
    this.#environment = environment;
    this.ref = ref;
    this.key = key;
    this.activity = new Activity(environment.activity, key, ref);
    this.#reports = new InstanceReports(environment, ref, this.activity, residents.isRecorded);
    this.eventTimeoutMs = eventTimeoutMs(environment.limits);
    this.#events = events;
    this.definition = definition;
    this.#residents = residents;
    this.deliveries = residents.isInterleaving ? new SerialByKey() : null;
    this.lastActiveAt = environment.clock.now();
    this.group = environment.hub.group(key);
    const figures = new InstanceFigures(environment.problems, ref);
    this.#presence = new CatalogPresence(environment.catalog, ref, environment.clock, figures);
    const { limits } = environment;
    this.#runtime = new TurnRuntime({
      owner: this,
      key,
      maxWaiting: limits.maxWaitingTurns,
      timeoutMs: residents.turnTimeoutMs ?? limits.turnTimeoutMs,
      isInterleaving: residents.isInterleaving,
      keepsFailedWrites: residents.keepsFailedWrites,
      createOverloadError,
      createTimeoutError,
      explainPartial,
      onTurnEnd: (turn, error) => this.#onTurnEnd(turn, error),
      onIdle: () => this.#checkIdle(),
      onCommitFailure: (error) => this.#startAgain(error),
    });
  }

  get isIdle(): boolean {
    return this.#phase.kind === "active" && this.#runtime.isIdle && this.#phase.live.isIdle;
  }

  /** True while a client is connected, whether or not its socket lets the instance leave memory. */
  get hasClients(): boolean {
    return this.group.size > 0 || this.#live?.hasClients === true;
  }

  /**
   * True while a client is connected, and code that no event awaits goes on: it waits for a timer, or something that held the instance has ended since
   * (the headers of a response have arrived, and the code reads the body). Without a client, code that no event awaits keeps nothing in memory.
   */
  isKept(since: number): boolean {
    return (this.#releasedAt > since || this.#timers?.isEmpty === false) && this.hasClients;
  }

  /** When the instance has work of its own next; null for never, undefined if that is not known. */
  get nextDueAt(): number | null | undefined {
    return this.#presence.nextDueAt;
  }

  /** See `ResidentDefinition`. */
  get updateDelayMs(): number | undefined {
    return this.#residents.updateDelayMs;
  }

  /** Resolves when the instance has started or failed to start. */
  get started(): Promise<void> {
    return this.#started;
  }

  run<T>(turn: ResidentTurn<R, T>): Promise<T> {
    return this.#runtime.run(turn);
  }

  /** What the instance takes the time from. */
  get clock(): Clock {
    return this.#environment.clock;
  }

  get waitingTurns(): number {
    return this.#runtime.waitingCount;
  }

  /** Reads what is committed, at once, also while a turn runs; null if the instance is not active. */
  observe<T>(work: (live: R) => T): Promise<T> | null {
    return this.#live === null ? null : this.#runtime.observe(work, requireShortTransaction);
  }

  /** What runs now; null if no turn is at an await. */
  get runningTurn(): { readonly kind: string; readonly label: string; readonly since: number } | null {
    const turn = this.#runtime.runningTurn;
    if (turn === null) return null;
    const since = this.#environment.clock.now() - (performance.now() - turn.startedAt);
    return { kind: turn.kind, label: turn.label, since: Math.round(since) };
  }

  /** Runs a function as a turn, for code that has a function of the instance's code and not the resident. */
  enter<T>(label: string, body: () => T | Promise<T>): Promise<T> {
    return this.run({ kind: "rpc", label, body: () => body() });
  }

  /** Keeps the instance in memory until the returned function is called. */
  hold(): () => void {
    const release = this.#runtime.hold();
    return () => {
      this.#releasedAt = this.#environment.clock.now();
      release();
    };
  }

  /** Code of the instance has set a timer (`notePendingTimers`). */
  noteTimer(timer: Parameters<PendingTimers["add"]>[0]): void {
    this.#timers ??= new PendingTimers();
    this.#timers.add(timer);
  }

  /** Keeps the instance in memory until the promise has settled. */
  waitUntil(work: Promise<unknown>): void {
    const release = this.hold();
    Promise.resolve(work).then(release, (error: unknown) => {
      this.#reports.logError(error, "work passed to waitUntil failed");
      release();
    });
  }

  passGate(): Promise<void> {
    return this.#runtime.outputs.pass();
  }

  /** Calls back when everything that the running segment has done is durable, in order with the other outputs. */
  output(release: () => void): void {
    this.#runtime.outputs.sendWithSegment({ release, drop: () => undefined });
  }

  callAgent(agent: AgentClass | string, name: string, call: AgentCall): Promise<unknown> {
    const target = { account: this.ref.account, agent: this.#environment.nameOf(agent), name };
    return this.#environment.callAgent(target, call);
  }

  get agentObject(): AnyAgent | undefined {
    return this.#live?.object as AnyAgent | undefined;
  }

  recordConnect(connection: string): void {
    this.activity.record("connect", this.#environment.clock.now(), { connection });
  }

  recordDisconnect(connection: string, code: number): void {
    this.activity.record("disconnect", this.#environment.clock.now(), { connection, code });
  }

  clockChanged(): void {
    this.#live?.clockChanged();
  }

  /** Ends the instance at once: waiting and running turns fail with the reason. The next event starts it from what is stored. */
  abort(reason: Error): void {
    this.#runtime.abandon(() => reason);
    // An instance that has not started ends when its start has.
    if (this.#phase.kind === "active")
      this.#leave(this.#phase.live.database, { reason, quiet: this.#runtime.whenQuiet() });
    else void this.#endFailed(reason);
  }

  /** Another node has the instance, or may have it (invariant 5). */
  fence(reason: InstanceFencedError): void {
    if (this.#fence !== null) return;
    this.#fence = reason.fence;
    // An instance that has not started ends when its start has.
    const live = this.#live;
    if (live === null) return;
    this.#abandon(reason);
    this.#leave(live.database, {
      reason: new InstanceElsewhereError(null),
      quiet: this.#runtime.whenQuiet(),
    });
  }

  /**
   * Leaves memory for another node. Running turns end; those that wait are held until `release` has given the instance up, and fail with the error
   * that it returns. False if the instance is not active.
   */
  async handOver(release: (wasQuiet: boolean) => Promise<Error>, graceMs = END_GRACE_MS): Promise<boolean> {
    await this.#started;
    const live = this.#live;
    if (live === null) return false;
    live.stop();
    this.#runtime.block();
    await this.#whenQuiet(() => this.#abandon(new InstanceFencedError("dropped")), graceMs);
    // Fenced or failed meanwhile.
    if (this.#live === null) return false;
    this.#leave(live.database, { handOver: release });
    await this.#left;
    return true;
  }

  /**
   * Opens the database when the predecessor has closed it, and runs `onStart`. Never fails: those who wait for turns receive the error. An
   * instance that `isWoken` for its due work is not created: it may have been destroyed in the meantime. `isResumed`: see `ResidentParts`.
   */
  start(predecessor: Promise<void> | undefined, isWoken: boolean, isResumed: boolean): void {
    this.#started = this.#start(predecessor, isWoken, isResumed);
  }

  /** Leaves memory. The caller has checked that the instance is idle. */
  hibernate(): void {
    if (this.#live === null) return;
    this.#reports.hibernated();
    this.#leave(this.#live.database);
  }

  /** Finishes the running turns, refuses the waiting ones with `reason`, and leaves memory. */
  async end(reason: unknown): Promise<void> {
    this.#runtime.close(() => reason);
    await this.#started;
    const live = this.#live;
    if (live !== null) {
      live.stop();
      await this.#whenQuiet(() => this.#runtime.abandon(() => this.#goneError()));
      this.#leave(live.database, { reason });
    }
    await this.#left;
  }

  /** Null while the instance is not active. */
  get #live(): R | null {
    return this.#phase.kind === "active" ? this.#phase.live : null;
  }

  async #start(predecessor: Promise<void> | undefined, isWoken: boolean, isResumed: boolean): Promise<void> {
    let database: InstanceDatabase | undefined;
    try {
      await predecessor;
      await this.#presence.load().catch(throwInternal);
      if (isWoken && !this.#presence.isKnown && this.#runtime.isIdle) {
        this.#leave(undefined);
        return;
      }
      const { store } = this.#environment;
      database = await store.open(databaseName(this.ref), this.#residents.initialSchema).catch(throwInternal);
      const prepared = this.#residents.prepare?.(database, this.ref) ?? null;
      if (prepared !== null) database = await prepared.catch(throwInternal);
      if (this.#fence !== null) throw new InstanceElsewhereError(null);
      this.#presence.opened(this.lastActiveAt, database.isNew);
      await this.#open(database, isResumed);
    } catch (error) {
      const isElsewhere = error instanceof InstanceElsewhereError;
      this.#fence ??= isElsewhere ? "elsewhere" : error instanceof InstanceFencedError ? error.fence : null;
      if (this.#fence !== null) {
        this.#leave(database, { reason: isElsewhere ? error : new InstanceElsewhereError(null) });
        return;
      }
      this.#failure = failureOf(error);
      this.#reports.startFailed(error);
      this.#leave(database, { reason: error });
    }
  }

  async #open(database: InstanceDatabase, isResumed: boolean): Promise<void> {
    const { ownership } = this.#environment;
    const confirm = ownership === null ? undefined : () => this.#confirm(ownership);
    this.#runtime.open(database, () => this.#sync(database), confirm);
    const live = this.#residents.create({
      ref: this.ref,
      environment: this.#environment,
      group: this.group,
      activity: this.activity,
      database,
      runtime: this.#runtime,
      isResumed,
      reports: this.#reports,
      deliveries: this.deliveries,
      onDue: (at) => this.#presence.setDue(at),
      whenDueStored: () => this.#whenDueStored(),
      figures: this.#presence.figures,
      onIdle: () => this.#checkIdle(),
      onHookError: (error, hook) => this.#reportHookError(error, hook),
      requestDestroy: () => this.#events.onDestroyRequest(this),
      holder: this,
      abort: (reason) => this.abort(reason),
    });
    const { outputs, transactions } = this.#runtime;
    this.group.outputs = outputs;
    this.group.holdInstance = () => this.hold();
    if (ownership !== null) this.group.keepRecent();
    if (database.isNew) {
      this.#identity = new InstanceIdentity(database, transactions, {
        ref: this.ref,
        createdAt: this.lastActiveAt,
        onStored: () => (this.#identity = null),
      });
      // Outputs depend on the creation of the instance like on a commit.
      outputs.countCommit();
    }
    this.#phase = { kind: "active", live };
    const first: ResidentTurn<R, void> = {
      kind: "start",
      label: "onStart",
      isInternal: true,
      ...(this.#residents.turnTimeoutMs === undefined ? { timeoutMs: this.eventTimeoutMs } : {}),
      body: () => live.start(),
    };
    await this.#runtime.start(live, first);
    this.#reports.started(database.isNew);
    live.ready();
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

  /** A due time that could not be written is not written again before the instance starts again: without that, its work would never run. */
  #whenDueStored(): Promise<void> | null {
    const setting = this.#presence.settingDue;
    return setting === null ? null : this.#orStartAgain(setting);
  }

  /** Whether an answer that only read may leave (see `OutputGateOptions`). */
  #confirm(ownership: Ownership): Promise<void> | null {
    // The node may own the instance again, for a successor of this object.
    if (this.#fence !== null) return Promise.reject(new InstanceFencedError("dropped"));
    const confirmed = ownership.confirm(databaseName(this.ref));
    return confirmed === null ? null : this.#orStartAgain(confirmed);
  }

  #orStartAgain(written: Promise<void>): Promise<void> {
    return written.catch((error: unknown) => {
      this.#startAgain(error);
      throw error;
    });
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

  /**
   * A commit, a sync or a write to the catalog failed, so the state in memory may differ from the stored one. The instance leaves memory, and the
   * next event starts it from what is stored.
   */
  #startAgain(error: unknown): void {
    if (this.#fence !== null) return;
    if (error instanceof InstanceFencedError) {
      this.fence(error);
      return;
    }
    this.#reports.logError(error, "the instance's storage failed; the instance restarts from what is stored");
    this.#failure = failureOf(error);
    // It never rejects.
    setImmediate(() => void this.#endFailed(createStorageError(error)));
  }

  #endFailed(reason: unknown): Promise<void> {
    // The directory has logged that the database could not be closed.
    return this.end(reason).catch(() => undefined);
  }

  #checkIdle(): void {
    if (!this.isIdle) return;
    if (this.#phase.kind === "active") this.#phase.live.idle?.();
    this.#events.onIdle(this);
  }

  #leave(database: InstanceDatabase | undefined, { reason, quiet, handOver }: LeaveOptions = {}): void {
    if (this.#phase.kind === "leaving" || this.#phase.kind === "gone") return;
    const live = this.#live;
    live?.stop(this.#failure !== null);
    const closed =
      quiet === undefined ? this.#close(live, database) : quiet.then(() => this.#close(live, database));
    this.#phase = { kind: "leaving" };
    this.#left = (handOver === undefined ? closed : this.#release(closed, handOver)).then(() => {
      this.#phase = { kind: "gone" };
    });
    if (handOver === undefined) this.#runtime.close(() => reason ?? new SignalboxError("stopping"));
    const failure = this.#failure;
    if (failure !== null && this.group.joinedCount > 0) this.group.isBehind = true;
    const wakeAt =
      this.#fence === null
        ? this.#presence.leave(this.lastActiveAt, failure, this.group.isBehind)
        : this.#wakeFenced(this.#fence);
    const isDisposable = () => this.#isDisposable && this.#failure === null;
    this.#events.onLeave(this, {
      closed: this.#left,
      isDisposable,
      wakeAt: handOver === undefined ? wakeAt : null,
      failure,
      isCutOff: this.#fence !== null || failure === "storage",
    });
  }

  /**
   * Nothing is written for an instance that was fenced (invariant 5), so its due time in the catalog still names this node. Unless another node is
   * known to have it, no other node looks for its work: the waker does, and wakes the instance if it is due.
   */
  #wakeFenced(fence: Fence["reason"] | "elsewhere"): number | null {
    if (fence === "taken" || fence === "elsewhere") return null;
    return this.#environment.clock.now() + FENCED_PAUSE_MS;
  }

  /** Turns that wait learn where the instance is when it is there. */
  async #release(closed: Promise<void>, handOver: (wasQuiet: boolean) => Promise<Error>): Promise<void> {
    try {
      await closed;
      const moved = await handOver(!this.#runtime.wasInterrupted);
      this.#runtime.close(() => moved);
    } catch (error) {
      this.#runtime.close(() => error);
      throw error;
    }
  }

  #goneError(): Error {
    const at = this.#goneAt ?? this.#environment.clock.now();
    return new InstanceGoneError(this.ref.agent, this.ref.name, at);
  }

  async #close(live: R | null, database: InstanceDatabase | undefined): Promise<void> {
    if (live !== null) {
      if (this.#fence === null) this.#identity?.require();
      this.#goneAt ??= this.#environment.clock.now();
      this.#runtime.finish(() => this.#goneError());
      this.#isDisposable = this.#fence === null && live.isDisposable === true;
    }
    this.group.detach();
    this.#environment.hub.releaseIfUnused(this.group);
    await database?.close();
    this.#presence.closed();
  }

  /** Turns that have begun fail with the reason; those that wait can run elsewhere. */
  #abandon(reason: Error): void {
    this.#runtime.close(() => new InstanceElsewhereError(null));
    this.#runtime.abandon(() => reason);
  }

  /** Resolves when no turn runs and no output waits, at the latest when `end` has ended them after the grace period. */
  async #whenQuiet(end: () => void, graceMs = END_GRACE_MS): Promise<void> {
    const timer = setTimeout(end, graceMs);
    try {
      await this.#runtime.whenQuiet();
    } finally {
      clearTimeout(timer);
    }
  }

  #reportHookError(error: unknown, hook: string): void {
    this.#reports.logError(error, `${hook} failed`);
    this.#reports.failed("hook", hook, error);
    this.#callErrorHook(error, currentTurn()?.origin ?? null);
  }

  /** Calls `onError` in a turn of its own, if the agent has the hook. */
  #callErrorHook(cause: unknown, origin: TurnOrigin | null): void {
    const hook = this.#live?.errorHook ?? null;
    if (hook === null) return;
    this.run<unknown>({
      kind: "hook",
      label: "onError",
      isInternal: true,
      body: () => hook(cause, origin),
    }).catch((failure: unknown) => this.#reports.logError(failure, "onError failed"));
  }
}
