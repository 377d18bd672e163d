/**
 * What Signalbox knows about a provider, as data: how it signs, where it says what happened and to whom, how its events read to a person,
 * and how it probes an address. Adding a provider is one file that exports a `SourceKind`, one line in `index.ts`, and one test.
 */
import type { Scheme } from "../schemes/index.ts";
import type { Rule, VerifiedDelivery } from "./rule.ts";

/** How an event reads to a person. */
export interface EventText {
  readonly title?: string | null | undefined;
  readonly description?: string | null | undefined;
  readonly url?: string | null | undefined;
  readonly actor?: string | null | undefined;
}

/** A provider's probe is answered at the door; no agent hears of it. */
export interface Handshake {
  readonly status: number;
  readonly body: string;
}

/** A genuine-looking delivery of the provider, for trying things out. */
export interface Sample {
  readonly headers: Readonly<Record<string, string>>;
  readonly contentType: string;
  readonly body: string;
}

export interface SampleWish {
  readonly entity: string;
  readonly deliveryId: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface SourceKind {
  readonly name: string;
  readonly scheme: Scheme;
  /** True when the provider (also) posts `application/x-www-form-urlencoded`. */
  readonly takesForms?: boolean;
  /** Field of a form that holds the real payload as JSON. */
  readonly formPayloadField?: string;
  readonly entity: readonly Rule[];
  readonly eventType: readonly Rule[];
  readonly action?: readonly Rule[];
  /** Without a match, a hash of the body stands in. */
  readonly deliveryId: readonly Rule[];
  describe(delivery: VerifiedDelivery, type: string, action: string | null): EventText;
  /** What a genuine delivery always has and this one lacks, said to its sender; null when nothing is missing. */
  missing?(delivery: VerifiedDelivery): string | null;
  handshake?(delivery: VerifiedDelivery, type: string): Handshake | null;
  /** Milliseconds since the epoch at which the (verified) payload says it was sent, where the scheme itself signs no time. */
  sentAt?(payload: unknown): number | null;
  /** Seconds; only with `sentAt`. */
  readonly windowSeconds?: number;
  sample(wish: SampleWish): Sample;
}

export function jsonSample(payload: object, headers: Readonly<Record<string, string>> = {}): Sample {
  return { headers, contentType: "application/json", body: JSON.stringify(payload) };
}
