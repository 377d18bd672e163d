/** One way to answer a call: a provider, the request to send to it, and how its attempts are made. */
import type {
  RequestBody,
  ResponseHead,
  UpstreamExchange,
  UpstreamHandler,
  UpstreamRequest,
} from "../../engines/relay/index.ts";
import type { Provider } from "../providers/provider.ts";
import type { AttemptPolicy } from "./attempt-policy.ts";
import type { Translation } from "./translation.ts";
import type { KeyPool } from "./key-pool.ts";

export interface Step {
  readonly provider: Provider;
  /** After the provider segment, without the query. */
  readonly path: string;
  readonly requestType: RequestType;
  /** As the request names it; empty when only the response does. */
  readonly model: string;
  /** The output limit that the request sets, for each answer that it asks for; null when it sets none. */
  readonly maxOutputTokens: number | null;
  /** How many answers the request asks for. */
  readonly choices: number;
  /** The service tier that the request asks for; empty for the usual one. */
  readonly tier: string;
  readonly upstream: UpstreamRequest;
  /** Stored keys of which each attempt picks one; null when the credential is already in `upstream`. */
  readonly keys: KeyPool | null;
  /** The provider sees the caller's own credential, and none of the operator. */
  readonly hasOwnKey: boolean;
  /** Tells apart, for the cache, steps that use different stored keys; empty without stored keys. */
  readonly keyScope: string;
  readonly policy: AttemptPolicy;
  /** Null for calls that did not come through a unified door. */
  readonly translation: Translation | null;
  /** Starts a job whose cost is reserved and charged apart from this call (`jobs`). */
  readonly isTracked?: boolean;
  /** The position in the caller's list, when a strategy has changed the order. */
  readonly place?: number;
  /** Searches every response before anything else reads it; absent when no rule applies. */
  readonly guard?: StepGuard;
  /** The body before a guardrail has masked texts in it; absent when none has. */
  readonly unmasked?: RequestBody;
  /** Removes from the response what only the gateway asked for; null when it passes as it is. */
  readonly filter: ((head: ResponseHead) => ResponseFilter | null) | null;
}

/** The guardrails of a call, at its exchanges. */
export interface StepGuard {
  /** Sends with `send`, and passes to `handler` what may pass of the response. */
  exchange(send: (handler: UpstreamHandler) => UpstreamExchange, handler: UpstreamHandler): UpstreamExchange;
}

/** The type of a call, for the log and for the checks of its body; empty when the path is not known. */
export type RequestType =
  | "chat"
  | "completions"
  | "responses"
  | "messages"
  | "embeddings"
  | "generate_content"
  | "images"
  | "audio"
  | "moderations"
  | "models"
  | "realtime"
  | "";

/** Changes the bytes of a response on their way to the client. */
export interface ResponseFilter {
  /** The bytes for the client, possibly none. Called with every read, in order; `isLast` exactly once. Changes the memory of `chunk`. */
  push(chunk: Buffer, isLast: boolean): Buffer;
}
