/**
 * The dynamic routes of all gateways: the database is the source of truth, calls read the compiled copy in memory.
 *
 * Invariants:
 * 1. A version never changes; a deployment makes another version the current one. Calls that run keep the graph they began with.
 * 2. The row, the version and the deployment of a change are written in one transaction, and memory changes after it, in one step: every call
 *    sees the old graph or the new one.
 * 3. A route has its deployed version and the newest others. Versions are deleted and deployed in one order, on all nodes.
 * 4. A route whose stored graph is not valid any more (its custom provider was deleted) stays listed; calls of the route are refused with
 *    the reason.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import { invalidRequest } from "../../core/invalid-request.ts";
import { Serial } from "../../core/serial.ts";
import { sql, sqlList } from "../../core/sql.ts";
import { ulid } from "../../core/ulid.ts";
import type { Database, Queryable } from "../../database/database.ts";
import { findToDelete, type SettingsStore, type SharedSettings } from "../../database/shared-settings.ts";
import type { ProviderDirectory } from "../providers/provider.ts";
import type { Gateway } from "../settings/gateway.ts";
import { parseGraph, type RouteGraph } from "./route-graph.ts";

export interface DynamicRoute {
  readonly id: string;
  readonly accountId: string;
  readonly gatewayId: string;
  readonly name: string;
  readonly deployment: RouteDeployment;
  readonly version: RouteVersion;
  readonly createdAt: number;
  readonly modifiedAt: number;
}

export interface RouteVersion {
  readonly id: string;
  /** As it was sent. */
  readonly elements: readonly unknown[];
  readonly createdAt: number;
}

export interface RouteDeployment {
  readonly id: string;
  readonly versionId: string;
  readonly createdAt: number;
}

export interface DynamicRoutesParts {
  readonly database: Database;
  readonly settings: SharedSettings;
  readonly clock: Clock;
  readonly providers: ProviderDirectory;
}

