/** Reports what happens in an instance: to the metrics, the list of recent activity, and the log. */
import { SignalboxError } from "@signalbox/protocol";
import { messageOf } from "../../core/stored-error.ts";
import type { InstanceRef } from "./instance-ref.ts";
import type { Turn } from "../../engines/turn-runtime/index.ts";
import type { Activity } from "./activity.ts";
import type { Pulse } from "./agent-pulse.ts";
import type { InstanceEnvironment } from "./instance-environment.ts";
import { type Timeline, RecordPace } from "./timeline.ts";
import { recordOf } from "./turn-record.ts";

/** Turns of the management interface are no events of the instance, and every load of an instance has a start. */
const NOT_RECORDED: ReadonlySet<string> = new Set(["inspect", "manage", "start"]);

export class InstanceReports {
  readonly #environment: InstanceEnvironment;
  readonly #ref: InstanceRef;
  readonly #activity: Activity;
  /** Null if the turns of the instance are not recorded. */
  readonly #timeline: Timeline | null;
  readonly #pace = new RecordPace();
  readonly #pulse: Pulse;
  #stateOf: () => string | null = () => null;

  constructor(environment: InstanceEnvironment, ref: InstanceRef, activity: Activity, isRecorded: boolean) {
    this.#environment = environment;
    this.#ref = ref;
    this.#activity = activity;
    this.#pulse = environment.pulses.of(ref);
    this.#timeline = isRecorded ? environment.timeline : null;
  }

  /** Where the timeline finds the state as JSON. */
  stateOf(read: () => string | null): void {
    this.#stateOf = read;
  }

  started(isNew: boolean): void {
    this.#activity.record("start", this.#environment.clock.now(), { new: isNew });
    this.#environment.metrics.starts.add(1, isNew ? "new" : "woken");
  }

  startFailed(error: unknown): void {
    this.#environment.metrics.starts.add(1, "failed");
    this.failed("start", "onStart", error);
    this.logError(error, "the instance could not start");
  }

  hibernated(): void {
    this.#environment.metrics.hibernations.add(1);
    this.#activity.record("hibernate", this.#environment.clock.now(), {});
  }

  /** `at` is when the turn ended, for the list of activity; null for a turn that is no activity of the instance. */
  turnEnded(turn: Turn, error: unknown, at: number | null): void {
    const { kind, label, startedAt } = turn;
    const { metrics } = this.#environment;
    this.#environment.spans?.turnEnded(turn, this.#ref, error);
    const durationMs = performance.now() - startedAt;
    metrics.turns.add(1, kind, error === null ? "ok" : "error");
    metrics.turnDurations.observe(durationMs / 1000, kind);
    const isFailure = error !== null && (isAgentFailure(turn, error) || isTimeout(error));
    const failureId = isFailure ? this.failed(kind, label, error) : undefined;
    this.#record(turn, durationMs, error, failureId ?? null);
    if (at === null) return;
    this.#pulse.add(at, durationMs, error !== null);
    this.#activity.recordTurn(
      at,
      kind,
      label,
      durationMs,
      error === null ? null : messageOf(error),
      failureId,
    );
  }

  #record(turn: Turn, durationMs: number, error: unknown, failureId: string | null): void {
    const timeline = this.#timeline;
    if (timeline === null || (error === null && NOT_RECORDED.has(turn.kind))) return;
    if (timeline.admits(this.#ref, this.#pace)) {
      const endedAt = this.#environment.clock.now();
      const outcome = { endedAt, durationMs, error, failureId, state: this.#stateOf };
      timeline.add(this.#ref, this.#pace, recordOf(turn, outcome));
    }
    // What they refer to should not live until the turn's outcome has left.
    turn.note = undefined;
    turn.cause = null;
  }

  /** Keeps the error for operators, also after the instance has left memory. */
  failed(kind: string, label: string, error: unknown): string {
    const { clock, problems } = this.#environment;
    return problems.failed(this.#ref, { at: clock.now(), kind, label, error });
  }

  buried(kind: "queue" | "schedule", callback: string, error: unknown): void {
    this.#environment.metrics.buried.add(1, kind);
    this.#environment.alertFeed.current?.deadLetter(this.#ref.account, this.#ref.agent);
    this.#activity.record("buried", this.#environment.clock.now(), { kind, callback });
    const message = `the ${kind === "queue" ? "queue item" : "schedule"} used up its attempts`;
    // The failed turn itself is logged with the stack, except for errors of the protocol.
    if (error instanceof SignalboxError) this.logError(error, message, { callback });
    else this.#log({ callback, error: messageOf(error) }, message);
  }

  logError(error: unknown, message: string, detail: object = {}): void {
    this.#log({ err: error, ...detail }, message);
  }

  #log(fields: object, message: string): void {
    const { account, agent, name } = this.#ref;
    this.#environment.logger.error({ ...fields, account, agent, instance: name }, message);
  }
}

/** True for a failure of the agent's own code: it is logged and passed to `onError`. Errors of the protocol go to their callers only. */
export function isAgentFailure(turn: Turn, error: unknown): boolean {
  return turn.kind !== "hook" && turn.kind !== "start" && !(error instanceof SignalboxError);
}

/** A turn that took too long is no error of the agent's code, and operators want to know of it. */
function isTimeout(error: unknown): boolean {
  return error instanceof SignalboxError && error.id === "agent_turn_timeout";
}
