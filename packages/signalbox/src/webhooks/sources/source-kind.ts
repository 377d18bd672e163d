/**
 * A provider as data: its signature scheme, the fields that hold the event's type, id and entity, the description of its events, and its
 * probes. A new provider is one file that exports a `SourceKind`, one line in `index.ts`, and one test.
 */
import type { Scheme } from "../schemes/index.ts";
import type { Rule, VerifiedDelivery } from "./rule.ts";

/** The description of an event for people. */
export interface EventText {
  readonly title?: string | null | undefined;
  readonly description?: string | null | undefined;
  readonly url?: string | null | undefined;
  readonly actor?: string | null | undefined;
}

/** The answer to a provider's probe, which does not reach an agent. */
export interface Handshake {
  readonly status: number;
  readonly body: string;
  /** An address of the provider that must be visited first; without success the provider gets 503 and asks again. */
  readonly visit?: string | undefined;
}

/** A sample delivery of the provider. */
export interface Sample {
  readonly headers: Readonly<Record<string, string>>;
  readonly contentType: string;
  readonly body: string;
}

export interface SampleSubject {
  readonly entity: string;
  readonly deliveryId: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface SourceKind {
  readonly name: string;
  readonly scheme: Scheme;
  /** True when the provider posts `application/x-www-form-urlencoded`, perhaps besides JSON. */
  readonly takesForms?: boolean;
  /** Field of a form that holds the payload as JSON. */
  readonly formPayloadField?: string;
  readonly entity: readonly Rule[];
  readonly eventType: readonly Rule[];
  readonly action?: readonly Rule[];
  /** Without a match, the id is a hash of the body. */
  readonly deliveryId: readonly Rule[];
  describe(delivery: VerifiedDelivery, type: string, action: string | null): EventText;
  /** The name of a field that every genuine delivery has and this one lacks, or null. */
  missing?(delivery: VerifiedDelivery): string | null;
  handshake?(delivery: VerifiedDelivery, type: string): Handshake | null;
  /** The time in the payload, milliseconds since the epoch, for a scheme that signs no time of its own. */
  sentAt?(payload: unknown): number | null;
  /** Seconds; only with `sentAt`. */
  readonly windowSeconds?: number;
  sample(subject: SampleSubject): Sample;
}

export function jsonSample(payload: object, headers: Readonly<Record<string, string>> = {}): Sample {
  return { headers, contentType: "application/json", body: JSON.stringify(payload) };
}