/** Every process keeps the deployed versions of all accounts in memory. */
const MAX_ROUTES_OF_ACCOUNT = 1000;
/** Lists of versions and deployments are read and sent whole, and a version may have 150 KB. */
const MAX_VERSIONS = 100;
const MAX_DEPLOYMENTS = 1000;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export class DynamicRoutes implements SettingsStore {
  readonly #parts: DynamicRoutesParts;
  /** By account, gateway and name. */
  readonly #byName = new Map<string, DynamicRoute>();
  /** Compiled when a version is first used. */
  readonly #graphs = new WeakMap<RouteVersion, RouteGraph>();
  /** Changes are made one after the other, so that memory changes in the order of the database. */
  readonly #changes = new Serial();

  constructor(parts: DynamicRoutesParts) {
    this.#parts = parts;
    parts.settings.register("route", this);
  }

  load(): Promise<void> {
    return this.#parts.settings.load("route");
  }

  async reload(ids: readonly string[] | null): Promise<void> {
    const selected = ids === null ? sql`` : sql`WHERE r.id IN (${sqlList(ids)})`;
    const rows = await this.#parts.database.all<RouteRow>(
      sql`SELECT r.*, v.elements, v.created_at AS version_created_at, d.created_at AS deployed_at
          FROM gateway_route r
          JOIN gateway_route_version v ON v.id = r.version_id
          JOIN gateway_route_deployment d ON d.id = r.deployment_id ${selected} ORDER BY r.id`,
    );
    const known = ids === null ? null : new Set(ids);
    for (const [name, route] of this.#byName) if (known?.has(route.id) !== false) this.#byName.delete(name);
    for (const row of rows) this.#put(fromRow(row));
  }

  list({ accountId, id }: Gateway): DynamicRoute[] {
    return [...this.#byName.values()]
      .filter((route) => route.accountId === accountId && route.gatewayId === id)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** Throws `not_found`. */
  get(gateway: Gateway, id: string): DynamicRoute {
    const route = this.list(gateway).find((candidate) => candidate.id === id);
    if (route === undefined) throw routeMissing();
    return route;
  }

  findByName({ accountId, id }: Gateway, name: string): DynamicRoute | undefined {
    return this.#byName.get(keyOf(accountId, id, name));
  }

  /** The compiled graph; throws `invalid_request` when it is not valid. */
  graphOf(accountId: string, version: RouteVersion): RouteGraph {
    let graph = this.#graphs.get(version);
    if (graph === undefined) {
      graph = this.#compile(accountId, version.elements);
      this.#graphs.set(version, graph);
    }
    return graph;
  }

  /** False when a provider that the version names does not exist any more. */
  isValid(accountId: string, version: RouteVersion): boolean {
    try {
      const { elements } = this.graphOf(accountId, version);
      return [...elements.values()].every(
        (element) =>
          element.type !== "model" || this.#parts.providers.find(accountId, element.provider) !== undefined,
      );
    } catch (error) {
      if (error instanceof SignalboxError) return false;
      throw error;
    }
  }

  create(gateway: Gateway, name: string, elements: readonly unknown[]): Promise<DynamicRoute> {
    return this.#changes.run(() => this.#create(gateway, name, elements));
  }

  rename(gateway: Gateway, id: string, name: string): Promise<DynamicRoute> {
    return this.#changes.run(() => this.#rename(gateway, id, name));
  }

  /** Makes a version the current one. */
  deploy(gateway: Gateway, id: string, versionId: string): Promise<DynamicRoute> {
    return this.#changes.run(() => this.#deploy(gateway, id, versionId));
  }

  delete(gateway: Gateway, id: string): Promise<DynamicRoute> {
    return this.#changes.run(() => this.#delete(gateway, id));
  }

  async #create(gateway: Gateway, name: string, elements: readonly unknown[]): Promise<DynamicRoute> {
    checkName(name);
    this.#compile(gateway.accountId, elements);
    const now = this.#parts.clock.now();
    const version: RouteVersion = { id: newId(now), elements, createdAt: now };
    const deployment: RouteDeployment = { id: newId(now), versionId: version.id, createdAt: now };
    const route: DynamicRoute = {
      id: newId(now),
      accountId: gateway.accountId,
      gatewayId: gateway.id,
      name,
      deployment,
      version,
      createdAt: now,
      modifiedAt: now,
    };
    await this.#parts.settings.write("route", async (tx, changed) => {
      const count = await tx.get<{ n: number }>(
        sql`SELECT COUNT(*) AS n FROM gateway_route WHERE account_id = ${route.accountId}`,
      );
      if (Number(count?.n) >= MAX_ROUTES_OF_ACCOUNT)
        throw invalidRequest(`An account has at most ${MAX_ROUTES_OF_ACCOUNT} dynamic routes`);
      const { changes } = await tx.run(
        sql`INSERT INTO gateway_route (id, account_id, gateway_id, name, version_id, deployment_id, created_at, modified_at)
            VALUES (${route.id}, ${route.accountId}, ${route.gatewayId}, ${name}, ${version.id}, ${deployment.id}, ${now}, ${now})
            ON CONFLICT (account_id, gateway_id, name) DO NOTHING`,
      );
      if (changes === 0) throw taken(name);
      await insertVersion(tx, route.id, version);
      await insertDeployment(tx, route.id, deployment);
      changed(route.id);
    });
    return route;
  }

  async #rename(gateway: Gateway, id: string, name: string): Promise<DynamicRoute> {
    checkName(name);
    this.get(gateway, id);
    const now = this.#parts.clock.now();
    await this.#parts.settings.write("route", async (tx, changed) => {
      const [other] = await tx.all<{ id: string }>(
        sql`SELECT id FROM gateway_route WHERE account_id = ${gateway.accountId} AND gateway_id = ${gateway.id}
            AND name = ${name} AND id <> ${id}`,
      );
      if (other !== undefined) throw taken(name);
      await tx.run(sql`UPDATE gateway_route SET name = ${name}, modified_at = ${now} WHERE id = ${id}`);
      changed(id);
    });
    return this.get(gateway, id);
  }

  /** Saves a graph that serves no call until it is deployed. */
  async createVersion(gateway: Gateway, id: string, elements: readonly unknown[]): Promise<RouteVersion> {
    const route = this.get(gateway, id);
    this.#compile(gateway.accountId, elements);
    const now = this.#parts.clock.now();
    const version: RouteVersion = { id: newId(now), elements, createdAt: now };
    await this.#parts.settings.write("route", async (tx) => {
      // Another node may have deleted it.
      const stored = await tx.get<{ version_id: string }>(
        sql`SELECT version_id FROM gateway_route WHERE id = ${id}`,
      );
      if (stored === undefined) throw routeMissing();
      await insertVersion(tx, route.id, version);
      await tx.run(
        sql`DELETE FROM gateway_route_version WHERE route_id = ${id} AND id NOT IN (${version.id}, ${stored.version_id})
            AND id NOT IN (SELECT id FROM gateway_route_version WHERE route_id = ${id}
              ORDER BY created_at DESC, id DESC LIMIT ${MAX_VERSIONS})`,
      );
    });
    return version;
  }

  async #deploy(gateway: Gateway, id: string, versionId: string): Promise<DynamicRoute> {
    const version = await this.getVersion(gateway, id, versionId);
    // The providers may have changed since the version was saved.
    this.#compile(gateway.accountId, version.elements);
    const now = this.#parts.clock.now();
    const deployment: RouteDeployment = { id: newId(now), versionId, createdAt: now };
    await this.#parts.settings.write("route", async (tx, changed) => {
      const { changes } = await tx.run(
        sql`UPDATE gateway_route SET version_id = ${versionId}, deployment_id = ${deployment.id}, modified_at = ${now}
            WHERE id = ${id} AND EXISTS (SELECT 1 FROM gateway_route_version WHERE id = ${versionId} AND route_id = ${id})`,
      );
      // Meanwhile another node has deleted the route, or so many versions were saved that this one was deleted.
      if (changes === 0) throw routeMissing();
      await insertDeployment(tx, id, deployment);
      await tx.run(
        sql`DELETE FROM gateway_route_deployment WHERE route_id = ${id} AND id <> ${deployment.id}
            AND id NOT IN (SELECT id FROM gateway_route_deployment WHERE route_id = ${id}
              ORDER BY created_at DESC, id DESC LIMIT ${MAX_DEPLOYMENTS})`,
      );
      changed(id);
    });
    return this.get(gateway, id);
  }

  async #delete(gateway: Gateway, id: string): Promise<DynamicRoute> {
    const route = await findToDelete(this.#parts.settings, () => this.get(gateway, id));
    await this.#parts.settings.write("route", async (tx, changed) => {
      await tx.run(sql`DELETE FROM gateway_route WHERE id = ${id}`);
      changed(id);
    });
    return route;
  }

  async getVersion(gateway: Gateway, id: string, versionId: string): Promise<RouteVersion> {
    const route = this.get(gateway, id);
    if (route.version.id === versionId) return route.version;
    const [row] = await this.#parts.database.all<VersionRow>(
      sql`SELECT * FROM gateway_route_version WHERE route_id = ${id} AND id = ${versionId}`,
    );
    if (row === undefined) throw new SignalboxError("not_found", { message: "Version not found" });
    return toVersion(row);
  }

  /** Newest first. */
  async listVersions(gateway: Gateway, id: string): Promise<RouteVersion[]> {
    this.get(gateway, id);
    const rows = await this.#parts.database.all<VersionRow>(
      sql`SELECT * FROM gateway_route_version WHERE route_id = ${id} ORDER BY created_at DESC, id DESC`,
    );
    return rows.map(toVersion);
  }

  /** Newest first. */
  async listDeployments(gateway: Gateway, id: string): Promise<RouteDeployment[]> {
    this.get(gateway, id);
    const rows = await this.#parts.database.all<{ id: string; version_id: string; created_at: number }>(
      sql`SELECT * FROM gateway_route_deployment WHERE route_id = ${id} ORDER BY created_at DESC, id DESC`,
    );
    return rows.map((row) => ({ id: row.id, versionId: row.version_id, createdAt: row.created_at }));
  }

  /** The gateway was deleted; the database deleted the rows. */
  forget(gateway: Gateway): void {
    for (const { accountId, gatewayId, name } of this.list(gateway)) {
      this.#byName.delete(keyOf(accountId, gatewayId, name));
    }
  }

  /** A graph that is checked for an account but not stored; for `try`. */
  compile(accountId: string, elements: readonly unknown[]): RouteGraph {
    return this.#compile(accountId, elements);
  }

  #compile(accountId: string, elements: readonly unknown[]): RouteGraph {
    return parseGraph(elements, (slug) => this.#parts.providers.find(accountId, slug) !== undefined);
  }

  #put(route: DynamicRoute): void {
    this.#byName.set(keyOf(route.accountId, route.gatewayId, route.name), route);
  }
}

