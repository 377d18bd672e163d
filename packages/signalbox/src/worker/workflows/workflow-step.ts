/** `step` of a workflow: what the program calls. See `WorkflowRun` for what each call promises. */
import { NonRetryableError } from "../modules/workflows-module.ts";
import { parseDuration, parseTime } from "./duration.ts";
import { type Policy, readPolicy, type StepConfig, type StepContext } from "./workflow-policy.ts";
import { isCloneError, type WorkflowRun } from "./workflow-run.ts";
import { type RollbackOutcome, type StepId, type StoredError, StreamResult } from "./workflow-store.ts";

type StepCallback = (context: StepContext) => unknown;

interface RollbackOptions {
  readonly rollback?: (input: {
    readonly ctx: StepContext;
    readonly error: Error;
    readonly output: unknown;
    readonly stepName: string;
  }) => unknown;
  readonly rollbackConfig?: StepConfig;
}

/** A step that has begun and has a handler that undoes it. */
interface Rollback {
  readonly id: StepId;
  readonly position: number;
  readonly context: StepContext;
  readonly handler: NonNullable<RollbackOptions["rollback"]>;
  readonly policy: Policy;
}

const DEFAULT_EVENT_TIMEOUT_MS = 24 * 3600 * 1000;
const MAX_NAME_LENGTH = 256;
/** A stream that a step returns is stored as one value. */
const MAX_STREAM_BYTES = 128 * 1024 * 1024;

export class WorkflowStep {
  readonly #run: WorkflowRun;
  readonly #rollbacks: Rollback[] = [];

  constructor(run: WorkflowRun) {
    this.#run = run;
  }

