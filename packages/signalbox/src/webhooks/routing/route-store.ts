/**
 * The routes of all sources: those of the configuration file, and those of the interface, which are settings that all nodes share. Secrets of the latter
 * are encrypted. Whether a route is paused is stored for both kinds.
 */
import { SignalboxError } from "@signalbox/protocol";
import { ConfigError } from "../../config/index.ts";
import { type ConfiguredRoute, type ManagedRoute, managedRoute } from "../../config/webhook-route-keys.ts";
import type { AgentDeliveries } from "../../agents/index.ts";
import { objectClassOf } from "../../contracts/object-agent.ts";
import type { Clock } from "../../core/clock.ts";
import type { Sealing } from "../../core/sealing.ts";
import { Secret } from "../../core/secret.ts";
import { sql } from "../../core/sql.ts";
import type { Database, Queryable } from "../../database/database.ts";
import { findToDelete, type SettingsStore, type SharedSettings } from "../../database/shared-settings.ts";
import { isPrivateHost } from "../../engines/ip-address/index.ts";
import type { Environment, Source } from "../source.ts";
import { FilterError } from "./filter/parse-filter.ts";
import { createRoute, type Pause, type PauseReason, type Route, type RouteId, routeKey } from "./route.ts";
import type { SourceRoutes } from "./source-routes.ts";

export const HIDDEN = "[secret]";
/** Each delivery of a source is compared with all of them. */
const MAX_ROUTES = 50;

export interface RouteStoreParts {
  readonly database: Database;
  readonly settings: SharedSettings;
  readonly clock: Clock;
  readonly sealing: Sealing;
  readonly sources: ReadonlyMap<string, Source>;
  readonly environment: Environment;
  readonly mayBePrivate: boolean;
  readonly hasAgent: AgentDeliveries["hasAgent"];
  /** Routes were added, changed, paused, resumed or removed. */
  readonly onChanged: () => void;
  /** Ends the waiting events of a route that is removed, in its transaction. */
  readonly cancelEvents: (tx: Queryable, id: RouteId, reason: string) => Promise<void>;
}

interface RouteRow {
  readonly account_id: string;
  readonly source: string;
  readonly name: string;
  readonly settings: string;
  readonly created_at: number;
  readonly modified_at: number;
}

interface StateRow {
  readonly account_id: string;
  readonly source: string;
  readonly name: string;
  readonly paused_at: number | null;
  readonly paused_because: PauseReason | null;
  readonly listener: string | null;
}

export class RouteStore implements SettingsStore {
  readonly #parts: RouteStoreParts;
  #routes: ReadonlyMap<string, Route> = new Map();
  /** By source. A source without routes has no entry. */
  #bySource: ReadonlyMap<string, SourceRoutes> = new Map();

  constructor(parts: RouteStoreParts) {
    this.#parts = parts;
    parts.settings.register("webhook_route", this);
  }

