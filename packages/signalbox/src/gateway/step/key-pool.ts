/** The stored keys of one step. One object per step and call, so that it knows which keys this call has tried. */
import type { SignalboxError } from "@signalbox/protocol";
import type { UpstreamRequest } from "../../engines/relay/index.ts";

export interface KeyPool {
  /**
   * Called before each attempt with the step's request. An error when no key can be used; the loop then goes to the next step. A promise only if nodes
   * share the rate of a key and PostgreSQL must be asked, or a cloud identity has no credential; `isNow`: the attempt cannot wait, and such a key is not picked.
   */
  pick(
    upstream: UpstreamRequest,
    isNow?: boolean,
  ): PickedKey | SignalboxError | Promise<PickedKey | SignalboxError>;
  /** Called once for each picked key, when its attempt has failed or its answer begins. */
  report(key: PickedKey, result: KeyResult): void;
  /** Whether a key is left that this call has not tried, after a failure for which the key was at fault (401, 403, 429). */
  hasOther(status: number | null): boolean;
}

export interface PickedKey {
  /** Names the key in circuits and reports; never the secret. */
  readonly id: string;
  /** The step's request with the credential in its headers. */
  readonly upstream: UpstreamRequest;
}

export interface KeyResult {
  /** Null when there was no response. */
  readonly status: number | null;
  /** How long the provider asks to wait; null when it does not say. */
  readonly retryAfterMs: number | null;
}
