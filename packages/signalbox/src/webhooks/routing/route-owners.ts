/**
 * Which node of a cluster makes the attempts of a route. One node at a time: rates, concurrency and order are then decided in its memory.
 *
 * Invariants:
 * 1. A route belongs to the node that its row names. Claims of events are refused for every other node, in the same statement.
 * 2. A node keeps its routes until it stops, dies, or cannot renew them for `LEASE_MS`. Of the living nodes the one with the highest hash takes a
 *    route without an owner, so that routes are spread and nodes do not compete.
 */
import { hash } from "node:crypto";
import type { NodeNetwork } from "../../contracts/node-network.ts";
import type { Clock } from "../../core/clock.ts";
import { sql } from "../../core/sql.ts";
import type { Database } from "../../database/database.ts";
import { type Route, type RouteId, routeKey } from "./route.ts";

const LEASE_MS = 10_000;

export interface OwnerParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly nodes: Pick<NodeNetwork, "self" | "members">;
}

interface OwnerRow {
  readonly account_id: string;
  readonly source: string;
  readonly name: string;
  readonly node: number | null;
  readonly node_until: number | null;
}

const SCOPE = { scope: "webhook_route_state", isConcurrent: true };

export class RouteOwners {
  readonly #parts: OwnerParts;
  /** As of the last look. */
  #owners: ReadonlyMap<string, string> = new Map();

  constructor(parts: OwnerParts) {
    this.#parts = parts;
  }

  ownerOf(key: string): string | undefined {
    return this.#owners.get(key);
  }

  /** Renews this node's routes and takes those that it should have; returns the keys of all that it owns. */
  async look(routes: Iterable<Route>): Promise<ReadonlySet<string>> {
    const { database, clock, nodes } = this.#parts;
    const now = clock.now();
    await database.transaction(
      (tx) =>
        tx.run(
          sql`UPDATE webhook_route_state SET node_until = ${now + LEASE_MS} WHERE node = ${BigInt(nodes.self)}`,
        ),
      SCOPE,
    );
    const rows = await database.all<OwnerRow>(
      sql`SELECT account_id, source, name, node, node_until FROM webhook_route_state`,
    );
    const byKey = new Map(
      rows.map((row) => [routeKey({ accountId: row.account_id, source: row.source, name: row.name }), row]),
    );
    const living = new Set(nodes.members.map(({ inc }) => inc));
    const owners = new Map<string, string>();
    const own = new Set<string>();
    for (const route of routes) {
      const row = byKey.get(route.key);
      const owner = row?.node == null ? null : String(row.node);
      const isOwned = owner !== null && living.has(owner) && (row?.node_until ?? 0) > now;
      const isMine = isOwned
        ? owner === nodes.self
        : this.#isFirst(route.key) && (await this.#take(route, row, now));
      if (isMine) own.add(route.key);
      if (isMine || isOwned) owners.set(route.key, isMine ? nodes.self : (owner ?? ""));
    }
    this.#owners = owners;
    return own;
  }

  /** The other nodes take the routes at once. */
  async release(): Promise<void> {
    const { database, nodes } = this.#parts;
    await database.transaction(
      (tx) =>
        tx.run(
          sql`UPDATE webhook_route_state SET node = NULL, node_until = NULL WHERE node = ${BigInt(nodes.self)}`,
        ),
      SCOPE,
    );
  }

  async #take(
    { accountId, source, name }: RouteId,
    row: OwnerRow | undefined,
    now: number,
  ): Promise<boolean> {
    const { database, nodes } = this.#parts;
    const self = BigInt(nodes.self);
    const until = now + LEASE_MS;
    const unchanged =
      row?.node == null
        ? sql`webhook_route_state.node IS NULL`
        : sql`webhook_route_state.node = ${BigInt(row.node)} AND webhook_route_state.node_until = ${row.node_until}`;
    const { changes } = await database.transaction(
      (tx) =>
        tx.run(
          sql`INSERT INTO webhook_route_state (account_id, source, name, node, node_until)
              VALUES (${accountId}, ${source}, ${name}, ${self}, ${until})
              ON CONFLICT (account_id, source, name)
              DO UPDATE SET node = excluded.node, node_until = excluded.node_until WHERE ${unchanged}`,
        ),
      SCOPE,
    );
    return changes === 1;
  }

  #isFirst(key: string): boolean {
    const { nodes } = this.#parts;
    const up = nodes.members.filter(({ state }) => state === "up");
    const scores = up.map(({ inc }) => ({ inc, score: hash("sha1", `${key}\0${inc}`) }));
    return scores.sort((a, b) => (a.score < b.score ? 1 : -1))[0]?.inc === nodes.self;
  }
}
