/**
 * The agent that needs no code: it keeps an entity's events in a table, tells its clients about the newest, and lets them ask for the rest.
 * Extend it and add `onEvent(event)` to do something with each event as well.
 *
 * Invariants:
 * 1. Keeping an event happens after `onEvent` has ended and in one transaction with the ledger's entry, so that an event whose handler
 *    failed, or whose answer was lost in a crash, is counted and listed once.
 * 2. The table holds at most `retention.events` events and none older than `retention.days`. What was already handled is remembered by
 *    the instance's ledger, which keeps ids longer than the table keeps events.
 * 3. Times in the table have one form (ISO 8601, UTC, milliseconds), whoever wrote the row: the order of texts is the order of times.
 */
import { SignalboxError } from "@signalbox/protocol";
import {
  type AdmissionAnswer,
  type AdmissionContext,
  Agent,
  type AgentEnvironment,
  type AgentHost,
  type Connection,
  type EventOutcome,
  INITIAL_SCHEMA,
  isRefusal,
  RECEIVE_EVENT,
  type SqlParameter,
  type WebhookEvent,
} from "../agents/index.ts";
import {
  countEvents,
  EVENT_SCHEMA,
  EVENT_TABLE,
  type EventRow,
  insertEvent,
  pruneEvents,
  replaceOldest,
  requireEventTable,
  requireOneFormOfTime,
  type SqlTag,
} from "./event-table.ts";
import { admitDirectDelivery, answerDirectDelivery } from "./direct-delivery.ts";

/** What clients see of the newest event. */
export interface LastEvent {
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly action: string | null;
  readonly title: string;
  readonly description: string | null;
  readonly url: string | null;
  readonly actor: string | null;
  readonly timestamp: string;
}

export interface WebhookAgentState {
  readonly lastEvent: LastEvent | null;
  /** Events ever handled, also those no longer kept. */
  readonly eventCount: number;
}

