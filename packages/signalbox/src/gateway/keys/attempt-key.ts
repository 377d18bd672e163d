/**
 * The stored key of one call, attempt by attempt: adds it to the request, reports the answer to the pool, and says whether another key is left.
 * Created only for a step with stored keys.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { ResponseHead, UpstreamRequest } from "../../engines/relay/index.ts";
import type { Step } from "../plan/plan-step.ts";
import { concernsKey, type KeyPool, type PickedKey } from "./key-pool.ts";

/** Of one step: created when its first attempt begins. */
export class AttemptKey {
  readonly #pool: KeyPool;
  readonly #step: Step;
  readonly #tried = new Set<string>();
  #id: string | null = null;

  constructor(pool: KeyPool, step: Step) {
    this.#pool = pool;
    this.#step = step;
  }

  /** The request with a key; an error when no key can be used. */
  next(): UpstreamRequest | SignalboxError {
    const { upstream, model, session } = this.#step;
    const picked = this.#pool.pick(model, session, this.#tried);
    if (picked.kind !== "key") return this.#noKey(picked);
    this.#id = picked.id;
    return { ...upstream, headers: [...upstream.headers, ...picked.headers] };
  }

  /** Reports the answer. Returns true if it concerns the key and another key can be tried at once. */
  isReplaceable(head: ResponseHead): boolean {
    if (this.#id === null) return false;
    const { model, session, upstream } = this.#step;
    this.#pool.report(this.#id, { status: head.status, model, retryAfterMs: retryAfterOf(head) });
    if (!concernsKey(head.status) || upstream.body.kind === "streamed") return false;
    this.#tried.add(this.#id);
    return this.#pool.hasKey(model, session, this.#tried);
  }

  /** The next attempt of the step may use all keys again. */
  startAttempt(): void {
    this.#tried.clear();
  }

  #noKey(picked: Exclude<PickedKey, { kind: "key" }>): SignalboxError {
    const { slug } = this.#step.provider;
    if (picked.kind === "cooling") {
      return new SignalboxError("gateway_rate_limited", {
        message: `All stored keys of ${slug} have reached a rate limit`,
        headers: { "retry-after": String(Math.max(1, Math.ceil(picked.retryAfterMs / 1000))) },
      });
    }
    return new SignalboxError("gateway_unknown_key_alias", {
      message: `No stored key of ${slug} can be used for this call: it is invalid, disabled, not set, not given to this account, or not for this model`,
    });
  }
}

/** The time that the provider names in `retry-after-ms` or `retry-after`; null if it names none. */
export function retryAfterOf({ rawHeaders }: ResponseHead): number | null {
  let fromSeconds: number | null = null;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase();
    if (name !== "retry-after" && name !== "retry-after-ms") continue;
    const text = (rawHeaders[i + 1] ?? "").trim();
    if (name === "retry-after-ms") {
      if (/^\d{1,12}(?:\.\d+)?$/.test(text)) return Number(text);
    } else if (/^\d{1,9}(?:\.\d+)?$/.test(text)) {
      fromSeconds = Number(text) * 1000;
    } else {
      const time = Date.parse(text);
      if (Number.isFinite(time)) fromSeconds = Math.max(time - Date.now(), 0);
    }
  }
  return fromSeconds;
}
