import { ERROR_TABLE, type ErrorEntry, type ErrorName } from "./error-table.ts";

export interface ErrorDetails {
  /** Replaces the message of the table; must contain nothing that a client may not see. */
  readonly message?: string;
  /** The underlying error, for the log only. */
  readonly cause?: unknown;
  /** Extra response headers, lower-case names (`retry-after`, `allow`, …). */
  readonly headers?: Readonly<Record<string, string>>;
  /** Extra members of a gateway error's body, for programs. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Overrides the status of the table, for a configured status (`tags.missing`). */
  readonly status?: number;
  /** The field of the request that is wrong, for dialects that name it. */
  readonly param?: string;
  /** The dialect's own error code where clients look for one; replaces the number in that dialect. */
  readonly reason?: string;
}

/** A registered symbol, so that the service recognizes errors from another copy of this package. */
const BRAND = Symbol.for("signalbox.error");

/** The error class of the project. It names an entry of the error table; renderers turn it into a response. */
export class SignalboxError extends Error {
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && BRAND in value;
  }

  readonly [BRAND] = true;
  readonly id: ErrorName;
  readonly code: number;
  readonly status: number;
  readonly retryable: boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly param: string | null;
  readonly reason: string | null;

  constructor(id: ErrorName, details: ErrorDetails = {}) {
    const entry: ErrorEntry = ERROR_TABLE[id];
    super(
      details.message ?? entry.message,
      details.cause === undefined ? undefined : { cause: details.cause },
    );
    this.name = "SignalboxError";
    this.id = id;
    this.code = entry.code;
    this.status = details.status ?? entry.status;
    this.retryable = entry.retryable;
    this.headers = details.headers ?? {};
    this.fields = details.fields ?? {};
    this.param = details.param ?? null;
    this.reason = details.reason ?? null;
  }
}