export interface Retention {
  /** How many events are kept at most. */
  readonly events: number;
  /** How old an event may become. */
  readonly days: number;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 1000;

export class WebhookAgent<
  Env = AgentEnvironment,
  State extends WebhookAgentState = WebhookAgentState,
> extends Agent<Env, State> {
  static override readonly callable: readonly string[] = ["getEvents", "getEventsByType"];
  static readonly [INITIAL_SCHEMA]: string = EVENT_SCHEMA;
  /** A subclass may keep more or less. */
  static readonly retention: Retention = { events: 100, days: 30 };

  override initialState = { lastEvent: null, eventCount: 0 } as WebhookAgentState as State;

  readonly #host: AgentHost;
  readonly #sql: SqlTag = <Row>(parts: readonly string[], ...values: SqlParameter[]) =>
    this.#host.query(parts, values) as Row[];
  #hasTable: boolean;
  /** So many more events are sure to fit before the table must be looked at. */
  #room = 0;
  /** True when the table is known to be full, so that each new event replaces the oldest. */
  #isFull = false;
  /** Until when the table's oldest event is sure to be young enough. */
  #roomEndsAt = 0;

  constructor(host: AgentHost, env?: Env) {
    super(host, env);
    this.#host = host;
    this.#hasTable = host.startedWith === EVENT_SCHEMA;
    if (host.isNew) {
      const { events } = (this.constructor as typeof WebhookAgent).retention;
      this.#room = events;
      this.#roomEndsAt = Number.POSITIVE_INFINITY;
    }
  }

  override sql<Row = Record<string, string | number | bigint | null | Uint8Array>>(
    parts: TemplateStringsArray,
    ...values: readonly SqlParameter[]
  ): Row[] {
    // A subclass may write to the table, too, and in its own way.
    this.#room = 0;
    this.#isFull = false;
    if (this.#host.mayInsert(parts, EVENT_TABLE)) {
      this.#requireTable();
      requireOneFormOfTime(this.#sql);
    }
    return super.sql<Row>(parts, ...values);
  }

  /**
   * Called for every new event, once. Return "queued" after putting the work in the queue: the sender is then answered 202. Throw
   * `RejectEvent`, or return a response that is not 2xx, to refuse the event: then it is not kept.
   */
  onEvent(_event: WebhookEvent): EventOutcome | Promise<EventOutcome> {}

  /** The newest events first. */
  getEvents(limit: number = DEFAULT_LIMIT): EventRow[] {
    this.#requireTable();
    return this.#sql<EventRow>`SELECT * FROM events ORDER BY timestamp DESC, rowid DESC LIMIT ${boundedLimit(limit)}`;
  }

  /** The newest events of one type first. */
  getEventsByType(type: string, limit: number = DEFAULT_LIMIT): EventRow[] {
    if (typeof type !== "string") {
      throw new SignalboxError("invalid_request", {
        message: "getEventsByType(type, limit): type must be text, the type of an event",
      });
    }
    this.#requireTable();
    return this.#sql<EventRow>`SELECT * FROM events WHERE type = ${type} ORDER BY timestamp DESC, rowid DESC
      LIMIT ${boundedLimit(limit)}`;
  }

  override onStart(): void | Promise<void> {
    this.#requireTable();
  }

  /** Method, signature and body of a delivery are judged before an instance is made. A subclass with an `onRequest` judges for itself. */
  static override admitRequest(
    request: Request,
    context: AdmissionContext,
  ): AdmissionAnswer | Promise<AdmissionAnswer> {
    if (this.prototype.onRequest === WebhookAgent.prototype.onRequest) admitDirectDelivery(request, context);
  }

  /** A delivery posted to the instance itself, signed by the generic scheme. */
  override onRequest(request: Request): Response | Promise<Response> {
    return answerDirectDelivery(request, this.env as AgentEnvironment, this.#host);
  }

  /** A client has nothing to say about what has happened. A subclass with a state of clients' own has to check it, all of it. */
  override validateStateChange(_next: State, source: Connection | "server"): void {
    if (source !== "server")
      throw new SignalboxError("agent_readonly", { message: "The state is written by events alone" });
  }

  /** What the runtime calls: the handler first, then the books, without an await of its own between them. */
  [RECEIVE_EVENT](event: WebhookEvent): EventOutcome | Promise<EventOutcome> {
    const outcome = this.onEvent(event);
    if (outcome instanceof Promise) return outcome.then((result) => this.#conclude(event, result));
    return this.#conclude(event, outcome);
  }

  #conclude(event: WebhookEvent, outcome: EventOutcome): EventOutcome {
    if (!isRefusal(outcome)) this.#keep(event);
    return outcome;
  }

  #keep(event: WebhookEvent): void {
    this.#requireTable();
    insertEvent(this.#sql, event);
    this.#makeRoom(Date.parse(event.timestamp));
    const { id, source, type, action, title, description, url, actor, timestamp } = event;
    const lastEvent: LastEvent = { id, source, type, action, title, description, url, actor, timestamp };
    // Whatever wrote something else there (an older release let clients do it), the next event makes the state whole again.
    const state: unknown = this.state;
    const { eventCount } = (state ?? {}) as Partial<WebhookAgentState>;
    const rest = isRecord(state) ? (state as State) : this.initialState;
    const isCount = typeof eventCount === "number" && Number.isSafeInteger(eventCount) && eventCount >= 0;
    this.setState({ ...rest, lastEvent, eventCount: isCount ? eventCount + 1 : countEvents(this.#sql) });
  }

  #makeRoom(now: number): void {
    const { events, days } = (this.constructor as typeof WebhookAgent).retention;
    if ((this.#room > 0 || this.#isFull) && now < this.#roomEndsAt) {
      this.#roomEndsAt = Math.min(this.#roomEndsAt, now + days * DAY_MS);
      if (this.#isFull) replaceOldest(this.#sql);
      else this.#room -= 1;
      return;
    }
    const room = pruneEvents(this.#sql, events, new Date(now - days * DAY_MS).toISOString());
    this.#room = room?.events ?? 0;
    this.#isFull = room?.isFull ?? false;
    this.#roomEndsAt = room === null ? 0 : Date.parse(room.oldest) + days * DAY_MS;
  }

  /** Here and not only in `onStart`: a subclass that has its own and forgets ours must not fail on its first event. */
  #requireTable(): void {
    if (this.#hasTable) return;
    requireEventTable(this.#sql);
    this.#hasTable = true;
  }
}

function isRecord(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Limits come from clients, so they may be anything. */
function boundedLimit(limit: unknown): number {
  const wanted = typeof limit === "number" && Number.isFinite(limit) ? Math.trunc(limit) : DEFAULT_LIMIT;
  return Math.min(Math.max(wanted, 0), MAX_LIMIT);
}
