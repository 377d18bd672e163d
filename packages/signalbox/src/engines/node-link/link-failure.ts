/** Why a call or a stream between two nodes failed, as a value: the receiver decides whether another attempt is safe. */

export interface LinkFailure {
  /**
   * - `unreachable`: there is no link; nothing was sent.
   * - `overloaded`: too many bytes wait for this peer; nothing was sent.
   * - `broken`: the link broke, or no answer came in time; the other node may have done the work.
   * - `cancelled`: the other side gave up.
   * - `too_large`: the call has more than `MAX_CALL_BYTES`; nothing was sent.
   * - `answer_too_large`: the other node has done the work, and its answer has more than `MAX_CALL_BYTES`.
   * - any other text: an answer of the other node.
   */
  readonly code: string;
  readonly message: string;
  /** Further facts of the other node's answer, as JSON. */
  readonly details?: unknown;
}

/** Thrown by `Link.call`. */
export class LinkError extends Error {
  override readonly name = "LinkError";
  readonly failure: LinkFailure;

  constructor(failure: LinkFailure) {
    super(failure.message);
    this.failure = failure;
  }

  get code(): string {
    return this.failure.code;
  }

  /** True if the other node has not seen the request. */
  get isUnsent(): boolean {
    return this.code === "unreachable" || this.code === "overloaded";
  }
}

export function encodeFailure(failure: LinkFailure): Buffer {
  return Buffer.from(JSON.stringify(failure));
}

export function decodeFailure(payload: Buffer): LinkFailure {
  if (payload.length === 0) return { code: "cancelled", message: "the other node cancelled the request" };
  const value = JSON.parse(payload.toString("utf8")) as Partial<Record<keyof LinkFailure, unknown>> | null;
  const { code, message, details } = value ?? {};
  return {
    code: typeof code === "string" ? code : "internal",
    message: typeof message === "string" ? message : "the other node gave no reason",
    ...(details === undefined ? {} : { details }),
  };
}
