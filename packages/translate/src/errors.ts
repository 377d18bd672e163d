import type { NeutralError } from "./neutral/neutral-error.ts";

/** The request is not a valid request of its own dialect. `field` is the path of the offending field, such as `messages[2].role`. */
export class InvalidRequestError extends Error {
  override readonly name = "InvalidRequestError";
  readonly field: string;
  /** The dialect's own error code where clients look for one, such as `previous_response_not_found`. */
  readonly code: string | null;

  constructor(field: string, message: string, code: string | null = null) {
    super(message);
    this.field = field;
    this.code = code;
  }
}

/** The target dialect cannot express `field`, and the caller did not allow leaving it out. */
export class UnsupportedFieldError extends Error {
  override readonly name = "UnsupportedFieldError";
  readonly field: string;

  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

/** The upstream answered with success, but its response reports a failure. */
export class FailedResponseError extends Error {
  override readonly name = "FailedResponseError";
  readonly error: NeutralError;

  constructor(error: NeutralError) {
    super(error.message);
    this.error = error;
  }
}
