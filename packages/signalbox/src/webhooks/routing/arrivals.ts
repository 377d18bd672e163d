/**
 * Stores verified deliveries of sources with routes: what arrived, and an event for each route, in one transaction.
 *
 * Invariants:
 * 1. `store` resolves when the delivery and the events of all routes are durable.
 * 2. A delivery whose id its sender has used before changes nothing, as long as the first one is kept; but routes that have no event of the first one
 *    get one: it may have been stored for a listener only, and may have failed at its agent.
 * 3. The bytes of all stored deliveries are limited. Beyond the limit senders get 503.
 */
import { hash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { LRUCache } from "lru-cache";
import type { WebhookEvent } from "../../agents/index.ts";
import type { Clock } from "../../core/clock.ts";
import { overloaded } from "../../core/overload.ts";
import type { Sealing } from "../../core/sealing.ts";
import { ulid } from "../../core/ulid.ts";
import { WriteTogether } from "../../core/write-together.ts";
import type { Entity } from "../entity-names.ts";
import { fieldAt } from "../sources/index.ts";
import type { Source } from "../source.ts";
import { sealedContext } from "./attempt-url.ts";
import type { StoredDelivery } from "./event-record.ts";
import type { EventTable, NewEvent } from "./event-table.ts";
import { createParts, type DeliveryParts, findMismatch } from "./parts.ts";
import { type Route, routeKey } from "./route.ts";

/** Bodies that were stored last, which the first attempts send: reading each of them again would be most of the work of the database. */
const RECENT_BYTES = 16 * 1024 * 1024;

/** A delivery, or an item of one, whose event was read. */
export interface Arrival {
  readonly source: Source;
  readonly event: WebhookEvent;
  readonly entity: Entity | null;
  readonly headers: IncomingHttpHeaders;
  readonly target: string;
  readonly now: number;
  /** Id of the record in the list of deliveries. */
  readonly id: string;
  /** Of the delivery whose list it was an item of. */
  readonly batch: string | null;
}

export interface ArrivalsParts {
  readonly table: EventTable;
  /** By which events are due: that of PostgreSQL in a cluster. */
  readonly clock: Clock;
  readonly sealing: Sealing;
  readonly maxStoredBytes: number;
  /** Events of these routes were stored. */
  onStored(keys: ReadonlySet<string>): void;
}

interface ArrivalRows {
  readonly delivery: StoredDelivery;
  readonly events: readonly NewEvent[];
}

export class Arrivals {
  readonly #parts: ArrivalsParts;
  readonly #recent = new LRUCache<string, StoredDelivery>({
    maxSize: RECENT_BYTES,
    maxEntrySize: RECENT_BYTES / 16,
    sizeCalculation: ({ body }) => body.length + 512,
  });
  readonly #storing = new WriteTogether((all: readonly (readonly ArrivalRows[])[]) =>
    this.#write(all.flat()),
  );
  #storedBytes = 0;

  constructor(parts: ArrivalsParts) {
    this.#parts = parts;
  }

  recent(id: string): StoredDelivery | undefined {
    return this.#recent.get(id);
  }

  /** Reads how much is stored: at the start, and after rows were deleted or other nodes have stored some. */
  async measure(): Promise<void> {
    this.#storedBytes = await this.#parts.table.storedBytes();
  }

  /** All or none. Resolves to true if the sender's ids of all of them were known, and no route needed one of them. */
  async store(arrivals: readonly Arrival[], routes: readonly Route[]): Promise<boolean> {
    this.#takeBytes(arrivals.reduce((sum, { event }) => sum + event.rawBody.length, 0));
    const rows = arrivals.map((arrival) => this.#toRows(arrival, routes));
    const known = await this.#storing.add(rows);
    return rows.every(({ delivery }) => known.has(delivery.id));
  }

  /** Stores deliveries that agents received at once, without events. */
  async copy(deliveries: readonly StoredDelivery[]): Promise<void> {
    if (deliveries.length === 0) return;
    this.#takeBytes(deliveries.reduce((sum, { body }) => sum + body.length, 0));
    await this.#storing.add(deliveries.map((delivery) => ({ delivery, events: [] })));
  }

  #takeBytes(bytes: number): void {
    if (this.#storedBytes + bytes > this.#parts.maxStoredBytes) throw overloaded();
    this.#storedBytes += bytes;
  }

  /** Returns the ids of the deliveries that were known and have changed nothing. */
  async #write(rows: readonly ArrivalRows[]): Promise<ReadonlySet<string>> {
    const { known, late } = await this.#parts.table.insert(rows).catch((error: unknown) => {
      for (const { delivery } of rows) this.#storedBytes -= delivery.body.length;
      throw error;
    });
    const keys = new Set<string>();
    const unchanged = new Set(known);
    for (const { delivery, events } of rows) {
      const isKnown = known.has(delivery.id);
      if (isKnown) this.#storedBytes -= delivery.body.length;
      const isLate = isKnown && events.some(({ id }) => late.some((event) => event.id === id));
      if (isLate) unchanged.delete(delivery.id);
      const waiting = isKnown ? [] : events.filter(({ dueAt }) => dueAt !== null);
      if (waiting.length > 0) this.#recent.set(delivery.id, delivery);
      for (const event of waiting) keys.add(routeKey(event));
    }
    for (const event of late) if (event.dueAt !== null) keys.add(routeKey(event));
    if (keys.size > 0) this.#parts.onStored(keys);
    return unchanged;
  }

  #toRows(arrival: Arrival, routes: readonly Route[]): ArrivalRows {
    const { source, event, entity, headers, target, now, id, batch } = arrival;
    const openHeaders = hiddenOf(headers, event.headers);
    const delivery: StoredDelivery = {
      id,
      accountId: source.accountId,
      source: source.name,
      deliveryId: event.id,
      batch,
      type: event.type,
      title: event.title,
      entity: entity?.text ?? null,
      isEntityExact: entity?.isExact ?? false,
      target,
      receivedAt: now,
      contentType: headers["content-type"] ?? null,
      headers: event.headers,
      sealedHeaders:
        Object.keys(openHeaders).length === 0
          ? null
          : this.#parts.sealing.seal(JSON.stringify(openHeaders), sealedContext({ id })),
      openHeaders,
      // A view of a larger buffer would keep all of it in memory.
      body: Buffer.from(event.rawBody),
    };
    const parts = createParts(event.payload, headers, target);
    const dueAt = this.#parts.clock.now();
    return { delivery, events: routes.map((route) => toEvent(route, delivery, parts, event.payload, dueAt)) };
  }
}

