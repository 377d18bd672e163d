/** How often, how long and how fast a step is tried. */
import { parseDuration } from "./duration.ts";

export interface StepConfig {
  readonly retries?: { readonly limit?: number; readonly delay?: unknown; readonly backoff?: string };
  readonly timeout?: unknown;
  /** `output`: the result is not shown in the history. */
  readonly sensitive?: string;
}

export interface StepContext {
  readonly step: { readonly name: string; readonly count: number };
  readonly attempt: number;
  /** With the defaults; without `delay` if it is a function. */
  readonly config: object;
}

export interface Policy {
  readonly limit: number;
  readonly timeoutMs: number;
  readonly isSensitive: boolean;
  readonly config: object;
  /** As the history shows it: a function as delay is `[dynamic]`. */
  readonly shownConfig: object;
  /** The pause after a failed attempt. */
  delayMs(context: StepContext, error: unknown): Promise<number>;
}

/** The originals' defaults. */
const DEFAULT_RETRIES = 5;
const DEFAULT_DELAY_MS = 10_000;
const DEFAULT_TIMEOUT_MS = 600_000;

const DYNAMIC = "[dynamic]";

export function readPolicy({ retries = {}, timeout, sensitive }: StepConfig): Policy {
  const { limit = DEFAULT_RETRIES, delay: given = DEFAULT_DELAY_MS, backoff = "exponential" } = retries;
  const delay = typeof given === "function" ? null : parseDuration(given);
  if (backoff !== "constant" && backoff !== "linear" && backoff !== "exponential")
    throw new TypeError(`backoff is constant, linear or exponential, found ${JSON.stringify(backoff)}`);
  if (sensitive !== undefined && sensitive !== "output")
    throw new TypeError(`sensitive is "output", found ${JSON.stringify(sensitive)}`);
  const others = {
    timeout: timeout ?? DEFAULT_TIMEOUT_MS,
    ...(sensitive === undefined ? {} : { sensitive }),
  };
  return {
    limit,
    timeoutMs: timeout === undefined ? DEFAULT_TIMEOUT_MS : parseDuration(timeout),
    isSensitive: sensitive === "output",
    config: { retries: { limit, backoff, ...(delay === null ? {} : { delay: given }) }, ...others },
    shownConfig: { retries: { limit, backoff, delay: delay === null ? DYNAMIC : given }, ...others },
    async delayMs(context, error) {
      if (delay === null) return parseDuration(await (given as DelayFunction)({ ctx: context, error }));
      if (backoff === "constant") return delay;
      return backoff === "linear" ? delay * context.attempt : delay * 2 ** (context.attempt - 1);
    },
  };
}

type DelayFunction = (input: { readonly ctx: StepContext; readonly error: unknown }) => unknown;
