/**
 * The stored keys of one step of one call: picks a key for each request, reports the answers to the pool, and says whether another key is left. It is what
 * the attempt loop sees (`step/key-pool.ts`):
 *
 *   const picked = step.keys.pick(step.upstream);            // before each request; an error when no key can be used
 *   step.keys.report(picked, { status, retryAfterMs });      // when the response has a status, or there is none
 *   step.keys.hasOther(status)                               // after a failure: pick again, which does not count as an attempt
 *
 * A key that was refused (401, 403, 429) is not picked again by this call. A key whose request failed otherwise may be.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { UpstreamRequest } from "../../engines/relay/index.ts";
import type { KeyPool, KeyResult, PickedKey } from "../step/key-pool.ts";
import { concernsKey, type KeyChoice, type ProviderKeyPool } from "./provider-key-pool.ts";

/** The call, as far as the choice of a key depends on it. */
export interface KeyedCall {
  readonly providerSlug: string;
  readonly model: string;
  /** Calls with one session use the same key while it is healthy. */
  readonly session: string | undefined;
}

export class StepKeys implements KeyPool {
  readonly #pool: ProviderKeyPool;
  readonly #call: KeyedCall;
  readonly #refused = new Set<string>();

  constructor(pool: ProviderKeyPool, call: KeyedCall) {
    this.#pool = pool;
    this.#call = call;
  }

  pick(
    upstream: UpstreamRequest,
    isNow = false,
  ): PickedKey | SignalboxError | Promise<PickedKey | SignalboxError> {
    const { model, session } = this.#call;
    const choice = this.#pool.pick(model, session, this.#refused, isNow);
    return choice instanceof Promise
      ? choice.then((late) => this.#picked(late, upstream))
      : this.#picked(choice, upstream);
  }

  #picked(choice: KeyChoice, upstream: UpstreamRequest): PickedKey | SignalboxError {
    if (choice.kind !== "key") return this.#noKey(choice);
    return { id: choice.id, upstream: { ...upstream, headers: [...upstream.headers, ...choice.headers] } };
  }

  report({ id }: PickedKey, { status, retryAfterMs }: KeyResult): void {
    if (status === null) return;
    if (concernsKey(status)) this.#refused.add(id);
    this.#pool.report(id, { status, model: this.#call.model, retryAfterMs });
  }

  /** Called after `report`. */
  hasOther(status: number | null): boolean {
    const { model, session } = this.#call;
    return status !== null && concernsKey(status) && this.#pool.hasKey(model, session, this.#refused);
  }

  #noKey(choice: Exclude<KeyChoice, { kind: "key" }>): SignalboxError {
    const { providerSlug } = this.#call;
    if (choice.kind === "unchecked") return choice.error;
    if (choice.kind === "cooling") {
      return new SignalboxError("gateway_rate_limited", {
        message: `All stored keys of ${providerSlug} have reached a rate limit`,
        headers: { "retry-after": String(Math.max(1, Math.ceil(choice.retryAfterMs / 1000))) },
      });
    }
    return new SignalboxError("gateway_unknown_key_alias", {
      message: `No stored key of ${providerSlug} can be used for this call: it is invalid, disabled, not set, not given to this account, or not for this model`,
    });
  }
}
