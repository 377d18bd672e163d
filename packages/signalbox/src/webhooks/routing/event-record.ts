/** The records of a source with routes: what arrived, an event for each route, and an attempt for each try. */
import type { RouteId } from "./route.ts";

/** What arrived, or one item of a list that arrived. */
export interface StoredDelivery {
  /** ULID. */
  readonly id: string;
  readonly accountId: string;
  readonly source: string;
  /** The sender's. */
  readonly deliveryId: string;
  /** Id of the delivery whose list this one was an item of. */
  readonly batch: string | null;
  readonly type: string;
  readonly title: string;
  readonly entity: string | null;
  readonly isEntityExact: boolean;
  /** Path and query of the request. */
  readonly target: string;
  readonly receivedAt: number;
  readonly contentType: string | null;
  /** Without signatures and credentials. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON of the headers with signatures and credentials, encrypted; null if there are none. */
  readonly sealedHeaders: string | null;
  /** The same, while the delivery is in memory since its arrival. */
  readonly openHeaders?: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export const STORED_STATES = ["waiting", "delivered", "failed", "cancelled", "ignored"] as const;
export type StoredState = (typeof STORED_STATES)[number];

/** As people see it: a waiting event is held if its route is paused, scheduled until its time, and then queued. */
export const EVENT_STATES = [
  "scheduled",
  "queued",
  "held",
  "delivered",
  "failed",
  "cancelled",
  "ignored",
] as const;
export type EventState = (typeof EVENT_STATES)[number];

/** Why an attempt is made. */
export type AttemptCause = "initial" | "automatic" | "manual" | "bulk";

export interface RoutedEvent extends RouteId {
  /** ULID. Receivers see it with every attempt. */
  readonly id: string;
  /** Id of the stored delivery. */
  readonly delivery: string;
  readonly type: string;
  readonly entity: string | null;
  readonly receivedAt: number;
  readonly state: StoredState;
  readonly reason: string | null;
  /** Null unless it waits. */
  readonly dueAt: number | null;
  readonly isAttempting: boolean;
  readonly attempts: number;
  /** Attempts since it was queued last. */
  readonly tries: number;
  readonly cause: AttemptCause;
  readonly replay: string | null;
  readonly repeat: string | null;
  /** The issue that it belongs to since it failed. */
  readonly issue: string | null;
}

export interface AttemptRecord {
  readonly id: string;
  readonly accountId: string;
  readonly event: string;
  readonly number: number;
  readonly cause: AttemptCause;
  readonly startedAt: number;
  readonly durationMs: number;
  readonly outcome: "delivered" | "failed";
  readonly status: number | null;
  readonly error: string | null;
  readonly request: {
    readonly method: string;
    readonly url: string;
    /** Without credentials. */
    readonly headers: Readonly<Record<string, string>>;
  } | null;
  readonly responseHeaders: Readonly<Record<string, string>> | null;
  /** The beginning of the body. */
  readonly response: Uint8Array | null;
}
