/**
 * Deliveries that an agent received at once. They are not stored for routes; the inspector's list has their bytes and headers for as long as they are
 * listed, without signatures, credentials and the path and query of the request.
 */
import type { DeliveryLog } from "../delivery-log.ts";
import type { DeliveryRecord } from "../delivery-record.ts";
import type { StoredDelivery } from "./event-record.ts";
import type { EventTable } from "./event-table.ts";

/** Bodies in memory: a few megabytes. */
const PAGE = 20;

export interface ListedDeliveriesParts {
  readonly log: Pick<DeliveryLog, "find" | "list" | "withBodies">;
  readonly table: Pick<EventTable, "missing">;
}

export interface ListedPage {
  readonly deliveries: readonly StoredDelivery[];
  /** Deliveries whose bodies were too large for the list. */
  readonly withoutBody: number;
}

export class ListedDeliveries {
  readonly #parts: ListedDeliveriesParts;

  constructor(parts: ListedDeliveriesParts) {
    this.#parts = parts;
  }

  async find(accountId: string, id: string): Promise<StoredDelivery | undefined> {
    const record = await this.#parts.log.find(accountId, id);
    return record === undefined || record.status === "rejected" ? undefined : toStored(record);
  }

  /** Those of a source that are not stored for routes, newest first, among the newest `limit` since the time. */
  async *since(
    { accountId, source }: { readonly accountId: string; readonly source: string },
    since: number,
    limit: number,
  ): AsyncGenerator<ListedPage, void, undefined> {
    const { log, table } = this.#parts;
    let cursor: string | undefined;
    for (let looked = 0; looked < limit; looked += PAGE) {
      const { records, next } = await log.list(accountId, { source, since }, cursor, PAGE);
      const ids = await table.missing(records.filter(reachedAgent).map(({ id }) => id));
      const found = await log.withBodies(accountId, ids);
      const deliveries = found.flatMap((record) => toStored(record) ?? []);
      yield { deliveries, withoutBody: found.length - deliveries.length };
      if (next === null) return;
      cursor = next;
    }
  }
}

/** Not one that was refused, or repeats another one, or was answered by this server. */
function reachedAgent({ status, reason, agent }: DeliveryRecord): boolean {
  return (status === "accepted" || status === "failed") && reason !== "handshake" && agent !== "";
}

function toStored(record: DeliveryRecord): StoredDelivery | undefined {
  const { id, accountId, source, deliveryId, type, title, instance, receivedAt, contentType, headers, body } =
    record;
  if (body === null) return undefined;
  return {
    id,
    accountId,
    source,
    deliveryId,
    batch: null,
    type,
    title,
    entity: instance === "" ? null : instance,
    isEntityExact: false,
    target: `/webhooks/${source}`,
    receivedAt,
    contentType,
    headers,
    sealedHeaders: null,
    body,
  };
}
