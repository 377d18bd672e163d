/** Management routes of late deliveries: those answered 202 that their instances have not handled yet. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { defineRoute, type Route } from "../http/route.ts";
import type { LateDeliveries } from "./late-deliveries.ts";
import type { LateDeliveryState, LateDeliveryTable } from "./late-delivery-table.ts";

export interface LateDeliveryRouteParts {
  readonly late: LateDeliveries;
  readonly lateTable: LateDeliveryTable;
}

const PAGE_SIZE = 100;

const listQuery = z.strictObject({
  /** Continues a list. */
  cursor: z.string().max(64).optional(),
  limit: z.coerce.number().int().min(1).max(PAGE_SIZE).default(PAGE_SIZE),
});

const lateDeliveryResult = z.object({
  id: z.string(),
  source: z.string(),
  status: z.enum(["waiting", "given_up"]),
  agent: z.string(),
  instance: z.string(),
  delivery_id: z.string(),
  received_at: z.iso.datetime(),
  body_bytes: z.number(),
  attempts: z.number(),
  next_attempt_at: z.iso.datetime().nullable(),
  last_error: z.string().nullable(),
});

export function lateDeliveryRoutes({ late, lateTable }: LateDeliveryRouteParts): Route[] {
  const path = "/accounts/{account_id}/webhooks/late-deliveries";
  return [
    defineRoute({
      method: "GET",
      path,
      access: "webhooks.read",
      summary: "List deliveries that were answered 202 and have not been handled yet, newest first.",
      query: listQuery,
      result: z.array(lateDeliveryResult),
      handler: async ({ params, query }) => {
        const { cursor, limit } = query;
        const found = await lateTable.list(params.account_id, cursor, limit + 1);
        const page = found.slice(0, limit);
        const next = found.length > limit ? (page.at(-1)?.id ?? null) : null;
        return {
          result: page.map(show),
          resultInfo: { count: page.length, cursor: next, cursors: next === null ? {} : { after: next } },
        };
      },
    }),
    defineRoute({
      method: "POST",
      effect: "action",
      path: `${path}/{delivery}/replay`,
      access: "webhooks.edit",
      summary: "Retry a delivery whose attempts have all failed.",
      result: z.object({ id: z.string() }),
      handler: async ({ params }) => {
        const { account_id: accountId, delivery } = params;
        if (!(await late.revive(accountId, delivery))) throw await explain(lateTable, accountId, delivery);
        return { result: { id: delivery } };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: `${path}/{delivery}`,
      access: "webhooks.edit",
      summary: "Drop a delivery whose attempts have all failed.",
      result: z.object({ id: z.string() }),
      handler: async ({ params }) => {
        const { account_id: accountId, delivery } = params;
        if (!(await late.drop(accountId, delivery))) throw await explain(lateTable, accountId, delivery);
        return { result: { id: delivery } };
      },
    }),
  ];
}

async function explain(table: LateDeliveryTable, accountId: string, id: string): Promise<SignalboxError> {
  return (await table.find(accountId, id)) === undefined
    ? new SignalboxError("not_found", { message: "Delivery not found" })
    : new SignalboxError("conflict", { message: "This delivery is still being attempted" });
}

function show(state: LateDeliveryState): z.input<typeof lateDeliveryResult> {
  return {
    id: state.id,
    source: state.source,
    status: state.nextAttemptAt === null ? "given_up" : "waiting",
    agent: state.agent,
    instance: state.instance,
    delivery_id: state.deliveryId,
    received_at: new Date(state.receivedAt).toISOString(),
    body_bytes: state.bodyBytes,
    attempts: state.attempts,
    next_attempt_at: state.nextAttemptAt === null ? null : new Date(state.nextAttemptAt).toISOString(),
    last_error: state.lastError,
  };
}
