/**
 * What the parts that change something tell the audit log. The management interface begins a write before its handler runs and finishes it before
 * the client is answered; the database and stores in between find it as `currentWrite`.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Queryable } from "../core/queryable.ts";

export interface AuditActor {
  readonly type: "root" | "token" | "anonymous" | "system";
  /** Id of the token; empty for the others. */
  readonly id: string;
  readonly name: string;
  /** The start of the hash of the dashboard session; null without a session. */
  readonly session: string | null;
  /** Address of the connection; null for a call from inside the process. */
  readonly ip: string | null;
}

/** What is known of a write before its handler runs. */
export interface WriteFacts {
  /** Empty for a write that belongs to no account. */
  readonly accountId: string;
  readonly requestId: string;
  readonly actor: AuditActor;
  /** `create`, `update`, `delete`, or the name of an action such as `rotate`. */
  readonly action: string;
  /** Method and path template. */
  readonly operation: string;
  readonly resourceType: string;
  readonly resourceId: string;
  readonly path: string;
  readonly userAgent: string | null;
  /** As the client or a proxy states it; not verified. */
  readonly forwardedFor: string | null;
}

/** A change as the store sees it inside its transaction. */
export interface RecordedChange {
  readonly resourceId: string;
  readonly before: unknown;
  readonly after: unknown;
}

export type WriteOutcome = "success" | "refused" | "failed" | "unknown";

export interface WriteResult {
  readonly outcome: WriteOutcome;
  readonly status: number | null;
  readonly code: number | null;
  readonly message: string | null;
  /** The input, the state before and the state after; secrets are removed before they are stored. */
  readonly request?: unknown;
  readonly before?: unknown;
  readonly after?: unknown;
  /** A successful request that only read: it is answered even if its entry cannot be stored. */
  readonly changedNothing?: boolean;
  /** Of a created resource. */
  readonly resourceId?: string | undefined;
}

export interface PendingWrite {
  /** What the claim contains besides the facts: the input and the state before the change. */
  prepare(known: Pick<WriteResult, "request" | "before">): void;
  /** True when a claim or the entry is durable. */
  readonly isClaimed: boolean;
  /** True when the entry of the whole change is durable. */
  readonly isComplete: boolean;
  /** Writes the claim in the transaction of the change. */
  claimIn(tx: Queryable): Promise<void>;
  /** The transaction with the claim or the entry is durable. */
  committed(isComplete: boolean): void;
  /** Writes the entry unless it is complete. Resolves when it is durable. */
  finish(result: WriteResult): Promise<void>;
}

export interface AuditTrail {
  begin(facts: WriteFacts): PendingWrite;
  /** Writes complete entries of successful changes of one account in the transaction of the changes. */
  recordIn(
    tx: Queryable,
    changes: readonly { readonly write: PendingWrite; readonly change: RecordedChange }[],
  ): Promise<void>;
}

/** The management write whose handler runs. Undefined for all other code. */
export const currentWrite: AsyncLocalStorage<PendingWrite | undefined> = new AsyncLocalStorage();