async function insertVersion(database: Queryable, routeId: string, version: RouteVersion): Promise<void> {
  await database.run(
    sql`INSERT INTO gateway_route_version (id, route_id, elements, created_at)
        VALUES (${version.id}, ${routeId}, ${JSON.stringify(version.elements)}, ${version.createdAt})`,
  );
}

async function insertDeployment(
  database: Queryable,
  routeId: string,
  { id, versionId, createdAt }: RouteDeployment,
): Promise<void> {
  await database.run(
    sql`INSERT INTO gateway_route_deployment (id, route_id, version_id, created_at)
        VALUES (${id}, ${routeId}, ${versionId}, ${createdAt})`,
  );
}

function newId(now: number): string {
  return ulid(now).toLowerCase();
}

function checkName(name: string): void {
  if (!NAME.test(name)) {
    throw new SignalboxError("invalid_request", {
      message: "name: 1 to 64 letters, digits, ., _ or -, beginning with a letter or digit",
    });
  }
}

function routeMissing(): SignalboxError {
  return new SignalboxError("not_found", { message: "Route not found" });
}

function taken(name: string): SignalboxError {
  return new SignalboxError("conflict", { message: `a route named ${name} already exists` });
}

function keyOf(accountId: string, gatewayId: string, name: string): string {
  return `${accountId}/${gatewayId}/${name}`;
}

interface VersionRow {
  readonly id: string;
  readonly elements: string;
  readonly created_at: number;
}

function toVersion(row: VersionRow): RouteVersion {
  return { id: row.id, elements: JSON.parse(row.elements) as unknown[], createdAt: row.created_at };
}

interface RouteRow {
  readonly id: string;
  readonly account_id: string;
  readonly gateway_id: string;
  readonly name: string;
  readonly version_id: string;
  readonly deployment_id: string;
  readonly created_at: number;
  readonly modified_at: number;
  readonly elements: string;
  readonly version_created_at: number;
  readonly deployed_at: number;
}

function fromRow(row: RouteRow): DynamicRoute {
  return {
    id: row.id,
    accountId: row.account_id,
    gatewayId: row.gateway_id,
    name: row.name,
    version: toVersion({ id: row.version_id, elements: row.elements, created_at: row.version_created_at }),
    deployment: { id: row.deployment_id, versionId: row.version_id, createdAt: row.deployed_at },
    createdAt: row.created_at,
    modifiedAt: row.modified_at,
  };
}
