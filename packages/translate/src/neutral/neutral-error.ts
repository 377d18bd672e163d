/** Kinds of errors that all dialects distinguish, by their own names. */
export type ErrorKind =
  | "invalid_request"
  | "authentication"
  | "billing"
  | "permission"
  | "not_found"
  | "too_large"
  | "rate_limit"
  | "server"
  | "overloaded"
  | "timeout";

/** An error of a provider or of the gateway, before it takes the shape of a dialect. */
export interface NeutralError {
  readonly status: number;
  readonly kind: ErrorKind;
  readonly message: string;
  /** Machine-readable code: the provider's, or the gateway's number. */
  readonly code?: string | null;
  /** The request field at fault. */
  readonly param?: string | null;
  /** Replaces the dialect's own name of `kind` in `error.type`, such as `gateway_error`. */
  readonly type?: string;
  readonly requestId?: string | null;
}
