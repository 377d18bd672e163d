/**
 * The class that users extend. It has no behaviour of its own: every member delegates to the instance (`AgentHost`), and the hooks are empty
 * or implement the default.
 */
import { retry } from "../../core/retry.ts";
import type { AdmissionAnswer, AdmissionContext } from "./admission.ts";
import type { AgentContext } from "./agent-context.ts";
import type { AgentEnvironment, AgentHost, WebhookOptions } from "./agent-host.ts";
import { AGENT_BASE, type CallableOptions, findCallables } from "./callable.ts";
import type { AgentOptions } from "./agent-options.ts";
import type { Connection, ConnectionContext, ConnectionMessage, RequestDetails } from "./connection.ts";
import type { DeadLetter } from "../work/dead-letters.ts";
import {
  QUEUED_WEBHOOK,
  type QueuedWebhookOptions,
  toQueuedWebhook,
  webhookRetry,
} from "../work/queued-webhook.ts";
import { type RetryOptions, toRetryPolicy } from "../work/retry-options.ts";
import type { Schedule } from "../work/schedule-row.ts";
import type { ScheduleCriteria, ScheduleOptions } from "../work/schedules.ts";
import type { QueueItem, QueueOptions } from "../work/work-queue.ts";

/** Values that `this.sql` accepts. */
export type SqlParameter =
  | string
  | number
  | bigint
  | boolean
  | null
  | undefined
  | ArrayBuffer
  | ArrayBufferView;

export class Agent<Env = AgentEnvironment, State = unknown> {
  declare static readonly options?: AgentOptions;
  /** Methods that clients may call, in addition to those marked with `@callable()`. */
  declare static readonly callable?: readonly string[];

  /**
   * Judges an HTTP request before it reaches or creates an instance. Throws, or returns a response, to refuse the request.
   * (Method calls and WebSockets are authorized by the caller's token.)
   */
  static admitRequest?(
    request: Request,
    context: AdmissionContext,
  ): AdmissionAnswer | Promise<AdmissionAnswer>;

  readonly #host: AgentHost;

  /** Called by the runtime. A subclass with a constructor passes its arguments on. */
  constructor(ctx: AgentContext, _env?: Env) {
    this.#host = ctx as AgentHost;
  }

  // ── Identity ──

  /** Name of this instance, that is, of the entity. */
  get name(): string {
    return this.#host.name;
  }

  /** Id of the account that owns this instance. */
  get account(): string {
    return this.#host.account;
  }

  /** The variables of the service's environment. */
  get env(): Env {
    return this.#host.env as Env;
  }

  /** Id, SQL with text that is known at run time only, and `waitUntil`, as objects have them. */
  get ctx(): AgentContext {
    return this.#host;
  }

  // ── State ──

  /** The state before the first `setState`. */
  declare initialState?: State;

  get state(): State {
    const state = this.#host.readState();
    return (state === undefined ? this.initialState : state) as State;
  }

  /** Replaces and stores the state and sends it to every connection. Throws when it is not JSON, too large, or refused. */
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

  /** Adds work to the durable queue; the method receives the payload and the item. Resolves with the item's id. */
  async queue<Payload>(
    callback: keyof this & string,
    payload?: Payload,
    options: QueueOptions = {},
  ): Promise<string> {
    this.#host.checkMethod(callback);
    return this.#host.workQueue.add(callback, payload, this.#withRetry(options));
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

  /** The waiting items in order; with `key`, only those whose payload has this value under the key. */
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

  /** Returns a dead letter to the queue with all its attempts; false when the id is unknown. */
  async replayDeadLetter(id: string): Promise<boolean> {
    return this.#host.deadLetters.replay(id);
  }

  // ── Schedules ──

  /** Calls the method at a date, after a number of seconds, or by a cron expression of five or six fields (UTC). */
  async schedule<Payload>(
    when: Date | string | number,
    callback: keyof this & string,
    payload?: Payload,
    options: ScheduleOptions = {},
  ): Promise<Schedule<Payload>> {
    this.#host.checkMethod(callback);
    const defaults = this.#host.isStarting() ? { idempotent: true } : {};
    return this.#host.schedules.add(
      when,
      callback,
      payload,
      this.#withRetry({ ...defaults, ...options }),
    ) as Schedule<Payload>;
  }

