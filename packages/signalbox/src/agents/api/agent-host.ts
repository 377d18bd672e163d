/** What an `Agent` object delegates to: the parts of its instance, as interfaces of plain objects. */
import type { Logger } from "../../telemetry/logger.ts";
import type { DeliveryOutcome } from "../../contracts/agents-door.ts";
import type { Connection } from "./connection.ts";
import type { DeadLetters } from "../work/dead-letters.ts";
import type { DeliveryLedger } from "../instance/delivery-ledger.ts";
import type { Schedules } from "../work/schedules.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import type { WorkQueue } from "../work/work-queue.ts";

export interface WebhookOptions {
  /** Signs the delivery. */
  readonly secret?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Delivery id; the same over retries lets receivers drop copies. Default: a new one. */
  readonly id?: string;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface AgentHost {
  readonly account: string;
  readonly agent: string;
  readonly name: string;
  /** True in the instance's first life: it has stored nothing but what it stored since. */
  readonly isNew: boolean;
  /** The schema of its class that its database has started with in this life; empty if it has none, or is not new. */
  readonly startedWith: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
  readonly workQueue: WorkQueue;
  readonly deadLetters: DeadLetters;
  readonly schedules: Schedules;
  readonly ledger: DeliveryLedger;
  /** The service's clock: milliseconds since the epoch. */
  now(): number;
  /** Handles a verified event in the running turn of the instance: once, with its entry in the ledger. */
  deliver(event: WebhookEvent): DeliveryOutcome | Promise<DeliveryOutcome>;
  /** The state, or undefined when none was ever set. */
  readState(): unknown;
  writeState(state: unknown, source: Connection | "server"): void;
  query(parts: readonly string[], values: readonly unknown[]): Record<string, unknown>[];
  /** True when the statement may insert rows into the table (its name in small letters), or create a trigger that would. */
  mayInsert(parts: readonly string[], table: string): boolean;
  /** Throws unless the agent has a method of that name that work can be handed to. */
  checkMethod(name: string): void;
  /** True while `onStart` runs. */
  isStarting(): boolean;
  broadcast(message: string | Uint8Array, withoutIds: readonly string[]): void;
  connections(tag?: string): Connection[];
  connection(id: string): Connection | undefined;
  setReadonly(connection: Connection, isReadonly: boolean): void;
  isReadonly(connection: Connection): boolean;
  sendWebhook(
    url: string,
    payload: unknown,
    options: WebhookOptions,
  ): Promise<{ readonly id: string; readonly status: number }>;
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** Ends the instance and everything it stored, after the current turn. */
  destroy(): Promise<void>;
}