  /** `do(name, [config,] callback, [rollbackOptions])`. */
  async do(name: string, ...rest: unknown[]): Promise<unknown> {
    const [config, callback, undo] = (typeof rest[0] === "function" ? [{}, ...rest] : rest) as [
      StepConfig,
      StepCallback,
      RollbackOptions?,
    ];
    if (typeof callback !== "function") throw new TypeError(`step "${name}" has no function to run`);
    const policy = readPolicy(config);
    const id = this.#run.idOf("do", checkName(name));
    const context = { step: { name, count: id.count }, attempt: 1, config: policy.config };
    const undoPolicy = readPolicy(undo?.rollbackConfig ?? {});
    const begun = (position: number) => {
      if (typeof undo?.rollback === "function")
        this.#rollbacks.push({ id, position, context, handler: undo.rollback, policy: undoPolicy });
    };
    return this.#run.during(async () => {
      const known = this.#run.use((store) => store.step(id));
      if (known !== null) begun(known.position);
      if (known?.state !== "done" && known?.state !== "failed") await this.#run.untilForward();
      return this.#attempt(id, context, policy, callback, known === null ? begun : () => undefined);
    });
  }

  /** Calls the handlers of the steps that have begun, the last one first. Null: there is none. */
  async rollBack(error: Error): Promise<RollbackOutcome | null> {
    const run = this.#run;
    const rollbacks = this.#rollbacks.toSorted((a, b) => b.position - a.position);
    if (rollbacks.length === 0) return null;
    return run.during(async () => {
      run.use((store) => {
        store.setStatus("rollingBack");
        store.log("rollback_started");
      });
      let failure: StoredError | null = null;
      for (const { id, context, handler, policy } of rollbacks) {
        const { value: output } = run.use((store) => store.step(id)) ?? {};
        const input = { ctx: context, error, output, stepName: `${id.name}-${id.count}` };
        try {
          await this.#attempt({ ...id, kind: "rollback" }, context, policy, () => handler(input), ignore);
        } catch (cause) {
          // The other steps are undone nevertheless.
          failure ??= describe(cause);
        }
      }
      run.use((store) => store.log(failure === null ? "rollback_completed" : "rollback_errored"));
      return failure === null ? { outcome: "complete" } : { outcome: "failed", error: failure };
    });
  }

  /** Runs a callback until it succeeds or is out of attempts; a replay gets the stored outcome. */
  async #attempt(
    id: StepId,
    base: StepContext,
    policy: Policy,
    callback: StepCallback,
    begun: (position: number) => void,
  ): Promise<unknown> {
    const run = this.#run;
    const events = EVENTS[id.kind === "rollback" ? "rollback" : "do"];
    const stepName = `${id.name}-${id.count}`;
    const known = run.use((store) => store.step(id));
    if (known?.state === "done") return known.value;
    if (known?.state === "failed") throw toError(known.error);
    let attempt = known?.attempt ?? 1;
    if (known?.state === "waiting") await this.#waitForRetry(id, attempt, known.wakeAt ?? run.now);
    for (;;) {
      await run.untilResumed();
      const context = { ...base, attempt };
      // A crash repeats the attempt: it is not counted, because the step did not fail.
      const position = run.use((store) => {
        const place = store.putStep(id, "running", attempt, null);
        if (attempt === 1) store.log(events.started, { stepName, config: policy.shownConfig });
        store.log(events.attemptStarted, { stepName, attempt });
        return place;
      });
      if (attempt === 1) begun(position);
      const outcome = await run.work(async () => {
        try {
          const value = await withTimeout(async () => toResult(await callback(context)), policy.timeoutMs);
          return {
            value: run.use((store) => {
              const stored = store.finishStep(id, value, policy.isSensitive);
              store.log(events.attemptCompleted, { stepName, attempt });
              store.log(events.completed, { stepName }, position);
              return stored;
            }),
          };
        } catch (error) {
          // Not the step has failed, but the storage.
          if (run.isOver) throw error;
          return { error: await this.#failed(id, context, policy, error) };
        }
      });
      if (!("error" in outcome)) return outcome.value;
      const after = run.use((store) => store.step(id));
      if (after === null || after.state === "failed") throw outcome.error;
      attempt = after.attempt;
      await this.#waitForRetry(id, attempt, after.wakeAt ?? run.now);
    }
  }

  /** Plans the next attempt, or fails the step. Returns the error of the step. */
  async #failed(id: StepId, context: StepContext, policy: Policy, thrown: unknown): Promise<unknown> {
    const run = this.#run;
    const events = EVENTS[id.kind === "rollback" ? "rollback" : "do"];
    const { attempt } = context;
    const stepName = `${id.name}-${id.count}`;
    let error = thrown;
    let retryDelayMs: number | null = null;
    if (attempt <= policy.limit && !isFinal(error)) {
      try {
        retryDelayMs = await policy.delayMs(context, error);
      } catch (cause) {
        // A delay function that fails ends the step.
        error = cause;
      }
    }
    run.use((store) => {
      store.log(events.attemptErrored, {
        stepName,
        attempt,
        error: describe(error),
        ...(retryDelayMs === null ? {} : { retryDelayMs }),
      });
      if (retryDelayMs !== null) store.putStep(id, "waiting", attempt + 1, run.now + retryDelayMs);
      else {
        store.failStep(id, describe(error));
        store.log(events.errored, { stepName, error: describe(error) });
      }
    });
    return error;
  }

  async sleep(name: string, duration: unknown): Promise<void> {
    const delayMs = parseDuration(duration);
    await this.#sleep(name, () => this.#run.now + delayMs);
  }

  async sleepUntil(name: string, time: unknown): Promise<void> {
    const at = parseTime(time);
    await this.#sleep(name, () => at);
  }

  async waitForEvent(
    name: string,
    options: { readonly type: string; readonly timeout?: unknown },
  ): Promise<unknown> {
    const { type } = options;
    if (typeof type !== "string" || type === "") throw new TypeError(`waitForEvent "${name}" needs a type`);
    const timeoutMs =
      options.timeout === undefined ? DEFAULT_EVENT_TIMEOUT_MS : parseDuration(options.timeout);
    const id = this.#run.idOf("waitForEvent", checkName(name));
    return this.#run.during(() => this.#waitForEvent(id, type, timeoutMs));
  }

  async #waitForEvent(id: StepId, type: string, timeoutMs: number): Promise<unknown> {
    const run = this.#run;
    const stepName = `${id.name}-${id.count}`;
    const known = run.use((store) => store.step(id));
    if (known?.state === "done") return toEvent(known.value);
    if (known?.state === "failed") throw toError(known.error);
    await run.untilForward();
    await run.untilResumed();
    const wakeAt = known?.wakeAt ?? run.now + timeoutMs;
    if (known === null)
      run.use((store) => {
        store.putStep(id, "waiting", 1, wakeAt);
        store.log("wait_started", { stepName, eventType: type });
      });
    const event = await run.wait(wakeAt, () => run.use((store) => store.takeEvent(id, type)) ?? undefined);
    if (event !== undefined) {
      await run.work(async () => run.use((store) => store.log("wait_completed", { stepName })));
      return toEvent(event);
    }
    const error = timeoutError(timeoutMs);
    await run.work(async () =>
      run.use((store) => {
        store.failStep(id, describe(error));
        store.log("wait_timed_out", { stepName });
      }),
    );
    throw error;
  }

  async #sleep(name: string, wake: () => number): Promise<void> {
    const run = this.#run;
    const id = run.idOf("sleep", checkName(name));
    const stepName = `${id.name}-${id.count}`;
    await run.during(async () => {
      const known = run.use((store) => store.step(id));
      if (known?.state === "done") return;
      await run.untilForward();
      await run.untilResumed();
      const wakeAt = known?.wakeAt ?? wake();
      if (known === null)
        run.use((store) => {
          store.putStep(id, "waiting", 1, wakeAt);
          store.log("sleep_started", { stepName, durationMs: Math.max(0, wakeAt - run.now) });
        });
      await run.wait(wakeAt, () => undefined);
      await run.work(async () =>
        run.use((store) => {
          store.finishStep(id, undefined);
          store.log("sleep_completed", { stepName });
        }),
      );
    });
  }

  async #waitForRetry(id: StepId, attempt: number, wakeAt: number): Promise<void> {
    await this.#run.wait(wakeAt, () => undefined);
    this.#run.use((store) => store.putStep(id, "running", attempt, null));
  }
}

