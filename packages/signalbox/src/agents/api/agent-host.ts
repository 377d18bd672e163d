/** What an `Agent` object delegates to: its instance, as an interface that agents' code can be given. */
import type { DeliveryOutcome } from "../../contracts/agent-deliveries.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { DeadLetters } from "../work/dead-letters.ts";
import type { Schedules } from "../work/schedules.ts";
import type { WorkQueue } from "../work/work-queue.ts";
import type { AgentContext } from "./agent-context.ts";
import type { Connection, ConnectionMessage } from "./connection.ts";

/** The variables of the service's environment, unless an agent declares its own type. */
export type AgentEnvironment = Readonly<Record<string, string | undefined>>;

export interface WebhookOptions {
  /** Signs the delivery. */
  readonly secret?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Delivery id; the same id over retries lets receivers drop duplicates. Default: a new one. */
  readonly id?: string;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface AgentHost extends AgentContext {
  readonly account: string;
  /** Kebab-case name of the agent's class. */
  readonly agent: string;
  readonly name: string;
  /** True when the database was created for this start of the instance. */
  readonly isNew: boolean;
  /** The initial schema of the class that the database was created with at this start; empty if the database is not new. */
  readonly startedWith: string;
  readonly env: AgentEnvironment;
  readonly logger: Logger;
  readonly workQueue: WorkQueue;
  readonly deadLetters: DeadLetters;
  readonly schedules: Schedules;
  /** The service's clock: milliseconds since the epoch. */
  now(): number;
  /** Handles a verified event in the running turn of the instance: once, with its entry in the delivery ledger. */
  deliver(event: WebhookEvent): DeliveryOutcome | Promise<DeliveryOutcome>;
  /** The state; undefined when none was ever set. */
  readState(): unknown;
  writeState(state: unknown, source: Connection | "server"): void;
  query(parts: readonly string[], values: readonly unknown[]): Record<string, unknown>[];
  /** True when the statement may insert rows into the table (its name in lower case) or create a trigger that would. */
  mayInsert(parts: readonly string[], table: string): boolean;
  /** Throws unless the agent's own class has a method of that name. */
  checkMethod(name: string): void;
  /** True while `onStart` runs. */
  isStarting(): boolean;
  broadcast(message: ConnectionMessage, withoutIds: readonly string[]): void;
  connections(tag?: string): Connection[];
  connection(id: string): Connection | undefined;
  setReadonly(connection: Connection, isReadonly: boolean): void;
  isReadonly(connection: Connection): boolean;
  hasProtocol(connection: Connection): boolean;
  /** Runs work of the class itself, such as pruning, that may write even if the caller of the turn may not. */
  asOwner(work: () => void): void;
  sendWebhook(
    url: string,
    payload: unknown,
    options: WebhookOptions,
  ): Promise<{ readonly id: string; readonly status: number }>;
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** Keeps the instance in memory until the returned function is called. */
  hold(): () => void;
  /** Removes the instance and everything it stored, after the current turn. */
  destroy(): Promise<void>;
}
