/** A verified webhook delivery, as agents receive it: the fields common to all providers, and the body. */
export interface WebhookEvent {
  /** The delivery id of the provider, used for deduplication. */
  readonly id: string;
  /** Name of the configured source: `github`, `stripe`, `generic`, … */
  readonly source: string;
  /** Event type, e.g. `push`, `invoice.paid`. */
  readonly type: string;
  readonly action: string | null;
  /** Time of arrival: ISO 8601, UTC, milliseconds. */
  readonly timestamp: string;
  /** Parsed JSON body, or the fields of a form body. */
  readonly payload: unknown;
  /** Received headers with lower-case names, without credentials and signatures. */
  readonly headers: Readonly<Record<string, string>>;
  /** The signed bytes of the body. */
  readonly rawBody: Uint8Array;
  /** For display, extracted from the payload by the rule of the source. */
  readonly title: string;
  readonly description: string | null;
  readonly url: string | null;
  readonly actor: string | null;
}
