/** A route of a source, ready to use: filters are parsed, the secret is revealed to the sender of requests only. */
import type { ConfiguredRoute, ManagedRoute } from "../../config/webhook-route-keys.ts";
import { objectAgent } from "../../contracts/object-agent.ts";
import type { Secret } from "../../core/secret.ts";
import { type PartFilter, parseParts } from "./parts.ts";
import { createRetryPlan, type RetryPlan } from "./retry-plan.ts";

export interface RouteAuth {
  readonly type: "bearer" | "basic" | "header" | "signature" | "standard";
  /** Of the user (`basic`) or of the header (`header`); otherwise empty. */
  readonly name: string;
  readonly secret: Secret;
}

export interface UrlTarget {
  readonly kind: "url";
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly auth: RouteAuth | null;
  readonly timeoutMs: number;
}

/** Alternatives are added here, with a case in `attempt-event.ts`. Events for `listen` wait until a listener takes them (`listeners.ts`). */
export type RouteTarget =
  | { readonly kind: "agent"; readonly agent: string }
  | UrlTarget
  | { readonly kind: "listen" };

export type PauseReason = "operator" | "gone" | "failing";

export interface Pause {
  readonly at: number;
  readonly because: PauseReason;
}

/** Names a route among those of all accounts. */
export interface RouteId {
  readonly accountId: string;
  readonly source: string;
  readonly name: string;
}

export interface Route extends RouteId {
  readonly key: string;
  /** Whether the configuration file or the interface defines it. */
  readonly origin: "file" | "api";
  /** As it was written, with `[secret]` for secrets and without `paused`. */
  readonly shown: Readonly<Record<string, unknown>>;
  readonly filters: readonly PartFilter[];
  readonly target: RouteTarget;
  readonly dedupe: { readonly windowMs: number; readonly fields: readonly string[] | null } | null;
  readonly delayMs: number;
  readonly retry: RetryPlan;
  /** Null without a limit. */
  readonly rate: { readonly limit: number; readonly periodMs: number } | null;
  readonly concurrent: number;
  readonly isOrdered: boolean;
  readonly pause: Pause | null;
  /** The listener that takes the events instead of the target; null if none does. */
  readonly listener: string | null;
  /** True when nothing but the filter decides about a delivery, which can then go to the agent at once. */
  readonly isPlain: boolean;
  readonly createdAt: number | null;
  readonly modifiedAt: number | null;
}

const PERIODS_MS = { second: 1000, minute: 60_000, hour: 3_600_000 };
/** Without `concurrent`: enough for a quick receiver at a thousand events a second, and few enough not to overwhelm one that has come back. */
const DEFAULT_CONCURRENT = 32;

/** Whoever listens decides what is sent again. */
const NO_RETRY = { strategy: "linear", intervalMs: 1000, count: 0 } as const;

export function routeKey({ accountId, source, name }: RouteId): string {
  return JSON.stringify([accountId, source, name]);
}

/** Throws `FilterError` for a filter that cannot be used. */
export function createRoute(
  id: RouteId,
  settings: ManagedRoute | ConfiguredRoute,
  secret: Secret | null,
  rest: Pick<Route, "origin" | "shown" | "pause" | "listener" | "createdAt" | "modifiedAt">,
): Route {
  const { when, to, dedupe, delay = 0, retry, rate, order } = settings;
  const target = toTarget(to, secret);
  return {
    ...id,
    ...rest,
    key: routeKey(id),
    filters: parseParts(when ?? {}),
    target,
    dedupe: dedupe === undefined ? null : { windowMs: dedupe.windowMs, fields: dedupe.fields ?? null },
    delayMs: delay,
    retry: createRetryPlan(target.kind === "listen" ? NO_RETRY : retry),
    rate: rate?.limit === undefined ? null : { limit: rate.limit, periodMs: PERIODS_MS[rate.per] },
    concurrent: rate?.concurrent ?? DEFAULT_CONCURRENT,
    isOrdered: order === "entity",
    isPlain:
      target.kind === "agent" &&
      dedupe === undefined &&
      delay === 0 &&
      retry === undefined &&
      rate === undefined &&
      order === undefined,
  };
}

function toTarget(to: (ManagedRoute | ConfiguredRoute)["to"], secret: Secret | null): RouteTarget {
  if ("agent" in to) return { kind: "agent", agent: to.agent };
  if ("object" in to) return { kind: "agent", agent: objectAgent(to.object) };
  if ("listen" in to) return { kind: "listen" };
  const { auth } = to;
  const name = auth?.type === "basic" ? auth.username : auth?.type === "header" ? auth.name : "";
  return {
    kind: "url",
    url: to.url,
    method: to.method,
    headers: Object.fromEntries(
      Object.entries(to.headers ?? {}).map(([header, value]) => [header.toLowerCase(), value]),
    ),
    auth: auth === undefined || secret === null ? null : { type: auth.type, name, secret },
    timeoutMs: to.timeoutMs,
  };
}
