/**
 * The webhook deliveries that the instance has seen, so that a duplicate has no effect. Entries outlive what the agent itself stores of an
 * event, because a provider may redeliver days later.
 *
 * Entries are one B-tree, by period and id. A delivery is looked up in the current and in the previous period, so that each is remembered for
 * one to two periods. Older entries are deleted a few at a time.
 * See agents/README.md.
 */
import { createHash } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import { sql } from "../../core/sql.ts";
import { currentTurn, type Transactions, type TurnOrigin } from "../../engines/turn-runtime/index.ts";
import type { DeliveryOutcome, SignedHeaders } from "../../contracts/agents-door.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import type { InstanceRef } from "./instance-ref.ts";
import type { AnyAgent } from "../api/agent.ts";
import type { AgentOrigin } from "../api/current-agent.ts";
import {
  type EventHandler,
  type EventOutcome,
  type EventReceiver,
  RECEIVE_EVENT,
} from "../api/event-handler.ts";
import { explainRejection } from "../api/reject-event.ts";

/** Longer than any provider redelivers by itself (Stripe: 3 days). */
const PERIOD_MS = 30 * 24 * 60 * 60 * 1000;
/** Old entries are deleted with one new entry in 32, at random: an instance that is woken for each event has no counter in memory. */
const PRUNE_INTERVAL = 32;
/** Entries deleted at once: more than are added in between, and few enough not to delay the turn. */
const PRUNE_COUNT = 8 * PRUNE_INTERVAL;
const MAX_ID_LENGTH = 256;

export class DeliveryLedger {
  readonly #database: InstanceDatabase;
  readonly #transactions: Transactions;
  readonly #clock: Clock;
  /** No valid entry belongs to an earlier period. */
  #oldestPeriod = Number.POSITIVE_INFINITY;
  /** The current period, or the following one if the clock was set back; null until the table has been read. */
  #newestPeriod: number | null;

  constructor(database: InstanceDatabase, transactions: Transactions, clock: Clock) {
    this.#database = database;
    this.#transactions = transactions;
    this.#clock = clock;
    // A new instance has no entries to read.
    this.#newestPeriod = database.isNew ? 0 : null;
  }

  has(key: string): boolean {
    const id = toId(key);
    const period = this.#period();
    return this.#hasEarlier(id, period) || (this.#oldestPeriod <= period && this.#hasEntry(id, period));
  }

  /** Adds the delivery; returns false if it is there already. */
  addIfNew(key: string): boolean {
    const id = toId(key);
    const period = this.#period();
    if (this.#hasEarlier(id, period)) return false;
    this.#transactions.open();
    const { changes } = this.#database.run(
      sql`INSERT INTO _signalbox_delivery (period, id) VALUES (${period}, ${id}) ON CONFLICT DO NOTHING`,
    );
    this.#oldestPeriod = Math.min(this.#oldestPeriod, period);
    if (this.#oldestPeriod < period - 1 && Math.random() * PRUNE_INTERVAL < 1) this.#prune(period - 1);
    return changes === 1;
  }

  /** Removes an entry that the open transaction added. */
  remove(key: string): void {
    // The period may have changed since.
    const period = this.#period();
    this.#transactions.open();
    this.#database.run(
      sql`DELETE FROM _signalbox_delivery WHERE period IN (${period - 1}, ${period}) AND id = ${toId(key)}`,
    );
  }

  /** Never decreases: a clock that is set back must not hide entries. */
  #period(): number {
    const current = Math.floor(this.#clock.now() / PERIOD_MS);
    this.#newestPeriod = Math.max(this.#newestPeriod ?? this.#readPeriods(current + 1), current);
    return this.#newestPeriod;
  }

  /** Reads the oldest period, and returns the newest one up to `latest`: a clock that was once years ahead must not fix the period there. */
  #readPeriods(latest: number): number {
    this.#oldestPeriod = this.#readOldest();
    const newest = this.#database.get<{ period: number }>(
      sql`SELECT period FROM _signalbox_delivery WHERE period <= ${latest} ORDER BY period DESC LIMIT 1`,
    );
    return newest?.period ?? 0;
  }

  #hasEarlier(id: string, period: number): boolean {
    return this.#oldestPeriod < period && this.#hasEntry(id, period - 1);
  }

  #hasEntry(id: string, period: number): boolean {
    return (
      this.#database.get(
        sql`SELECT 1 AS found FROM _signalbox_delivery WHERE period = ${period} AND id = ${id}`,
      ) !== undefined
    );
  }

  #readOldest(): number {
    const first = this.#database.get<{ period: number }>(
      sql`SELECT period FROM _signalbox_delivery ORDER BY period LIMIT 1`,
    );
    return first?.period ?? Number.POSITIVE_INFINITY;
  }

  #prune(before: number): void {
    this.#database.run(
      sql`DELETE FROM _signalbox_delivery WHERE (period, id) IN
          (SELECT period, id FROM _signalbox_delivery WHERE period < ${before} ORDER BY period, id LIMIT ${PRUNE_COUNT})`,
    );
    // After a rollback the deleted entries exist again, but they are too old to be looked up.
    this.#oldestPeriod = this.#readOldest();
  }
}

function toId(key: string): string {
  return key.length <= MAX_ID_LENGTH ? key : createHash("sha256").update(key).digest("hex");
}