  /** Calls the method every `seconds` seconds. */
  async scheduleEvery<Payload>(
    seconds: number,
    callback: keyof this & string,
    payload?: Payload,
    options: ScheduleOptions = {},
  ): Promise<Schedule<Payload>> {
    this.#host.checkMethod(callback);
    return this.#host.schedules.addEvery(
      seconds,
      callback,
      payload,
      this.#withRetry(options),
    ) as Schedule<Payload>;
  }

  async cancelSchedule(id: string): Promise<boolean> {
    return this.#host.schedules.cancel(id);
  }

  async getScheduleById<Payload = unknown>(id: string): Promise<Schedule<Payload> | undefined> {
    return this.getSchedule<Payload>(id);
  }

  async listSchedules<Payload = unknown>(criteria: ScheduleCriteria = {}): Promise<Schedule<Payload>[]> {
    return this.getSchedules<Payload>(criteria);
  }

  /** `getScheduleById` without a promise. */
  getSchedule<Payload = unknown>(id: string): Schedule<Payload> | undefined {
    return this.#host.schedules.find(id) as Schedule<Payload> | undefined;
  }

  /** `listSchedules` without a promise. */
  getSchedules<Payload = unknown>(criteria: ScheduleCriteria = {}): Schedule<Payload>[] {
    return this.#host.schedules.list(criteria) as Schedule<Payload>[];
  }

  // ── Retries ──

  /**
   * Calls the function, which receives the number of the attempt, until it succeeds: by default three attempts, with random delays that
   * grow from 100 ms to 3 s. Rejects with the last error. The delays are waits of the turn.
   */
  async retry<T>(
    attempt: (number: number) => Promise<T> | T,
    options: RetryOptions & {
      /** Returns false for an error that ends the attempts. */
      readonly shouldRetry?: (error: unknown, nextAttempt: number) => boolean;
    } = {},
  ): Promise<T> {
    const { shouldRetry, ...given } = options;
    const policy = toRetryPolicy({ ...this.#retryDefaults, ...given });
    const isRetryable = shouldRetry === undefined ? {} : { isRetryable: shouldRetry };
    return retry(async (number) => attempt(number), { ...policy, ...isRetryable });
  }

  get #retryDefaults(): RetryOptions | undefined {
    return (this.constructor as AgentClass).options?.retry;
  }

  #withRetry<Options extends { readonly retry?: RetryOptions }>(options: Options): Options {
    const defaults = this.#retryDefaults;
    return defaults === undefined ? options : { ...options, retry: { ...defaults, ...options.retry } };
  }

  // ── Connections ──

  /** Sends a message to every connection except those named. */
  broadcast(message: ConnectionMessage, withoutIds: readonly string[] = []): void {
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

  /** False for a connection that `shouldSendProtocolMessages` refused. */
  isConnectionProtocolEnabled(connection: Connection): boolean {
    return this.#host.hasProtocol(connection);
  }

  /** The methods that clients may call. */
  getCallableMethods(): Map<string, CallableOptions> {
    const found = findCallables(this.constructor);
    return new Map([...found].map(([name, { name: _name, ...options }]) => [name, options]));
  }

  // ── Requests to other services, sent when everything written so far is durable ──

  /** Sends a signed JSON webhook. Throws an error with the receiver's `status` unless the status is 2xx. */
  sendWebhook(
    url: string,
    payload: unknown,
    options: WebhookOptions = {},
  ): Promise<{ readonly id: string; readonly status: number }> {
    return this.#host.sendWebhook(url, payload, options);
  }

  /**
   * Adds a webhook to the durable queue: it is sent after this turn and retried until the receiver answers 2xx, eight times in about a day,
   * and not before the receiver's `Retry-After`. When all attempts have failed, or one has an answer that will not change (4xx other than 408,
   * 409, 425 and 429), it becomes a dead letter. Resolves with the queue item's id.
   */
  async queueWebhook(url: string, payload: unknown, options: QueuedWebhookOptions = {}): Promise<string> {
    const retry = webhookRetry(options.retry);
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

  // ── Work that goes on after its turn ──

  /** Keeps this instance in memory until the returned function is called. */
  async keepAlive(): Promise<() => void> {
    return this.#host.hold();
  }

  /** Keeps this instance in memory while the function runs. */
  async keepAliveWhile<T>(work: () => Promise<T> | T): Promise<T> {
    const release = this.#host.hold();
    try {
      return await work();
    } finally {
      release();
    }
  }

  /** Keeps this instance in memory until the promise has settled. A rejection is logged and passed to `onError`. */
  waitUntil(work: Promise<unknown>): void {
    this.#host.waitUntil(work);
  }

  /** Removes this instance and everything it stored when the current turn ends, and closes its connections. */
  destroy(): Promise<void> {
    return this.#host.destroy();
  }

  // ── Hooks ──

  /** Runs once each time the instance comes into memory, before anything else. */
  onStart(): void | Promise<void> {}

  /** Answers HTTP requests to `/agents/{agent}/{name}`. Default: 404. */
  onRequest(_request: Request, _details?: RequestDetails): Response | Promise<Response> {
    return Response.json({ error: "Not implemented" }, { status: 404 });
  }

  onConnect(_connection: Connection, _context: ConnectionContext): void | Promise<void> {}

  /** Receives messages that are not part of the protocol: text, or an `ArrayBuffer`. */
  onMessage(_connection: Connection, _message: ConnectionMessage): void | Promise<void> {}

  onClose(
    _connection: Connection,
    _code: number,
    _reason: string,
    _wasClean: boolean,
  ): void | Promise<void> {}

  /**
   * Receives errors that other hooks and methods threw; an error of its own is logged. A hook with two parameters receives the connection
   * first if the failed turn belongs to one.
   */
  onError(connection: Connection, error: unknown): void | Promise<void>;
  onError(error: unknown): void | Promise<void>;
  onError(_connectionOrError: unknown, _error?: unknown): void | Promise<void> {}

  /** Runs after every change of the state, in the turn that made it; `source` is the connection that sent the state, or "server". */
  onStateChanged(_state: State, _source: Connection | "server"): void | Promise<void> {}

  /** The former name of `onStateChanged`. A class that defines both cannot be loaded. */
  onStateUpdate(_state: State, _source: Connection | "server"): void | Promise<void> {}

  /** Throws to refuse a new state. */
  validateStateChange(_next: State, _source: Connection | "server"): void {}

  /** Additional tags of a new connection, for `getConnections`: at most nine, of at most 256 characters. */
  getConnectionTags(_connection: Connection, _context: ConnectionContext): string[] | Promise<string[]> {
    return [];
  }

  /** Returns true to make a new connection read-only whatever its token allows. */
  shouldConnectionBeReadonly(_connection: Connection, _context: ConnectionContext): boolean {
    return false;
  }

  /** Returns false for a connection that wants neither identity nor state, such as a device that reads binary messages only. */
  shouldSendProtocolMessages(_connection: Connection, _context: ConnectionContext): boolean {
    return true;
  }
}

Object.defineProperty(Agent.prototype, AGENT_BASE, { value: true });

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
