/**
 * The agent that needs no code: it stores an entity's events in a table, sends the newest to its clients as state, and lets them query the rest.
 * A subclass adds `onEvent(event)` to handle each event as well.
 *
 * Invariants:
 * 1. An event is stored after `onEvent` has ended and in one transaction with the ledger's entry, so that an event whose handler failed, or
 *    whose answer was lost in a crash, is counted and listed once.
 * 2. Readers see at most `retention.events` events and none older than `retention.days`. The table is pruned after every few events and
 *    before a subclass's own SQL; the other reads leave out what is due to be pruned. The instance's ledger keeps ids longer than the
 *    table keeps events, so a pruned event is still recognised as a duplicate.
 * 3. All times in the table have one form (ISO 8601, UTC, milliseconds), so that they can be compared as text.
 * See webhooks/README.md.
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
import { isFields } from "../core/fields.ts";
import { admitDirectDelivery, answerDirectDelivery } from "./direct-delivery.ts";
import {
  countEvents,
  EVENT_SCHEMA,
  EVENT_TABLE,
  type EventRow,
  insertEvent,
  type Kept,
  pruneEvents,
  requireEventTable,
  requireTimeTrigger,
  selectEvents,
  selectEventsByType,
  type SqlTag,
} from "./event-table.ts";

/** The newest event as clients see it. */
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
  /** All events handled so far, also those no longer kept. */
  readonly eventCount: number;
}

export interface Retention {
  /** Maximum number of events. */
  readonly events: number;
  /** Maximum age of an event. */
  readonly days: number;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 1000;
/** Events between two prunings. Pruning 100 rows with every event would cost 8 µs, about 2 % of an event. */
const PRUNE_EVERY = 16;

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
  /** Events stored since the table was pruned. */
  #unpruned: number;

  constructor(host: AgentHost, env?: Env) {
    super(host, env);
    this.#host = host;
    this.#hasTable = host.startedWith === EVENT_SCHEMA;
    // The table of an instance that wakes may have rows that an earlier process did not prune.
    this.#unpruned = host.isNew ? 0 : Number.POSITIVE_INFINITY;
  }

  override sql<Row = Record<string, string | number | bigint | null | Uint8Array>>(
    parts: TemplateStringsArray,
    ...values: readonly SqlParameter[]
  ): Row[] {
    if (this.#unpruned > 0) this.#host.asOwner(() => this.#prune());
    if (this.#host.mayInsert(parts, EVENT_TABLE)) {
      this.#requireTable();
      requireTimeTrigger(this.#sql);
    }
    return super.sql<Row>(parts, ...values);
  }

  /**
   * Called once for every new event. Return "queued" after putting the work in the queue: the sender is then answered 202. Throw
   * `RejectEvent`, or return a response that is not 2xx, to refuse the event: it is then not stored.
   */
  onEvent(_event: WebhookEvent): EventOutcome | Promise<EventOutcome> {}

  /** The newest events first. */
  getEvents(limit: number = DEFAULT_LIMIT): EventRow[] {
    this.#requireTable();
    return selectEvents(this.#sql, this.#kept(), boundedLimit(limit));
  }

  /** The newest events of one type first. */
  getEventsByType(type: string, limit: number = DEFAULT_LIMIT): EventRow[] {
    if (typeof type !== "string") {
      throw new SignalboxError("invalid_request", {
        message: "getEventsByType(type, limit): type must be text, the type of an event",
      });
    }
    this.#requireTable();
    return selectEventsByType(this.#sql, this.#kept(), type, boundedLimit(limit));
  }

  override onStart(): void | Promise<void> {
    this.#requireTable();
  }

  /** Checks method, signature and body of a delivery before an instance is created. A subclass with its own `onRequest` checks them itself. */
  static override admitRequest(
    request: Request,
    context: AdmissionContext,
  ): AdmissionAnswer | Promise<AdmissionAnswer> {
    if (this.prototype.onRequest === WebhookAgent.prototype.onRequest) admitDirectDelivery(request, context);
  }

  /** Handles a delivery that is posted to the instance itself, signed by the generic scheme. */
  override onRequest(request: Request): Response | Promise<Response> {
    return answerDirectDelivery(request, this.env as AgentEnvironment, this.#host);
  }

  /** Clients cannot change the state. A subclass that lets them must check the whole state. */
  override validateStateChange(_next: State, source: Connection | "server"): void {
    if (source !== "server")
      throw new SignalboxError("agent_readonly", { message: "The state is written by events alone" });
  }

  /** Called by the runtime. The event is stored right after its handler, without an await in between. */
  [RECEIVE_EVENT](event: WebhookEvent): EventOutcome | Promise<EventOutcome> {
    const outcome = this.onEvent(event);
    if (outcome instanceof Promise) return outcome.then((result) => this.#conclude(event, result));
    return this.#conclude(event, outcome);
  }

  #conclude(event: WebhookEvent, outcome: EventOutcome): EventOutcome {
    if (!isRefusal(outcome)) this.#store(event);
    return outcome;
  }

  #store(event: WebhookEvent): void {
    this.#requireTable();
    insertEvent(this.#sql, event);
    this.#unpruned += 1;
    // Pruning counts the table, so a larger table is pruned less often.
    if (this.#unpruned >= Math.max(PRUNE_EVERY, this.#retention.events / PRUNE_EVERY)) this.#prune();
    const { id, source, type, action, title, description, url, actor, timestamp } = event;
    const lastEvent: LastEvent = { id, source, type, action, title, description, url, actor, timestamp };
    // A subclass may have set a state of another form, without the count.
    const state: unknown = this.state;
    const { eventCount } = (state ?? {}) as Partial<WebhookAgentState>;
    const rest = isFields(state) ? (state as State) : this.initialState;
    const isCount = typeof eventCount === "number" && Number.isSafeInteger(eventCount) && eventCount >= 0;
    this.setState({ ...rest, lastEvent, eventCount: isCount ? eventCount + 1 : countEvents(this.#sql) });
  }

  get #retention(): Retention {
    return (this.constructor as typeof WebhookAgent).retention;
  }

  #prune(): void {
    this.#requireTable();
    pruneEvents(this.#sql, this.#kept());
    this.#unpruned = 0;
  }

  #kept(): Kept {
    const { events, days } = this.#retention;
    return { events, earliest: new Date(this.#host.now() - days * DAY_MS).toISOString() };
  }

  /** Not only called by `onStart`: a subclass may override it without calling `super`. */
  #requireTable(): void {
    if (this.#hasTable) return;
    this.#host.asOwner(() => requireEventTable(this.#sql));
    this.#hasTable = true;
  }
}

/** Clients send limits, so a limit may be any value. */
function boundedLimit(limit: unknown): number {
  const wanted = typeof limit === "number" && Number.isFinite(limit) ? Math.trunc(limit) : DEFAULT_LIMIT;
  return Math.min(Math.max(wanted, 0), MAX_LIMIT);
}