/*
 * Handles a verified webhook in a turn of its instance: the delivery ledger decides whether the handler runs, and the ledger entry is stored
 * with what the handler wrote.
 *
 * Invariant: an event that the agent refuses (`RejectEvent`, or a response that is not 2xx) leaves no ledger entry, and what its handler has
 * written since its last await is rolled back.
 */

export interface EventTarget {
  readonly ref: InstanceRef;
  readonly agent: AnyAgent;
  readonly ledger: DeliveryLedger;
  readonly transactions: Pick<Transactions, "undo">;
}

const DUPLICATE: DeliveryOutcome = { kind: "duplicate" };
const PROCESSED: DeliveryOutcome = { kind: "processed" };
const QUEUED: DeliveryOutcome = { kind: "queued" };
const AsyncFunction = (async () => undefined).constructor;

export function handleEvent(
  target: EventTarget,
  event: WebhookEvent,
  signed?: SignedHeaders,
): DeliveryOutcome | Promise<DeliveryOutcome> {
  const { agent, ledger } = target;
  const key = deliveryKey(event);
  if (!isEventHandler(agent))
    return ledger.has(key) ? DUPLICATE : handleAsRequest(target, event, key, signed);
  // A handler that does not wait is one transaction with its entry. The entry can then be inserted first, which saves the look-up.
  const isEntryLast = agent.onEvent instanceof AsyncFunction;
  if (isEntryLast ? ledger.has(key) : !ledger.addIfNew(key)) return DUPLICATE;
  const handled = callHandler(agent, event);
  if (!(handled instanceof Promise)) return conclude(target, handled);
  // A plain function returned a promise.
  if (!isEntryLast) ledger.remove(key);
  return handled.then((result) => {
    if (!isRefusal(result)) ledger.addIfNew(key);
    return conclude(target, result);
  }, refuse);
}

function isEventHandler(agent: AnyAgent): agent is AnyAgent & EventHandler {
  return typeof (agent as Partial<EventHandler>).onEvent === "function";
}

function receiveEvent(agent: EventHandler, event: WebhookEvent): EventOutcome | Promise<EventOutcome> {
  const receiver = agent as Partial<EventReceiver>;
  return receiver[RECEIVE_EVENT] === undefined ? agent.onEvent(event) : receiver[RECEIVE_EVENT](event);
}

/** True for a response that tells the sender that the event was refused. */
export function isRefusal(outcome: EventOutcome): boolean {
  return outcome instanceof Response && !outcome.ok;
}

/** Deliveries with the same key are one event. */
export function deliveryKey(event: WebhookEvent): string {
  return `${event.source}:${event.id}`;
}

function callHandler(
  agent: AnyAgent & EventHandler,
  event: WebhookEvent,
): EventOutcome | Promise<EventOutcome> {
  try {
    return receiveEvent(agent, event);
  } catch (error) {
    return refuse(error);
  }
}

function refuse(error: unknown): never {
  throw explainRejection(error);
}

function conclude(target: EventTarget, result: EventOutcome): DeliveryOutcome | Promise<DeliveryOutcome> {
  if (!(result instanceof Response)) return result === "queued" ? QUEUED : PROCESSED;
  if (isRefusal(result)) target.transactions.undo();
  return toAnswer(result);
}

/**
 * An agent without `onEvent` receives the delivery as an HTTP request. It may verify the signature itself, so it receives the headers that
 * events leave out. Only a successful response marks the delivery as seen.
 */
async function handleAsRequest(
  { agent, ledger, ref }: EventTarget,
  event: WebhookEvent,
  key: string,
  signed: SignedHeaders | undefined,
): Promise<DeliveryOutcome> {
  const request = new Request(`http://localhost/agents/${ref.agent}/${encodeURIComponent(ref.name)}`, {
    method: "POST",
    headers: {
      ...hiddenHeaders(event, signed),
      ...event.headers,
      "x-event-type": event.type,
      "x-event-id": event.id,
    },
    body: event.rawBody as Uint8Array<ArrayBuffer>,
  });
  const turn = currentTurn();
  // For `getCurrentAgent`. A delivery may always write.
  if (turn !== undefined) turn.origin = { request } satisfies AgentOrigin as TurnOrigin;
  try {
    const response = await agent.onRequest(request, {});
    const outcome = await toAnswer(response);
    if (response.ok) ledger.addIfNew(key);
    return outcome;
  } catch (error) {
    return refuse(error);
  }
}

/** Cookies are no part of a delivery. */
const NO_PART_OF_DELIVERIES: ReadonlySet<string> = new Set(["cookie", "proxy-authorization"]);

function hiddenHeaders(event: WebhookEvent, signed: SignedHeaders | undefined): Record<string, string> {
  const hidden: Record<string, string> = {};
  for (const [name, value] of Object.entries(signed?.headers ?? {})) {
    if (value === undefined || name in event.headers || NO_PART_OF_DELIVERIES.has(name)) continue;
    hidden[name] = typeof value === "string" ? value : value.join(", ");
  }
  return hidden;
}

async function toAnswer(response: Response): Promise<DeliveryOutcome & { kind: "answered" }> {
  return {
    kind: "answered",
    status: response.status,
    contentType: response.headers.get("content-type") ?? "text/plain; charset=utf-8",
    body: await response.text(),
  };
}
