import { ERROR_TABLE, type ErrorEntry, type ErrorName } from "./error-table.ts";

export interface ErrorDetails {
  /** Replaces the table's text; must be safe to show to any client. */
  readonly message?: string;
  /** What really happened, for the log only. */
  readonly cause?: unknown;
  /** Extra response headers, lower-case names (`retry-after`, `allow`, …). */
  readonly headers?: Readonly<Record<string, string>>;
  /** Status that overrides the table's, where a setting decides it (`tags.missing`). */
  readonly status?: number;
}

/** Registered, so that an agent's own copy of this package throws errors that the service knows. */
const BRAND = Symbol.for("signalbox.error");

/** The one error class of the project: whoever throws it picks a name from the table, and renderers do the rest. */
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
  }
}
