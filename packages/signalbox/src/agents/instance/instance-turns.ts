/**
 * What code outside of an instance does with it: runs turns, keeps it in memory, sends in order with its outputs, and reports events. `Instance` adds
 * the life from the start to the end.
 */
import type { Clock } from "../../core/clock.ts";
import { InstanceElsewhereError } from "../../engines/instance-store/index.ts";
import { currentTurn, type TurnOrigin, type TurnRuntime } from "../../engines/turn-runtime/index.ts";
import type { AgentClass, AnyAgent } from "../api/agent.ts";
import type { AgentCall, AgentCaller } from "../api/agent-stub.ts";
import type { AgentOwner } from "../api/current-agent.ts";
import { Activity } from "./activity.ts";
import type { ResidentTurn } from "./agent-turn.ts";
import { eventTimeoutMs, type InstanceEnvironment } from "./instance-environment.ts";
import type { InstanceRef } from "./instance-ref.ts";
import { requireShortTransaction } from "./inspection.ts";
import { InstanceReports } from "./instance-reports.ts";
import type { Holder, Resident } from "./resident.ts";

/** How long a stop waits for running turns, which may have no time limit, before it ends without them. */
const END_GRACE_MS = 5000;

export abstract class InstanceTurns<R extends Resident> implements Holder, AgentCaller, AgentOwner {
  readonly ref: InstanceRef;
  /** Identifies the instance in memory. */
  readonly key: string;
  readonly activity: Activity;
  /** The time limit of turns that someone waits for who cannot wait long. */
  readonly eventTimeoutMs: number;
  protected readonly environment: InstanceEnvironment;
  protected readonly reports: InstanceReports;
  protected abstract readonly runtime: TurnRuntime<R>;
  /** Null while the instance is not active. */
  protected abstract readonly live: R | null;

  constructor(environment: InstanceEnvironment, ref: InstanceRef, key: string) {
    this.environment = environment;
    this.ref = ref;
    this.key = key;
    this.activity = new Activity(environment.activity, key, ref);
    this.reports = new InstanceReports(environment, ref, this.activity);
    this.eventTimeoutMs = eventTimeoutMs(environment.limits);
  }

  /** What the instance takes the time from. */
  get clock(): Clock {
    return this.environment.clock;
  }

  get waitingTurns(): number {
    return this.runtime.waitingCount;
  }

  /** Reads what is committed, at once, also while a turn runs; null if the instance is not active. */
  observe<T>(work: (live: R) => T): Promise<T> | null {
    return this.live === null ? null : this.runtime.observe(work, requireShortTransaction);
  }

  /** What runs now; null if no turn is at an await. */
  get runningTurn(): { readonly kind: string; readonly label: string; readonly since: number } | null {
    const turn = this.runtime.runningTurn;
    if (turn === null) return null;
    const since = this.environment.clock.now() - (performance.now() - turn.startedAt);
    return { kind: turn.kind, label: turn.label, since: Math.round(since) };
  }

  abstract run<T>(turn: ResidentTurn<R, T>): Promise<T>;

  /** Runs a function as a turn, for code that has a function of the instance's code and not the resident. */
  enter<T>(label: string, body: () => T | Promise<T>): Promise<T> {
    return this.run({ kind: "rpc", label, body: () => body() });
  }

  /** Keeps the instance in memory until the returned function is called. */
  hold(): () => void {
    return this.runtime.hold();
  }

  /** Keeps the instance in memory until the promise has settled. */
  waitUntil(work: Promise<unknown>): void {
    const release = this.hold();
    Promise.resolve(work).then(release, (error: unknown) => {
      this.reports.logError(error, "work passed to waitUntil failed");
      release();
    });
  }

  passGate(): Promise<void> {
    return this.runtime.outputs.pass();
  }

  /** Calls back when everything that the running segment has done is durable, in order with the other outputs. */
  output(release: () => void): void {
    this.runtime.outputs.sendWithSegment({ release, drop: () => undefined });
  }

  callAgent(agent: AgentClass | string, name: string, call: AgentCall): Promise<unknown> {
    const target = { account: this.ref.account, agent: this.environment.nameOf(agent), name };
    return this.environment.callAgent(target, call);
  }

  get agentObject(): AnyAgent | undefined {
    return this.live?.object as AnyAgent | undefined;
  }

  recordConnect(connection: string): void {
    this.activity.record("connect", this.environment.clock.now(), { connection });
  }

  recordDisconnect(connection: string, code: number): void {
    this.activity.record("disconnect", this.environment.clock.now(), { connection, code });
  }

  /** Turns that have begun fail with the reason; those that wait can run elsewhere. */
  protected abandon(reason: Error): void {
    this.runtime.close(() => new InstanceElsewhereError(null));
    this.runtime.abandon(() => reason);
  }

  /** Resolves when no turn runs and no output waits, at the latest when `end` has ended them after the grace period. */
  protected async whenQuiet(end: () => void): Promise<void> {
    const timer = setTimeout(end, END_GRACE_MS);
    try {
      await this.runtime.whenQuiet();
    } finally {
      clearTimeout(timer);
    }
  }

  protected reportHookError(error: unknown, hook: string): void {
    this.reports.logError(error, `${hook} failed`);
    this.reports.failed("hook", hook, error);
    this.callErrorHook(error, currentTurn()?.origin ?? null);
  }

  /** Calls `onError` in a turn of its own, if the agent has the hook. */
  protected callErrorHook(cause: unknown, origin: TurnOrigin | null): void {
    const hook = this.live?.errorHook ?? null;
    if (hook === null) return;
    this.run<unknown>({
      kind: "hook",
      label: "onError",
      isInternal: true,
      body: () => hook(cause, origin),
    }).catch((failure: unknown) => this.reports.logError(failure, "onError failed"));
  }
}
