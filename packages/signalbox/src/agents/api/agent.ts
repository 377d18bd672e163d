/**
 * The class users extend. It contains nothing: every member hands over to a part of the instance behind it (`AgentHost`), and
 * the hooks are empty or say what happens by default.
 */
import type { AdmissionAnswer, AdmissionContext } from "./admission.ts";
import type { AgentHost, WebhookOptions } from "./agent-host.ts";
import { AGENT_BASE } from "./callable.ts";
import type { Connection, ConnectionContext } from "./connection.ts";
import type { DeadLetter } from "../work/dead-letters.ts";
import {
  DEFAULT_WEBHOOK_RETRY,
  QUEUED_WEBHOOK,
  type QueuedWebhookOptions,
  toQueuedWebhook,
} from "../work/queued-webhook.ts";
import type { Schedule, ScheduleCriteria, ScheduleOptions } from "../work/schedules.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import type { QueueItem, QueueOptions } from "../work/work-queue.ts";

/** Variables of the service's environment, unless an agent names its own type. */
export type AgentEnvironment = Readonly<Record<string, string | undefined>>;

export interface AgentOptions {
  /**
   * Lets a turn start while another one is at an await, as plain asynchronous code would. Default false: turns run one after another.
   */
  readonly interleave?: boolean;
  /** Sends the identity frame to new connections. Default true. */
  readonly sendIdentityOnConnect?: boolean;
}

/** Values that can stand in `this.sql`. */
export type SqlParameter = string | number | bigint | boolean | null | Uint8Array;

/**
 * What an agent returns from `onEvent`. Nothing: processed (200). `"queued"`: the work is in its queue (202). A response: the sender's answer;
 * one that is not 2xx means that the event was not taken, and undoes what was written since the last await.
 */
export type EventOutcome = void | undefined | "queued" | Response;

export class Agent<Env = AgentEnvironment, State = unknown> {
  declare static readonly options?: AgentOptions;
  /** Methods clients may call, beside those marked with `@callable()`. */
  declare static readonly callable?: readonly string[];

  /**
   * Judges an HTTP request before it reaches an instance, and before one is created for it. Throws, or returns a response, to refuse it.
   * (Calls of methods and WebSockets are judged by the caller's token.)
   */
  static admitRequest?(
    request: Request,
    context: AdmissionContext,
  ): AdmissionAnswer | Promise<AdmissionAnswer>;

  readonly #host: AgentHost;

  /** Called by the runtime. A subclass with a constructor passes its arguments on. */
  constructor(host: AgentHost, _env?: Env) {
    this.#host = host;
  }

  // ── Identity ──

  /** Name of this instance: the entity. */
  get name(): string {
    return this.#host.name;
  }

  /** Id of the account that this instance belongs to. */
  get account(): string {
    return this.#host.account;
  }

  /** Secrets and settings from the service's environment. */
  get env(): Env {
    return this.#host.env as Env;
  }

  // ── State ──

  /** State before the first `setState`. */
  declare initialState?: State;

  get state(): State {
    const state = this.#host.readState();
    return (state === undefined ? this.initialState : state) as State;
  }

  /** Replaces the state, stores it, and sends it to every connection. Throws when it is no JSON, too large, or refused. */
  setState(state: State): void {
    this.#host.writeState(state, "server");
  }

  // ── SQL ──

  /** Runs one statement on this instance's own SQLite database and returns its rows. */
  sql<Row = Record<string, string | number | bigint | null | Uint8Array>>(
    parts: TemplateStringsArray,
    ...values: readonly SqlParameter[]
  ): Row[] {
    return this.#host.query(parts, values) as Row[];
  }

  // ── Queue ──

  /** Puts work in the durable queue; the method gets the payload, and the item. Resolves with the item's id. */
  async queue<Payload>(
    callback: keyof this & string,
    payload?: Payload,
    options: QueueOptions = {},
  ): Promise<string> {
    this.#host.checkMethod(callback);
    return this.#host.workQueue.add(callback, payload, options);
  }

  async dequeue(id: string): Promise<boolean> {
    return this.#host.workQueue.remove(id);
  }

  async dequeueAll(): Promise<number> {
    return this.#host.workQueue.removeAll();
  }

  async dequeueAllByCallback(callback: string): Promise<number> {
    return this.#host.workQueue.removeByCallback(callback);
  }

  async getQueue<Payload = unknown>(id: string): Promise<QueueItem<Payload> | undefined> {
    return this.#host.workQueue.find(id) as QueueItem<Payload> | undefined;
  }

  /** Waiting items in order; with a key, those whose payload has this value under it. */
  async getQueues<Payload = unknown>(key?: string, value?: unknown): Promise<QueueItem<Payload>[]> {
    const items = this.#host.workQueue.all() as QueueItem<Payload>[];
    if (key === undefined) return items;
    return items.filter(
      (item) => (item.payload as Record<string, unknown> | null | undefined)?.[key] === value,
    );
  }

  /** Work that used up its attempts, oldest first. */
  async getDeadLetters<Payload = unknown>(limit = 100): Promise<DeadLetter<Payload>[]> {
    return this.#host.deadLetters.list(limit).items as DeadLetter<Payload>[];
  }

  /** Puts a dead letter back in the queue with all its attempts; false when there is none with this id. */
  async replayDeadLetter(id: string): Promise<boolean> {
    return this.#host.deadLetters.replay(id);
  }

  // ── Schedules ──