/** The headers with signatures and credentials. */
function hiddenOf(
  headers: IncomingHttpHeaders,
  visible: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const hidden: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !Object.hasOwn(visible, name))
      hidden[name] = typeof value === "string" ? value : value.join(", ");
  }
  return hidden;
}

export function toEvent(
  route: Route,
  delivery: StoredDelivery,
  parts: DeliveryParts,
  payload: unknown,
  dueAt: number,
): NewEvent {
  const mismatch = findMismatch(route.filters, parts);
  const { accountId, source, name, dedupe } = route;
  const { receivedAt } = delivery;
  return {
    id: ulid(receivedAt),
    accountId,
    source,
    name,
    delivery: delivery.id,
    type: delivery.type,
    entity: delivery.entity,
    receivedAt,
    state: mismatch === null ? "waiting" : "ignored",
    reason: mismatch,
    dueAt: mismatch === null ? dueAt + route.delayMs : null,
    dedupeKey: dedupe === null || mismatch !== null ? null : dedupeKey(payload, dedupe.fields),
    dedupeSince: receivedAt - (dedupe?.windowMs ?? 0),
  };
}

function dedupeKey(payload: unknown, fields: readonly string[] | null): string {
  const compared = fields === null ? payload : fields.map((field) => fieldAt(payload, field) ?? null);
  return hash("sha256", JSON.stringify(compared));
}

/** Also used to try a filter on a stored delivery. */
export function partsOf(delivery: StoredDelivery, payload: unknown): DeliveryParts {
  return createParts(payload, { ...delivery.headers }, delivery.target);
}
