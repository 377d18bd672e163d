/** A stored call and its bodies. */
import type { CallValues } from "./columns.ts";

/** A call belongs to one gateway of one account; both are plain names here. */
export interface GatewayRef {
  readonly accountId: string;
  readonly gatewayId: string;
}

/** A stored call, without its bodies. */
export interface CallRow extends GatewayRef, CallValues {}

export interface StoredBody {
  readonly contentType: string;
  readonly bytes: Uint8Array;
  /** False if the body was longer than the part that was kept. */
  readonly isComplete: boolean;
}
