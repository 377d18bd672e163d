/** The deliveries that a request contains: one, or the items of its list if the source divides lists. */
import type { WebhookEvent } from "../../agents/index.ts";
import { ulid } from "../../core/ulid.ts";
import { findEntity, readEvent } from "../read-event.ts";
import type { Source } from "../source.ts";
import type { VerifiedDelivery } from "../sources/index.ts";
import type { Arrival } from "./arrivals.ts";
import { splitList } from "./split-list.ts";

/** Each item is a row for each route. */
const MAX_ITEMS = 1000;

export interface ReceivedRequest {
  readonly source: Source;
  readonly delivery: VerifiedDelivery;
  readonly event: WebhookEvent;
  readonly urlEntity: string | null;
  readonly target: string;
  readonly now: number;
  readonly id: string;
}

export function isDivided({ isBatch }: Source, payload: unknown): payload is readonly unknown[] {
  return isBatch && Array.isArray(payload) && payload.length <= MAX_ITEMS;
}

export function readArrivals(request: ReceivedRequest): Arrival[] {
  const { source, delivery, event, urlEntity, target, now, id } = request;
  const { headers } = delivery;
  const common = { source, headers, target, now };
  const { payload, json } = delivery;
  if (!isDivided(source, payload) || json === null)
    return [{ ...common, event, entity: findEntity(source, delivery, urlEntity), id, batch: null }];
  const texts = splitList(json);
  const seen = new Set<string>();
  return payload.map((item: unknown, i) => {
    const text = texts[i] ?? "";
    const one: VerifiedDelivery = { headers, payload: item, json: text };
    const read = readEvent(source, one, Buffer.from(text), now);
    // A header with the id of the delivery is the same for all items.
    const eventId = seen.has(read.id) || read.id === event.id ? `${read.id}#${i}` : read.id;
    seen.add(read.id);
    return {
      ...common,
      event: { ...read, id: eventId },
      entity: findEntity(source, one, urlEntity),
      id: ulid(now),
      batch: id,
    };
  });
}
