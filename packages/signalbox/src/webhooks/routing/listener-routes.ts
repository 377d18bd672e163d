/** Management routes of listeners. Deliveries are streamed with their signatures, so that they need the permission to change things. */
import { z } from "zod";
import { managedRoute, ROUTE_NAME } from "../../config/webhook-route-keys.ts";
import { SignalboxError } from "@signalbox/protocol";
import { defineRoute, type Route as ManagementRoute } from "../../http/route.ts";
import type { Route } from "./route.ts";
import type { Routing } from "./routing.ts";

const LISTENER = "/accounts/{account_id}/webhooks/listeners/{listener_name}";
const MAX_RESULTS = 100;
const MAX_KEPT = 4096;
/** Results with their answers in base64. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;

const putBody = z.strictObject({
  /** Default: all sources of the account that have a secret. */
  sources: z.array(z.string().max(64)).min(1).max(100).optional(),
  /** Filters of the deliveries. */
  when: managedRoute.shape.when,
  /** Takes the events of this route of the only source, whose target receives nothing meanwhile; without `when` and `since`. */
  instead_of: z.string().max(64).optional(),
  /** Earlier events are dropped; deliveries that are stored or listed from then on are sent. */
  since: z.iso.datetime({ offset: true }).max(64).optional(),
});

const listenerResult = z.object({
  name: z.string(),
  routes: z.array(z.object({ source: z.string(), route: z.string(), instead_of_target: z.boolean() })),
  /** Events that wait. */
  waiting: z.int(),
});

const putResult = listenerResult.extend({
  /** Deliveries from `since` on that cannot be sent: their agent received them at once, and their bodies were too large for the list of deliveries. */
  not_kept: z.int(),
});

const streamQuery = z.strictObject({
  /** Events without a result at a time. */
  max: z.coerce.number().int().min(1).max(200).default(50),
  /** Signs deliveries anew with the source's secret and the present time. */
  sign: z.enum(["true", "false"]).default("false"),
});

const results = z.strictObject({
  results: z
    .array(
      z.strictObject({
        event: z.string().max(64),
        attempt: z.int().min(1),
        url: z.string().max(2048),
        /** Null if there was no answer; `error` says why. */
        status: z.int().min(100).max(599).nullable(),
        error: z.string().max(500).nullable(),
        duration_ms: z.int().min(0).max(3_600_000),
        headers: z.record(z.string().max(128), z.string().max(2048)).default({}),
        /** The beginning of the answer, base64. */
        body: z
          .string()
          .max(Math.ceil(MAX_KEPT / 3) * 4)
          .default(""),
      }),
    )
    .min(1)
    .max(MAX_RESULTS),
});

export function listenerRoutes({ routing }: { readonly routing: Routing }): ManagementRoute[] {
  const { listeners } = routing;
  const show = async (name: string, routes: readonly Route[]): Promise<z.input<typeof listenerResult>> => ({
    name,
    routes: routes.map(({ source, name: route, target }) => ({
      source,
      route,
      instead_of_target: target.kind !== "listen",
    })),
    waiting: await listeners.countWaiting(routes),
  });
  return [
    defineRoute({
      method: "GET",
      path: LISTENER,
      access: "webhooks.read",
      summary: "Read a listener: its routes, and how many events wait for it.",
      result: listenerResult,
      handler: async ({ params }) => ({
        result: await show(params.listener_name, listeners.find(params.account_id, params.listener_name)),
      }),
    }),
    defineRoute({
      method: "PUT",
      path: LISTENER,
      access: "webhooks.edit",
      summary:
        "Create or change a listener, which takes deliveries of sources itself, besides their targets or instead of one.",
      body: putBody,
      result: putResult,
      handler: async ({ params, body }) => {
        const { account_id: accountId, listener_name: name } = params;
        if (!ROUTE_NAME.test(name))
          throw new SignalboxError("invalid_request", {
            message: "The name of a listener has lower-case letters, digits, _ and -",
          });
        const { routes, notKept } = await listeners.put(accountId, name, {
          sources: body.sources,
          when: body.when,
          insteadOf: body.instead_of,
          since: body.since === undefined ? undefined : Date.parse(body.since),
        });
        return { result: { ...(await show(name, routes)), not_kept: notKept } };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: LISTENER,
      access: "webhooks.edit",
      summary: "Remove a listener and cancel its events; a route that it has taken returns to its target.",
      result: z.object({ name: z.string() }),
      handler: async ({ params }) => {
        await listeners.remove(params.account_id, params.listener_name);
        return { result: { name: params.listener_name } };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${LISTENER}/deliveries`,
      access: "webhooks.edit",
      summary:
        "Stream the events of a listener (`text/event-stream`) with all headers and the raw body (base64), oldest first; each is sent again unless its result is reported.",
      query: streamQuery,
      handler: ({ params, query }) => ({
        raw: {
          contentType: "text/event-stream",
          body: listeners.open(params.account_id, params.listener_name, {
            max: query.max,
            isSigned: query.sign === "true",
          }),
        },
        headers: { "cache-control": "no-store" },
      }),
    }),
    defineRoute({
      method: "POST",
      effect: "action",
      path: `${LISTENER}/results`,
      access: "webhooks.edit",
      summary: "Report what the program of a listener has answered; each answer is stored as an attempt.",
      body: results,
      maxBodyBytes: MAX_BODY_BYTES,
      result: z.object({ recorded: z.int() }),
      handler: async ({ params, body }) => {
        const recorded = await listeners.report(
          params.account_id,
          params.listener_name,
          body.results.map(({ duration_ms: durationMs, body: answer, ...rest }) => ({
            ...rest,
            durationMs,
            body: Buffer.from(answer, "base64").subarray(0, MAX_KEPT),
          })),
        );
        return { result: { recorded } };
      },
    }),
  ];
}
