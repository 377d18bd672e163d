/** A verified webhook, as agents see it: the fields that all providers have in common, and the body. */
export interface WebhookEvent {
  /** The provider's delivery id, by which duplicates are recognised. */
  readonly id: string;
  /** The configured source: `github`, `stripe`, `generic`, … */
  readonly source: string;
  /** Event type, e.g. `push`, `invoice.paid`. */
  readonly type: string;
  readonly action: string | null;
  /** Time of arrival: ISO 8601, UTC, milliseconds. */
  readonly timestamp: string;
  /** The parsed JSON body, or the fields of a form. */
  readonly payload: unknown;
  /** The request's headers with lower-case names, without credentials and signatures. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body as it was received and signed. */
  readonly rawBody: Uint8Array;
  /** For people; derived from the payload by the rule of the source. */
  readonly title: string;
  readonly description: string | null;
  readonly url: string | null;
  readonly actor: string | null;
}
