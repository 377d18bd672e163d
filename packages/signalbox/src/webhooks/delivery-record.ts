/** One delivery as the inspector shows it. */
import type { SignatureProblem } from "./schemes/index.ts";

/**
 * `accepted`: an agent has it (or a provider's probe was answered). `duplicate`: it had it before. `rejected`: it was refused and touched
 * nothing. `failed`: it was genuine, and the agent's handler threw or there was no room; the provider will try again.
 */
export const DELIVERY_STATUSES = ["accepted", "duplicate", "rejected", "failed"] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

export type DeliveryReason =
  | SignatureProblem
  | "processed"
  | "queued"
  | "stored"
  | "answered"
  | "handshake"
  | "invalid_payload"
  | "missing_entity"
  | "entity_mismatch"
  | "unsupported_media_type"
  | "body_too_large"
  | "body_timeout"
  | "body_broke_off"
  | "handler_failed"
  | "refused_by_agent"
  | "overloaded";

export interface DeliveryRecord {
  /** ULID; the order of records. */
  readonly id: string;
  readonly accountId: string;
  readonly source: string;
  readonly status: DeliveryStatus;
  readonly reason: DeliveryReason | null;
  readonly httpStatus: number;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
  readonly durationMs: number;
  /** Empty when the delivery was refused before it was read. */
  readonly deliveryId: string;
  readonly type: string;
  readonly title: string;
  readonly agent: string;
  /** Empty when no instance was reached. */
  readonly instance: string;
  readonly contentType: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyBytes: number;
  /** As it was signed; null for refused deliveries and for bodies too large to keep. */
  readonly body: Uint8Array | null;
}

export interface DeliveryFilter {
  readonly source?: string | undefined;
  readonly status?: DeliveryStatus | undefined;
  readonly instance?: string | undefined;
  readonly type?: string | undefined;
  readonly deliveryId?: string | undefined;
}

export function matches(record: DeliveryRecord, filter: DeliveryFilter): boolean {
  return (
    (filter.source === undefined || record.source === filter.source) &&
    (filter.status === undefined || record.status === filter.status) &&
    (filter.instance === undefined || record.instance === filter.instance) &&
    (filter.type === undefined || record.type === filter.type) &&
    (filter.deliveryId === undefined || record.deliveryId === filter.deliveryId)
  );
}
