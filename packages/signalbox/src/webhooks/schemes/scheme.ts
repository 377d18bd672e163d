/**
 * How deliveries are signed. A scheme is a pure function of bytes, headers, keys and time. It never parses the body beyond what its
 * signature covers.
 *
 * Rules for every scheme:
 * 1. The signature is recomputed over the raw bytes and compared as text in constant time. A valid signature in another letter case, padding
 *    or encoding is invalid.
 * 2. Every key is tried (rotation), and every signature of a header that can hold several.
 * 3. A signed time must be within the window in both directions: a delivery dated in the future could be replayed until then.
 * See webhooks/README.md.
 */
import type { KeyObject } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** Why verification failed. Shown to operators only: senders always get the same answer. */
export type SignatureProblem =
  | "no_secret"
  | "signature_missing"
  | "signature_malformed"
  | "signature_mismatch"
  | "certificate_refused"
  | "address_refused"
  | "timestamp_outside_window";

export interface SignedDelivery {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Addresses that the sender may have posted to; used by schemes that sign the address. */
  urls(): readonly string[];
  /** The key of the certificate that `certificateUrl` named; null if it cannot be used. */
  readonly certificate?: KeyObject | null;
  /** Address of the sender. Absent in samples, which operators send. */
  address?(): string | null;
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
  /** Header and algorithm, for listings. */
  readonly summary: string;
  /** Default replay window; null when the scheme signs no time. */
  readonly windowSeconds: number | null;
  /** The vendor, if nobody else has the key that signs. */
  readonly onlySigner?: string;
  /** True when no delivery carries a secret: the list of addresses is the proof. */
  readonly needsNoSecret?: boolean;
  /** Header or parameter of the address whose value is a credential, whatever its name; lower case. */
  readonly secretHeader?: string;
  readonly secretParameter?: string;
  /** The key for a secret. The error for an unusable secret names the expected form and never the secret. */
  toKey(secret: string): KeyObject;
  /** Address of the certificate whose key signed; null if the delivery names none that may be used. Nothing is verified yet. */
  certificateUrl?(
    delivery: Pick<SignedDelivery, "headers" | "body">,
    keys: readonly KeyObject[],
  ): string | null;
  /** Null when the signature is valid. */
  verify(
    delivery: SignedDelivery,
    keys: readonly KeyObject[],
    now: number,
    windowMs: number,
  ): SignatureProblem | null;
  /** Headers, and query parameters where the address is signed, that the provider would add. */
  sign(material: SigningMaterial): SignedParts;
}

export interface SignedParts {
  readonly headers: Record<string, string>;
  /** Appended to the query of the address. */
  readonly query?: string;
}