  /** Throws `ConfigError` for a route of the configuration file that cannot be used. */
  load(): Promise<void> {
    for (const source of this.#parts.sources.values())
      for (const route of source.routes) this.#fromFile(source, route, null);
    return this.#parts.settings.load("webhook_route");
  }

  async reload(): Promise<void> {
    const { database, sources } = this.#parts;
    const rows = await database.all<RouteRow>(sql`SELECT * FROM webhook_route ORDER BY created_at, name`);
    const states = await database.all<StateRow>(
      sql`SELECT account_id, source, name, paused_at, paused_because, listener FROM webhook_route_state`,
    );
    const known = new Map(states.map((row) => [routeKey(idOf(row)), toState(row)]));
    const routes = new Map<string, Route>();
    for (const source of sources.values()) {
      for (const one of source.routes) {
        const route = this.#fromFile(source, one, known);
        routes.set(route.key, route);
      }
    }
    for (const row of rows) {
      const source = sources.get(row.source);
      const key = routeKey(idOf(row));
      // The operator's file comes first. A route of a source that is not configured any more waits for its return.
      if (source?.accountId !== row.account_id || routes.has(key)) continue;
      routes.set(key, this.#fromRow(row, known.get(key) ?? NO_STATE));
    }
    for (const source of sources.values()) {
      const hasOwn = [...routes.values()].some(
        ({ source: name, target }) => name === source.name && target.kind !== "listen",
      );
      if (!source.isBatch || hasOwn) continue;
      const route = ownAgentRoute(source);
      routes.set(route.key, route);
    }
    this.#routes = routes;
    this.#bySource = groupBySource(sources, routes.values());
    this.#parts.onChanged();
  }

  /** Undefined for a source without routes. */
  of(source: Source): SourceRoutes | undefined {
    return this.#bySource.get(source.name);
  }

  get hasRoutes(): boolean {
    return this.#routes.size > 0;
  }

  all(): Iterable<Route> {
    return this.#routes.values();
  }

  byKey(key: string): Route | undefined {
    return this.#routes.get(key);
  }

  find(id: RouteId): Route {
    const route = this.#routes.get(routeKey(id));
    if (route === undefined) throw new SignalboxError("not_found", { message: "Route not found" });
    return route;
  }

  /** Creates or replaces. `paused` that is not given leaves a route as it is. */
  async put(id: RouteId, settings: ManagedRoute): Promise<Route> {
    const { clock, settings: shared } = this.#parts;
    const { paused, ...rest } = settings;
    this.#requireUsable(id, rest);
    await shared.write("webhook_route", async (tx, changed) => {
      const now = clock.now();
      const before = await readRow(tx, id);
      const stored = JSON.stringify(this.#seal(id, rest, before === undefined ? null : parse(before)));
      if (before === undefined) {
        await requireRoom(tx, id);
        await tx.run(
          sql`INSERT INTO webhook_route (account_id, source, name, settings, created_at, modified_at)
              VALUES (${id.accountId}, ${id.source}, ${id.name}, ${stored}, ${now}, ${now})`,
        );
        // What a route of this name was before is over.
        await writePause(tx, id, paused === true ? { at: now, because: "operator" } : null);
      } else {
        await tx.run(
          sql`UPDATE webhook_route SET settings = ${stored}, modified_at = ${now}
              WHERE account_id = ${id.accountId} AND source = ${id.source} AND name = ${id.name}`,
        );
        if (paused !== undefined) await writePause(tx, id, paused ? { at: now, because: "operator" } : null);
      }
      changed(routeKey(id));
    });
    return this.find(id);
  }

  async delete(id: RouteId): Promise<Route> {
    const route = await findToDelete(this.#parts.settings, () => this.find(id));
    if (route.origin === "file") throw definedInFile(id);
    await this.#parts.settings.write("webhook_route", async (tx, changed) => {
      await tx.run(
        sql`DELETE FROM webhook_route WHERE account_id = ${id.accountId} AND source = ${id.source} AND name = ${id.name}`,
      );
      await tx.run(
        sql`DELETE FROM webhook_route_state
            WHERE account_id = ${id.accountId} AND source = ${id.source} AND name = ${id.name}`,
      );
      await this.#parts.cancelEvents(tx, id, "the route was deleted");
      changed(routeKey(id));
    });
    return route;
  }

  /** Events are kept until the route is resumed. A route that is paused already keeps its reason. */
  async pause(id: RouteId, because: PauseReason): Promise<Route> {
    this.find(id);
    await this.#parts.settings.write("webhook_route", async (tx, changed) => {
      const row = await readState(tx, id);
      if (row?.paused_at != null) return;
      await writePause(tx, id, { at: this.#parts.clock.now(), because });
      changed(routeKey(id));
    });
    return this.find(id);
  }

  async resume(id: RouteId): Promise<Route> {
    const route = this.find(id);
    if (route.origin === "file" && isPausedInFile(route, this.#parts.sources))
      throw new SignalboxError("conflict", {
        message: `The configuration file pauses the route ${id.name}; change it there and restart`,
      });
    await this.#parts.settings.write("webhook_route", async (tx, changed) => {
      await writePause(tx, id, null);
      changed(routeKey(id));
    });
    return this.find(id);
  }

  /** The listener takes the events of the route until `release`. One listener at a time. */
  async take(id: RouteId, listener: string, until: number): Promise<void> {
    if (this.find(id).target.kind === "listen")
      throw new SignalboxError("conflict", { message: `The route ${id.name} is one of a listener` });
    await this.#parts.settings.write("webhook_route", async (tx, changed) => {
      const row = await readState(tx, id);
      if (row?.listener != null && row.listener !== listener)
        throw new SignalboxError("conflict", {
          message: `The listener ${row.listener} has taken the route ${id.name}`,
        });
      await tx.run(
        sql`INSERT INTO webhook_route_state (account_id, source, name, listener, listener_until)
            VALUES (${id.accountId}, ${id.source}, ${id.name}, ${listener}, ${until})
            ON CONFLICT (account_id, source, name)
            DO UPDATE SET listener = excluded.listener, listener_until = excluded.listener_until`,
      );
      changed(routeKey(id));
    });
  }

