/**
 * The stored keys of one step of one call: picks a key for each request, reports the answers to the pool, and says whether another key is left. It is what
 * the attempt loop sees (`step/key-pool.ts`):
 *
 *   const picked = step.keys.pick(step.upstream);            // before each request; an error when no key can be used
 *   step.keys.report(picked, { status, retryAfterMs });      // when the response has a status, or there is none
 *   step.keys.hasOther(status)                               // after a failure: pick again, which does not count as an attempt
 *
 * A key that was refused (401, 403) is not picked again by this call. One that has reached a rate limit (429) is picked again if no other key is left and
 * its time is over. A key whose request failed otherwise may be.
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
  /** Keys that this call does not pick. */
  readonly #tried = new Set<string>();
  /** Of these, keys that have reached a rate limit. */
  readonly #limited = new Set<string>();

  constructor(pool: ProviderKeyPool, call: KeyedCall) {
    this.#pool = pool;
    this.#call = call;
  }

  pick(
    upstream: UpstreamRequest,
    isNow = false,
  ): PickedKey | SignalboxError | Promise<PickedKey | SignalboxError> {
    const { model, session } = this.#call;
    if (this.#limited.size > 0 && !this.#hasUntried()) this.#retryLimited();
    const choice = this.#pool.pick(model, session, this.#tried, isNow);
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
    if (concernsKey(status)) this.#tried.add(id);
    if (status === 429) this.#limited.add(id);
    this.#pool.report(id, { status, model: this.#call.model, retryAfterMs });
  }

  /** Called after `report`. */
  hasOther(status: number | null): boolean {
    return status !== null && concernsKey(status) && this.#hasUntried();
  }

  #hasUntried(): boolean {
    return this.#pool.hasKey(this.#call.model, this.#call.session, this.#tried);
  }

  #retryLimited(): void {
    for (const id of this.#limited) this.#tried.delete(id);
    this.#limited.clear();
  }

  #noKey(choice: Exclude<KeyChoice, { kind: "key" }>): SignalboxError {
    const { providerSlug } = this.#call;
    if (choice.kind === "unchecked" || choice.kind === "failed") return choice.error;
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
