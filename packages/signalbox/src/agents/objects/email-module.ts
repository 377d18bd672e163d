/** The module `cloudflare:email`. */

/** A message to send: an envelope and the message itself (RFC 5322), as text or as bytes. */
export class EmailMessage {
  readonly from: string;
  readonly to: string;
  readonly raw: ReadableStream | string;

  constructor(from: string, to: string, raw: ReadableStream | string) {
    this.from = from;
    this.to = to;
    this.raw = raw;
  }
}