  /** The target receives its events again. `before`: only if the listener has not been seen until then. */
  async release(id: RouteId, before = Number.MAX_SAFE_INTEGER): Promise<void> {
    await this.#parts.settings.write("webhook_route", async (tx, changed) => {
      const { changes } = await tx.run(
        sql`UPDATE webhook_route_state SET listener = NULL, listener_until = NULL
            WHERE account_id = ${id.accountId} AND source = ${id.source} AND name = ${id.name} AND listener_until < ${before}`,
      );
      if (changes > 0) changed(routeKey(id));
    });
  }

  #fromFile(
    source: Source,
    settings: ConfiguredRoute,
    states: ReadonlyMap<string, RouteState> | null,
  ): Route {
    const { environment, hasAgent } = this.#parts;
    const { name, paused, ...rest } = settings;
    const at = `webhooks.sources.${source.name}.routes.${name}`;
    const id = { accountId: source.accountId, source: source.name, name };
    const variable = "url" in rest.to ? rest.to.auth?.secretVariable : undefined;
    const secret = variable === undefined ? undefined : environment[variable];
    if (variable !== undefined && (secret === undefined || secret === ""))
      throw new ConfigError(`${at}.to.auth: expected a secret in the variable ${variable}, found none`);
    const state = states?.get(routeKey(id)) ?? NO_STATE;
    const pause = state.pause ?? (paused === true ? { at: 0, because: "operator" } : null);
    try {
      const route = createRoute(id, settings, secret === undefined ? null : new Secret(secret), {
        origin: "file",
        shown: rest,
        pause,
        listener: state.listener,
        createdAt: null,
        modifiedAt: null,
      });
      if (route.target.kind === "agent" && !hasAgent(route.target.agent))
        throw new ConfigError(`${at}.${missing(route.target.agent)}`);
      return route;
    } catch (error) {
      throw error instanceof FilterError ? new ConfigError(`${at}.${error.message}`) : error;
    }
  }

  #fromRow(row: RouteRow, { pause, listener }: RouteState): Route {
    const settings = parse(row);
    const id = idOf(row);
    const sealed = secretOf(settings);
    const opened = sealed === null ? null : this.#parts.sealing.open(sealed, contextOf(id));
    return createRoute(id, settings, opened === null ? null : new Secret(opened.text), {
      origin: "api",
      shown: withSecret(settings, HIDDEN),
      pause,
      listener: isListening(settings) ? null : listener,
      createdAt: row.created_at,
      modifiedAt: row.modified_at,
    });
  }

  #requireUsable(id: RouteId, settings: ManagedRoute): void {
    const { sources, hasAgent, mayBePrivate } = this.#parts;
    const source = sources.get(id.source);
    if (source?.accountId !== id.accountId)
      throw new SignalboxError("not_found", { message: "Source not found" });
    if (source.routes.some(({ name }) => name === id.name)) throw definedInFile(id);
    try {
      const { target } = createRoute(id, settings, null, NOTHING);
      // The operator's file may send the deliveries of any account to the worker.
      if (target.kind === "agent" && !hasAgent(target.agent, id.accountId))
        throw invalid(missing(target.agent));
      const host = target.kind === "url" ? (URL.parse(target.url)?.hostname ?? "") : "";
      if (target.kind === "url" && !mayBePrivate && isPrivateHost(host))
        throw invalid(
          `to.url: ${host} is a private or loopback address; the operator can allow it with outgoing.allowPrivateHosts`,
        );
    } catch (error) {
      throw error instanceof FilterError ? invalid(error.message) : error;
    }
  }

  #seal(id: RouteId, settings: ManagedRoute, before: ManagedRoute | null): ManagedRoute {
    const secret = secretOf(settings);
    if (secret === null) return settings;
    if (secret !== HIDDEN)
      return withSecret(settings, this.#parts.sealing.seal(secret, contextOf(id))) as ManagedRoute;
    const stored = before === null ? null : secretOf(before);
    // A stored secret stays with its address: another receiver could otherwise learn it.
    if (stored === null || before === null || addressOf(before) !== addressOf(settings))
      throw invalid(
        `to.auth.secret: ${HIDDEN} means the stored secret of the same address, but none is stored`,
      );
    return withSecret(settings, stored) as ManagedRoute;
  }
}

/** What is stored beside the settings of a route. */
interface RouteState {
  readonly pause: Pause | null;
  readonly listener: string | null;
}

const NO_STATE: RouteState = { pause: null, listener: null };
const NOTHING = {
  origin: "api",
  shown: {},
  pause: null,
  listener: null,
  createdAt: null,
  modifiedAt: null,
} as const;