  /** Calls the method at a date, after a number of seconds, or by five-field cron text (UTC). */
  async schedule<Payload>(
    when: Date | string | number,
    callback: keyof this & string,
    payload?: Payload,
    options: ScheduleOptions = {},
  ): Promise<Schedule<Payload>> {
    this.#host.checkMethod(callback);
    const defaults = this.#host.isStarting() ? { idempotent: true } : {};
    return this.#host.schedules.add(when, callback, payload, {
      ...defaults,
      ...options,
    }) as Schedule<Payload>;
  }

  /** Calls the method every so many seconds. */
  async scheduleEvery<Payload>(
    seconds: number,
    callback: keyof this & string,
    payload?: Payload,
    options: ScheduleOptions = {},
  ): Promise<Schedule<Payload>> {
    this.#host.checkMethod(callback);
    return this.#host.schedules.addEvery(seconds, callback, payload, options) as Schedule<Payload>;
  }

  async cancelSchedule(id: string): Promise<boolean> {
    return this.#host.schedules.cancel(id);
  }

  async getScheduleById<Payload = unknown>(id: string): Promise<Schedule<Payload> | undefined> {
    return this.#host.schedules.find(id) as Schedule<Payload> | undefined;
  }

  async listSchedules<Payload = unknown>(criteria: ScheduleCriteria = {}): Promise<Schedule<Payload>[]> {
    return this.#host.schedules.list(criteria) as Schedule<Payload>[];
  }

  // ── Connections ──

  /** Sends a message to every connection except those named. */
  broadcast(message: string | Uint8Array, withoutIds: readonly string[] = []): void {
    this.#host.broadcast(message, withoutIds);
  }

  getConnections<ConnectionState = unknown>(tag?: string): Connection<ConnectionState>[] {
    return this.#host.connections(tag) as Connection<ConnectionState>[];
  }

  getConnection<ConnectionState = unknown>(id: string): Connection<ConnectionState> | undefined {
    return this.#host.connection(id) as Connection<ConnectionState> | undefined;
  }

  setConnectionReadonly(connection: Connection, isReadonly = true): void {
    this.#host.setReadonly(connection, isReadonly);
  }

  isConnectionReadonly(connection: Connection): boolean {
    return this.#host.isReadonly(connection);
  }

  // ── Out into the world, after everything so far is durable ──

  /** Sends a signed JSON webhook. Throws an error with the receiver's `status` unless it answers 2xx. */
  sendWebhook(
    url: string,
    payload: unknown,
    options: WebhookOptions = {},
  ): Promise<{ readonly id: string; readonly status: number }> {
    return this.#host.sendWebhook(url, payload, options);
  }

  /**
   * Puts a webhook in the durable queue: it is sent after this turn, tried again until the receiver answers 2xx, and ends in the dead
   * letters when all attempts failed. Resolves with the queue item's id.
   */
  async queueWebhook(url: string, payload: unknown, options: QueuedWebhookOptions = {}): Promise<string> {
    const retry = { ...DEFAULT_WEBHOOK_RETRY, ...options.retry };
    return this.#host.workQueue.add(
      QUEUED_WEBHOOK,
      toQueuedWebhook(url, payload, options, this.#host.now()),
      { retry },
    );
  }

  /** `fetch` that waits until everything this instance has written so far is durable. */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    return this.#host.fetch(input, init);
  }

  /** Removes this instance and everything it stored when the current turn ends; its connections are closed. */
  destroy(): Promise<void> {
    return this.#host.destroy();
  }

  // ── Hooks ──

  /** Runs once each time the instance comes into memory, before anything else. */
  onStart(): void | Promise<void> {}

  /** Answers HTTP requests to `/agents/{agent}/{name}`. Default: 404. */
  onRequest(_request: Request): Response | Promise<Response> {
    return Response.json({ error: "Not implemented" }, { status: 404 });
  }

  onConnect(_connection: Connection, _context: ConnectionContext): void | Promise<void> {}

  /** Gets messages that are not part of the protocol. */
  onMessage(_connection: Connection, _message: string | Uint8Array): void | Promise<void> {}

  onClose(
    _connection: Connection,
    _code: number,
    _reason: string,
    _wasClean: boolean,
  ): void | Promise<void> {}

  /** Learns of errors thrown by other hooks and methods; what it throws itself goes to the log. */
  onError(_error: unknown): void | Promise<void> {}

  /** Runs after every change of the state, inside the turn that made it; `source` is the connection that sent it, or "server". */
  onStateChanged(_state: State, _source: Connection | "server"): void | Promise<void> {}

  /** Throws to refuse a new state. */
  validateStateChange(_next: State, _source: Connection | "server"): void {}

  /** Extra tags of a new connection, by which `getConnections` finds it: at most nine, of at most 256 characters. */
  getConnectionTags(_connection: Connection, _context: ConnectionContext): string[] | Promise<string[]> {
    return [];
  }

  /** True makes a new connection read-only whatever its token allows. */
  shouldConnectionBeReadonly(_connection: Connection, _context: ConnectionContext): boolean {
    return false;
  }
}

Object.defineProperty(Agent.prototype, AGENT_BASE, { value: true });

/** Agents that handle verified webhooks themselves have this; the others get them through `onRequest`. */
export interface EventHandler {
  onEvent(event: WebhookEvent): EventOutcome | Promise<EventOutcome>;
}

// oxlint-disable-next-line typescript/no-explicit-any -- an agent of unknown environment and state
export type AnyAgent = Agent<any, any>;

export interface AgentClass<T extends AnyAgent = AnyAgent> {
  // oxlint-disable-next-line typescript/no-explicit-any -- subclasses may declare their own environment
  new (host: AgentHost, env?: any): T;
  readonly name: string;
  readonly prototype: T;
  readonly options?: AgentOptions;
  readonly callable?: readonly string[];
  admitRequest?(request: Request, context: AdmissionContext): AdmissionAnswer | Promise<AdmissionAnswer>;
}
