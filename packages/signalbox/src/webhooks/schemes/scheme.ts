/**
 * How a sender proves that a delivery is its own. A scheme is pure: bytes, headers, keys and the time in; a verdict out. It never parses
 * the body beyond what its signature covers.
 *
 * Rules every scheme keeps:
 * 1. The signature is recomputed over the raw bytes and compared as text in constant time, so that a changed letter case, padding or
 *    encoding of a right signature is a wrong one.
 * 2. Every key is tried (rotation), and every signature of a header that can hold several.
 * 3. A signed time must be within the window on both sides: one far in the future could be replayed until it is past.
 */
import type { KeyObject } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** Why a delivery is not believed. For the operator's eyes only: senders see one and the same answer. */
export type SignatureProblem =
  | "no_secret"
  | "signature_missing"
  | "signature_malformed"
  | "signature_mismatch"
  | "timestamp_outside_window";

export interface SignedDelivery {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Addresses the sender may have posted to, as text; only schemes that sign the address look. */
  urls(): readonly string[];
}

export interface SigningMaterial {
  readonly secret: string;
  readonly body: Buffer;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly deliveryId: string;
  readonly url: string;
}

export interface Scheme {
  readonly name: string;
  /** One line for listings: header and algorithm. */
  readonly summary: string;
  /** Default replay window; null when the scheme signs no time. */
  readonly windowSeconds: number | null;
  /** Turns the text of a secret into a key; throws with what is expected (never with the text) when it cannot be one. */
  toKey(secret: string): KeyObject;
  /** Null when the signature holds. */
  verify(
    delivery: SignedDelivery,
    keys: readonly KeyObject[],
    now: number,
    windowMs: number,
  ): SignatureProblem | null;
  /** Headers (and, where the address is signed, query parameters) that a genuine sender would add. */
  sign(material: SigningMaterial): SignedParts;
}

export interface SignedParts {
  readonly headers: Record<string, string>;
  /** To be appended to the address's query. */
  readonly query?: string;
}