const ignore = (): void => undefined;

const EVENTS = {
  do: {
    started: "step_started",
    completed: "step_completed",
    errored: "step_errored",
    attemptStarted: "attempt_started",
    attemptCompleted: "attempt_completed",
    attemptErrored: "attempt_errored",
  },
  rollback: {
    started: "rollback_step_started",
    completed: "rollback_step_completed",
    errored: "rollback_step_errored",
    attemptStarted: "rollback_attempt_started",
    attemptCompleted: "rollback_attempt_completed",
    attemptErrored: "rollback_attempt_errored",
  },
};

/** True for errors after which no other attempt is made. */
function isFinal(error: unknown): boolean {
  return error instanceof NonRetryableError || isCloneError(error);
}

/** A stream is read to its end: a replay must find all of it. */
async function toResult(value: unknown): Promise<unknown> {
  if (!(value instanceof ReadableStream)) return value;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of value as ReadableStream<unknown>) {
    const piece = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    if (!(piece instanceof Uint8Array))
      throw new NonRetryableError("a stream that a step returns has bytes or text");
    bytes += piece.byteLength;
    if (bytes > MAX_STREAM_BYTES)
      throw new NonRetryableError(`a stream that a step returns has at most ${MAX_STREAM_BYTES} bytes`);
    chunks.push(piece);
  }
  return new StreamResult(Buffer.concat(chunks));
}

async function withTimeout<T>(callback: () => Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(timeoutError(timeoutMs)), Math.min(timeoutMs, 2 ** 31 - 1));
  });
  try {
    return await Promise.race([callback(), late]);
  } finally {
    clearTimeout(timer);
  }
}

function timeoutError(timeoutMs: number): Error {
  return Object.assign(new Error(`Execution timed out after ${timeoutMs}ms`), {
    name: "WorkflowTimeoutError",
  });
}

function checkName(name: unknown): string {
  if (typeof name !== "string" || name === "" || name.length > MAX_NAME_LENGTH)
    throw new TypeError(`the name of a step is a text of 1 to ${MAX_NAME_LENGTH} characters`);
  return name;
}

function toEvent(value: unknown): unknown {
  const { type, payload, createdAt } = value as { type: string; payload: unknown; createdAt: number };
  return { type, payload, timestamp: new Date(createdAt) };
}

export function describe(error: unknown): StoredError {
  return error instanceof Error
    ? { name: error.name, message: error.message }
    : { name: "Error", message: String(error) };
}

export function toError(stored: StoredError | null): Error {
  return Object.assign(new Error(stored?.message ?? "the step failed"), { name: stored?.name ?? "Error" });
}
