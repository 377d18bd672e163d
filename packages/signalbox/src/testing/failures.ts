/** The errors of agents that no caller waits for: of queue items, schedules, hooks and webhooks. Without this, they would only be logged. */
import { inspect } from "node:util";

export interface AgentFailure {
  readonly error: Error;
  /** Kebab-case name of the agent. */
  readonly agent: string;
  /** Name of the instance. */
  readonly instance: string;
  /** What failed: `queue`, `schedule`, `delivery`, `rpc`, …; null if it was no turn. */
  readonly kind: string | null;
  /** The method, or what the turn was about. */
  readonly label: string | null;
}

interface LoggedError {
  readonly err?: unknown;
  readonly agent?: string;
  readonly instance?: string;
  readonly kind?: string;
  readonly label?: string;
}

/** Turns whose failure is never the outcome of a call: the service may have refused the call itself, which is no failure of the agent. */
const NOBODY_WAITS: ReadonlySet<string> = new Set(["queue", "schedule"]);

export class Failures {
  #untaken: AgentFailure[] = [];
  /** An error may be logged more than once on its way. */
  #last: unknown = null;

  /** An error line of the service's log. */
  readonly observe = (fields: unknown): void => {
    if (typeof fields !== "object" || fields === null) return;
    const { err, agent, instance, kind = null, label = null } = fields as LoggedError;
    if (err === undefined || agent === undefined || instance === undefined || err === this.#last) return;
    this.#last = err;
    const error = err instanceof Error ? err : new Error(inspect(err));
    this.#untaken.push({ error, agent, instance, kind, label });
  };

  take(): AgentFailure[] {
    // The same value may be thrown again.
    this.#last = null;
    return this.#untaken.splice(0);
  }

  /** Takes the newest failure of an instance that the test has already received as the outcome of what it did. */
  takeLast(agent: string, instance: string): AgentFailure | undefined {
    const index = this.#untaken.findLastIndex(
      (one) => one.agent === agent && one.instance === instance && !NOBODY_WAITS.has(one.kind ?? ""),
    );
    if (index === -1) return undefined;
    this.#last = null;
    return this.#untaken.splice(index, 1)[0];
  }

  /** Throws the failures that the test has not taken. */
  throwUntaken(): void {
    const failures = this.take();
    const [first] = failures;
    if (first === undefined) return;
    const what = `${first.agent}/${first.instance}${first.kind === null ? "" : ` (${first.kind} ${first.label ?? ""})`}`;
    if (failures.length === 1)
      throw new Error(`${what} failed: ${first.error.message}`, { cause: first.error });
    throw new AggregateError(
      failures.map(({ error }) => error),
      `${failures.length} failures of agents; the first in ${what}: ${first.error.message}`,
    );
  }
}
