/** `step` of a workflow: what the program calls. See `WorkflowRun` for what each call promises. */
import { NonRetryableError } from "../modules/workflows-module.ts";
import { parseDuration, parseTime } from "./duration.ts";
import { isCloneError, type WorkflowRun } from "./workflow-run.ts";
import type { StoredError } from "./workflow-store.ts";

export interface StepConfig {
  readonly retries?: { readonly limit?: number; readonly delay?: unknown; readonly backoff?: string };
  readonly timeout?: unknown;
}

export interface StepContext {
  readonly step: { readonly name: string; readonly count: number };
  readonly attempt: number;
}

type StepCallback = (context: StepContext) => unknown;

/** The originals' defaults. */
const DEFAULT_RETRIES = 5;
const DEFAULT_DELAY_MS = 10_000;
const DEFAULT_TIMEOUT_MS = 600_000;
const DEFAULT_EVENT_TIMEOUT_MS = 24 * 3600 * 1000;
const MAX_NAME_LENGTH = 256;

export class WorkflowStep {
  readonly #run: WorkflowRun;

  constructor(run: WorkflowRun) {
    this.#run = run;
  }

  async do(name: string, ...rest: unknown[]): Promise<unknown> {
    const [config, callback] = (rest.length > 1 ? rest : [{}, rest[0]]) as [StepConfig, StepCallback];
    if (typeof callback !== "function") throw new TypeError(`step "${name}" has no function to run`);
    const policy = readPolicy(config);
    const key = this.#run.keyOf(checkName(name));
    return this.#run.during(() => this.#do(name, key, policy, callback));
  }

  async #do(name: string, key: string, policy: Policy, callback: StepCallback): Promise<unknown> {
    const run = this.#run;
    const known = run.use((store) => store.step(key));
    if (known?.state === "done") return known.value;
    if (known?.state === "failed") throw toError(known.error);
    let attempt = known?.attempt ?? 1;
    if (known?.state === "waiting") await this.#waitForRetry(key, attempt, known.wakeAt ?? run.now);
    const count = Number(key.slice(name.length + 1));
    for (;;) {
      await run.untilResumed();
      // A crash repeats the attempt: it is not counted, because the step did not fail.
      run.use((store) => store.putStep(key, "running", attempt, null));
      const outcome = await run.work(async () => {
        try {
          const context = { step: { name, count }, attempt };
          const value = await withTimeout(async () => callback(context), policy.timeoutMs);
          return { value: run.use((store) => store.finishStep(key, value)) };
        } catch (error) {
          // Not the step has failed, but the storage.
          if (run.isOver) throw error;
          if (attempt > policy.limit || error instanceof NonRetryableError || isCloneError(error))
            run.use((store) => store.failStep(key, describe(error)));
          else {
            const retryAt = run.now + policy.delayMs(attempt);
            run.use((store) => store.putStep(key, "waiting", attempt + 1, retryAt));
          }
          return { error };
        }
      });
      if (!("error" in outcome)) return outcome.value;
      const after = run.use((store) => store.step(key));
      if (after === null || after.state === "failed") throw outcome.error;
      attempt = after.attempt;
      await this.#waitForRetry(key, attempt, after.wakeAt ?? run.now);
    }
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
    const key = this.#run.keyOf(checkName(name));
    return this.#run.during(() => this.#waitForEvent(key, type, timeoutMs));
  }

  async #waitForEvent(key: string, type: string, timeoutMs: number): Promise<unknown> {
    const run = this.#run;
    const known = run.use((store) => store.step(key));
    if (known?.state === "done") return toEvent(known.value);
    if (known?.state === "failed") throw toError(known.error);
    await run.untilResumed();
    const wakeAt = known?.wakeAt ?? run.now + timeoutMs;
    if (known === null) run.use((store) => store.putStep(key, "waiting", 1, wakeAt));
    const event = await run.wait(wakeAt, () => run.use((store) => store.takeEvent(key, type)) ?? undefined);
    if (event !== undefined) {
      await run.work(async () => undefined);
      return toEvent(event);
    }
    const error = timeoutError(timeoutMs);
    await run.work(async () => run.use((store) => store.failStep(key, describe(error))));
    throw error;
  }

  async #sleep(name: string, wake: () => number): Promise<void> {
    const run = this.#run;
    const key = run.keyOf(checkName(name));
    await run.during(async () => {
      const known = run.use((store) => store.step(key));
      if (known?.state === "done") return;
      await run.untilResumed();
      const wakeAt = known?.wakeAt ?? wake();
      if (known === null) run.use((store) => store.putStep(key, "waiting", 1, wakeAt));
      await run.wait(wakeAt, () => undefined);
      await run.work(async () => run.use((store) => store.finishStep(key, undefined)));
    });
  }

  async #waitForRetry(key: string, attempt: number, wakeAt: number): Promise<void> {
    await this.#run.wait(wakeAt, () => undefined);
    this.#run.use((store) => store.putStep(key, "running", attempt, null));
  }
}

interface Policy {
  readonly limit: number;
  readonly timeoutMs: number;
  /** The pause after a failed attempt, from 1. */
  delayMs(attempt: number): number;
}

function readPolicy({ retries = {}, timeout }: StepConfig): Policy {
  const delay = retries.delay === undefined ? DEFAULT_DELAY_MS : parseDuration(retries.delay);
  const backoff = retries.backoff ?? "exponential";
  if (backoff !== "constant" && backoff !== "linear" && backoff !== "exponential")
    throw new TypeError(`backoff is constant, linear or exponential, found ${JSON.stringify(backoff)}`);
  return {
    limit: retries.limit ?? DEFAULT_RETRIES,
    timeoutMs: timeout === undefined ? DEFAULT_TIMEOUT_MS : parseDuration(timeout),
    delayMs(attempt) {
      if (backoff === "constant") return delay;
      return backoff === "linear" ? delay * attempt : delay * 2 ** (attempt - 1);
    },
  };
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

function toError(stored: StoredError | null): Error {
  return Object.assign(new Error(stored?.message ?? "the step failed"), { name: stored?.name ?? "Error" });
}
