/** Management routes of the routes of a source. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { managedRoute, ROUTE_NAME } from "../../config/webhook-route-keys.ts";
import { defineRoute, type PathParams, type Route as ManagementRoute } from "../../http/route.ts";
import type { Source } from "../source.ts";
import { FilterError } from "./filter/parse-filter.ts";
import type { StateCount } from "./event-table.ts";
import { explainParts, parseParts } from "./parts.ts";
import { isDivided } from "./read-arrivals.ts";
import type { Route, RouteId } from "./route.ts";
import type { Routing } from "./routing.ts";

const ROUTES = "/accounts/{account_id}/webhooks/sources/{source_name}/routes";
const ROUTE = `${ROUTES}/{route_name}`;

const HOUR_MS = 3_600_000;
const MAX_ATTEMPTS = 2000;

const counts = z.object({
  waiting: z.int(),
  delivered: z.int(),
  failed: z.int(),
  cancelled: z.int(),
  ignored: z.int(),
});

const routeResult = z.object({
  source: z.string(),
  name: z.string(),
  /** `file`: only the configuration file changes it. */
  defined_in: z.enum(["file", "api"]),
  /** As in the configuration file; secrets are `[secret]`. */
  when: z.unknown().optional(),
  to: z.unknown(),
  dedupe: z.unknown().optional(),
  delay: z.int().optional(),
  retry: z.unknown().optional(),
  rate: z.unknown().optional(),
  order: z.string().optional(),
  paused: z.boolean(),
  paused_at: z.iso.datetime().nullable(),
  /** `operator`, `gone` (the receiver answered 410) or `failing` (it only failed for days). */
  paused_because: z.enum(["operator", "gone", "failing"]).nullable(),
  created_at: z.iso.datetime().nullable(),
  modified_at: z.iso.datetime().nullable(),
  /** The listener that takes its events instead of the target. */
  listener: z.string().nullable(),
});

const listedRoute = routeResult.extend({
  /** Events that are kept. */
  events: counts,
  /** Of the events that wait. */
  oldest_waiting_at: z.iso.datetime().nullable(),
  /** Of the last hour, at most the newest 2,000 of the source; null without one. */
  recent_attempts: z.object({ count: z.int(), failed: z.int(), p50_ms: z.int(), p95_ms: z.int() }).nullable(),
});

const finding = z.object({
  at: z.string(),
  condition: z.string(),
  found: z.unknown(),
  holds: z.boolean(),
});

const verdict = z.enum(["match", "mismatch", "undecided"]);

const explanation = z.object({
  route: z.string().nullable(),
  verdict,
  because: z.string(),
  parts: z.array(z.object({ part: z.string(), verdict, findings: z.array(finding) })),
});

const tryBody = z.strictObject({
  /** A delivery that is listed, or stored for routes. */
  delivery: z.string().max(64),
  /** Filters to try; default: those of the routes of the source. */
  when: managedRoute.shape.when,
});

export interface RouteRouteParts {
  readonly routing: Routing;
  readonly sources: ReadonlyMap<string, Source>;
}