function groupBySource(
  sources: ReadonlyMap<string, Source>,
  routes: Iterable<Route>,
): ReadonlyMap<string, SourceRoutes> {
  const bySource = new Map<string, SourceRoutes>();
  for (const [name, own] of Map.groupBy(routes, ({ source }) => source)) {
    const source = sources.get(name);
    if (source === undefined) continue;
    const listeners = own.filter(({ target }) => target.kind === "listen");
    const others = own.filter(({ target }) => target.kind !== "listen");
    // A listener does not change what a source without routes does.
    const [first = ownAgentRoute(source)] = others;
    const isDirect =
      others.length <= 1 &&
      first.isPlain &&
      first.pause === null &&
      first.listener === null &&
      !source.isBatch;
    const agent = first.target.kind === "agent" ? first.target.agent : null;
    bySource.set(name, {
      routes: own,
      direct: isDirect && agent !== null ? { route: first, source: { ...source, agent } } : null,
      listeners,
    });
  }
  return bySource;
}

/** A source that divides lists, without routes: its agent receives the items. */
function ownAgentRoute(source: Source): Route {
  const id = { accountId: source.accountId, source: source.name, name: "agent" };
  const settings = { to: { agent: source.agent } };
  return createRoute(id, settings, null, { ...NOTHING, origin: "file", shown: settings });
}

function isPausedInFile(id: RouteId, sources: ReadonlyMap<string, Source>): boolean {
  return sources.get(id.source)?.routes.find(({ name }) => name === id.name)?.paused === true;
}

/** An encrypted secret is longer than a secret may be, so it is not parsed again. */
function parse(row: RouteRow): ManagedRoute {
  const stored = JSON.parse(row.settings) as ManagedRoute;
  const secret = secretOf(stored);
  if (secret === null) return managedRoute.parse(stored);
  return withSecret(managedRoute.parse(withSecret(stored, HIDDEN)), secret) as ManagedRoute;
}

function secretOf({ to }: ManagedRoute): string | null {
  return "url" in to ? (to.auth?.secret ?? null) : null;
}

function addressOf({ to }: ManagedRoute): string | null {
  return "url" in to ? new URL(to.url).origin : null;
}

function withSecret(settings: ManagedRoute, secret: string): Readonly<Record<string, unknown>> {
  const { to } = settings;
  if (!("url" in to) || to.auth === undefined) return settings;
  return { ...settings, to: { ...to, auth: { ...to.auth, secret } } };
}

function idOf(row: Pick<RouteRow, "account_id" | "source" | "name">): RouteId {
  return { accountId: row.account_id, source: row.source, name: row.name };
}

function toState({ paused_at: at, paused_because: because, listener }: StateRow): RouteState {
  return { pause: at === null ? null : { at, because: because ?? "operator" }, listener };
}

function isListening({ to }: ManagedRoute): boolean {
  return "listen" in to;
}

function readRow(tx: Queryable, { accountId, source, name }: RouteId): Promise<RouteRow | undefined> {
  return tx.get<RouteRow>(
    sql`SELECT * FROM webhook_route WHERE account_id = ${accountId} AND source = ${source} AND name = ${name}`,
  );
}

function readState(tx: Queryable, { accountId, source, name }: RouteId): Promise<StateRow | undefined> {
  return tx.get<StateRow>(
    sql`SELECT * FROM webhook_route_state WHERE account_id = ${accountId} AND source = ${source} AND name = ${name}`,
  );
}

async function writePause(
  tx: Queryable,
  { accountId, source, name }: RouteId,
  pause: Pause | null,
): Promise<void> {
  const at = pause?.at ?? null;
  const because = pause?.because ?? null;
  await tx.run(
    sql`INSERT INTO webhook_route_state (account_id, source, name, paused_at, paused_because)
        VALUES (${accountId}, ${source}, ${name}, ${at}, ${because})
        ON CONFLICT (account_id, source, name)
        DO UPDATE SET paused_at = excluded.paused_at, paused_because = excluded.paused_because, failing_since = NULL`,
  );
}

async function requireRoom(tx: Queryable, { accountId, source }: RouteId): Promise<void> {
  const row = await tx.get<{ count: number }>(
    sql`SELECT count(*) AS count FROM webhook_route WHERE account_id = ${accountId} AND source = ${source}`,
  );
  if ((row?.count ?? 0) >= MAX_ROUTES) throw invalid(`A source has at most ${MAX_ROUTES} routes`);
}

function contextOf(id: RouteId): string {
  return JSON.stringify(["webhook_route", id.accountId, id.source, id.name]);
}

function missing(agent: string): string {
  const className = objectClassOf(agent);
  return className === null
    ? `to.agent: expected the kebab-case name of an agent, found "${agent}"`
    : `to.object: expected a class that the worker exports, found "${className}"`;
}

function definedInFile({ name }: RouteId): SignalboxError {
  return new SignalboxError("conflict", {
    message: `The configuration file defines the route ${name}; change it there and restart`,
  });
}

function invalid(message: string): SignalboxError {
  return new SignalboxError("invalid_request", { message });
}
