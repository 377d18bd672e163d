/** A verified webhook as agents see it: what every provider's delivery has in common, and the body itself. */
export interface WebhookEvent {
  /** The provider's delivery id; the key of deduplication. */
  readonly id: string;
  /** Configured source it came through: `github`, `stripe`, `generic`, … */
  readonly source: string;
  /** Event type, e.g. `push`, `invoice.paid`. */
  readonly type: string;
  readonly action: string | null;
  /** Time of arrival: ISO 8601, UTC, milliseconds. */
  readonly timestamp: string;
  /** Parsed JSON body, or the fields of a form body. */
  readonly payload: unknown;
  /** Headers as they arrived, lower-case names, without credentials and signatures. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body as it was signed. */
  readonly rawBody: Uint8Array;
  /** For people, drawn from the payload by the source's rule. */
  readonly title: string;
  readonly description: string | null;
  readonly url: string | null;
  readonly actor: string | null;
}