export function routeRoutes(parts: RouteRouteParts): ManagementRoute[] {
  const { routing } = parts;
  const { routes } = routing;
  const change = (action: "pause" | "resume", summary: string) =>
    defineRoute({
      method: "POST",
      effect: "action",
      path: `${ROUTE}/${action}`,
      access: "webhooks.edit",
      summary,
      result: routeResult,
      handler: async ({ params }) => {
        const id = idOf(params);
        return {
          result: show(action === "pause" ? await routes.pause(id, "operator") : await routes.resume(id)),
        };
      },
    });
  return [
    defineRoute({
      method: "GET",
      path: ROUTES,
      access: "webhooks.read",
      summary: "List the routes of a webhook source, with the number of their events by state.",
      result: z.array(listedRoute),
      handler: async ({ params }) => {
        const source = findSource(parts, params);
        const own = [...routes.all()].filter((route) => route.source === source.name);
        const found = await routing.table.countStates(source.accountId, source.name);
        const attempts = await routing.table.recentAttempts(
          source.accountId,
          source.name,
          routing.clock.now() - HOUR_MS,
          MAX_ATTEMPTS,
        );
        return {
          result: own.map((route) => ({
            ...show(route),
            ...showCounts(found, route),
            recent_attempts: showAttempts(attempts.get(route.name) ?? []),
          })),
          resultInfo: { count: own.length },
        };
      },
    }),
    defineRoute({
      method: "POST",
      effect: "action",
      changesNothing: true,
      path: `${ROUTES}/try`,
      access: "webhooks.read",
      summary: "Compare a delivery with filters, and say why they match or do not.",
      body: tryBody,
      result: z.array(explanation),
      handler: async ({ params, body }) => {
        const source = findSource(parts, params);
        const delivery = await routing.findDelivery(source.accountId, body.delivery);
        if (delivery?.source !== source.name)
          throw new SignalboxError("not_found", { message: "Delivery not found, or its body was not kept" });
        const seen = routing.partsOf(delivery);
        if (isDivided(source, seen.body))
          throw new SignalboxError("invalid_request", {
            message: "The delivery is a list that was divided; name one of its items",
          });
        const tried =
          body.when === undefined
            ? [...routes.all()].filter((route) => route.source === source.name)
            : [{ name: null, filters: parseWhen(body.when) }];
        return {
          result: tried.map(({ name, filters }) => showExplanation(name, explainParts(filters, seen))),
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: ROUTE,
      access: "webhooks.read",
      summary: "Read one route of a webhook source.",
      result: routeResult,
      handler: ({ params }) => ({ result: show(routes.find(idOf(params))) }),
    }),
    defineRoute({
      method: "PUT",
      path: ROUTE,
      access: "webhooks.edit",
      summary:
        "Create or replace a route; `[secret]` keeps the stored secret of the same address, and `paused` that is not given stays as it is.",
      body: managedRoute,
      result: routeResult,
      handler: async ({ params, body }) => {
        const id = idOf(params);
        if (!ROUTE_NAME.test(id.name))
          throw new SignalboxError("invalid_request", {
            message: "The name of a route has lower-case letters, digits, _ and -",
          });
        return { result: show(await routes.put(id, body)) };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: ROUTE,
      access: "webhooks.edit",
      summary: "Delete a route and cancel its events that wait.",
      result: routeResult,
      handler: async ({ params }) => ({ result: show(await routes.delete(idOf(params))) }),
    }),
    change("pause", "Pause a route: its events are kept until it is resumed."),
    change("resume", "Resume a route: its events are delivered at its rate."),
  ];
}

function findSource({ sources }: RouteRouteParts, params: PathParams<typeof ROUTES>): Source {
  const source = sources.get(params.source_name);
  if (source === undefined || source.accountId !== params.account_id)
    throw new SignalboxError("not_found", { message: "Source not found" });
  return source;
}

function idOf(params: PathParams<typeof ROUTE>): RouteId {
  return { accountId: params.account_id, source: params.source_name, name: params.route_name };
}

function parseWhen(when: object) {
  try {
    return parseParts(when);
  } catch (error) {
    throw error instanceof FilterError
      ? new SignalboxError("invalid_request", { message: error.message })
      : error;
  }
}

function show(route: Route): z.input<typeof routeResult> {
  const { pause, createdAt, modifiedAt } = route;
  return {
    to: null,
    ...route.shown,
    source: route.source,
    name: route.name,
    defined_in: route.origin,
    paused: pause !== null,
    paused_at: pause === null || pause.at === 0 ? null : new Date(pause.at).toISOString(),
    paused_because: pause?.because ?? null,
    created_at: createdAt === null ? null : new Date(createdAt).toISOString(),
    modified_at: modifiedAt === null ? null : new Date(modifiedAt).toISOString(),
    listener: route.listener,
  };
}

function showCounts(found: readonly StateCount[], { name }: Route) {
  const own = found.filter(({ route }) => route === name);
  const of = (state: StateCount["state"]) => own.find((one) => one.state === state);
  const oldest = of("waiting")?.oldest;
  return {
    events: {
      waiting: of("waiting")?.count ?? 0,
      delivered: of("delivered")?.count ?? 0,
      failed: of("failed")?.count ?? 0,
      cancelled: of("cancelled")?.count ?? 0,
      ignored: of("ignored")?.count ?? 0,
    },
    oldest_waiting_at: oldest === undefined ? null : new Date(oldest).toISOString(),
  };
}

function showAttempts(rows: readonly { readonly outcome: string; readonly duration_ms: number }[]) {
  if (rows.length === 0) return null;
  const times = rows.map(({ duration_ms: ms }) => ms).sort((a, b) => a - b);
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
  const failed = rows.filter(({ outcome }) => outcome === "failed").length;
  return { count: rows.length, failed, p50_ms: at(0.5), p95_ms: at(0.95) };
}

function showExplanation(
  route: string | null,
  { verdict: found, parts }: ReturnType<typeof explainParts>,
): z.input<typeof explanation> {
  const shown = parts.map(({ part, verdict: own, findings }) => ({
    part,
    verdict: own,
    findings: [...findings],
  }));
  return { route, verdict: found, because: because(found, parts), parts: shown };
}

function because(found: string, parts: ReturnType<typeof explainParts>["parts"]): string {
  if (parts.length === 0) return "would match, because there is no filter";
  const told = parts.flatMap(({ part, findings }) =>
    findings
      .filter(({ holds }) => holds === (found === "match"))
      .map(({ at, condition, found: value }) => {
        const where = at === "" ? part : `${part} ${at}`;
        const text = JSON.stringify(value) ?? "nothing";
        return `${where} is ${text.length > 80 ? `${text.slice(0, 80)}…` : text} (${condition})`;
      }),
  );
  if (found === "undecided") return "would be ignored, because the filter needs too many comparisons";
  return `would ${found === "match" ? "match" : "not match"}, because ${told.join(", and ")}`;
}
