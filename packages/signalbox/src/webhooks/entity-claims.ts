/**
 * The instance name of an entity. Providers' names for entities map to several instance names (`entity-names.ts`); a claim decides which one an
 * entity has, so that two entities of an account never share an instance.
 *
 * An entity tries plain (unless its source wants reversible names), reversible and reserved, and gets the first name that it owns or that has no owner;
 * else its own name, which needs no owner. The first entity to claim a name owns it permanently.
 *
 * Invariants:
 * 1. Two exact texts never have the same name, nor do two texts that differ when folded, in whatever order they arrive: each name has one owner,
 *    or determines its text.
 * 2. A folded entity has the first name that one of its spellings owns: `/webhooks/Zed` and an exact `Zed` of a body reach the same instance.
 * 3. An entity always gets the same name, also after a restart: owners are rows that are written before the delivery continues. A row gets the exact
 *    spelling of its owner once, when the first arrives, and does not change otherwise. (A source whose form changes names its entities anew.)
 * 4. A row without a spelling is owned by a folded text. It goes to the first exact text that arrives, so that no instance is
 *    orphaned.
 * 5. Only verified deliveries make claims, so a sender without a secret cannot create a row.
 * 6. When a claim cannot be written, the delivery is refused as `overloaded`, and its sender tries again.
 * 7. A folded entity whose name only its own text can have costs nothing. Known owners cost a look-up in memory, and new claims of one turn of the
 *    event loop share one transaction of one statement.
 *
 * A name is certain before its row is durable. `onName` reports it then, so that the instance can be prepared during the commit; nothing may
 * be stored under the name before the claim has resolved.
 * See docs/decisions/0083.
 */
import { growingCache } from "../core/growing-cache.ts";
import { overloaded } from "../core/overload.ts";
import { RowsStatement } from "../core/rows-statement.ts";
import { sql } from "../core/sql.ts";
import { WriteTogether } from "../core/write-together.ts";
import type { Database, Queryable } from "../database/database.ts";
import { canBeShared, type Entity, type EntityForm, fold, namesOf, toInstanceName } from "./entity-names.ts";

/** About 10 MB of names; a miss costs one indexed read. */
const MAX_KNOWN = 50_000;
/** No other area writes `webhook_claim`, so claims need not wait for the writes of other areas. */
const SCOPE = { scope: "webhook_claim", isConcurrent: true };

const INSERT_CLAIMS = new RowsStatement(
  "INSERT INTO webhook_claim (account_id, agent, name, entity, spelling) VALUES ",
  5,
  " ON CONFLICT (account_id, agent, name) DO NOTHING",
);
const SELECT_OWNERS = new RowsStatement(
  "SELECT account_id, agent, name, entity, spelling FROM webhook_claim WHERE (account_id, agent, name) IN (VALUES ",
  3,
  ")",
);

/** The account and agent whose instances are named. */
export interface ClaimScope {
  readonly account: string;
  /** Kebab-case name of the agent class. */
  readonly agent: string;
}

interface NameClaim {
  readonly scope: ClaimScope;
  readonly entity: Entity;
  /** Names that the entity tries, in order. The last is its own name. */
  readonly names: readonly string[];
  /** Index of the first name to try; the names before it have other owners. */
  at: number;
  readonly onName: (name: string) => void;
}

/** Of a name. */
interface Owner {
  /** The folded text. */
  readonly folded: string;
  /** The exact text; null if no exact one has arrived. */
  readonly spelling: string | null;
}

export class EntityClaims {
  readonly #database: Database;
  readonly #owners = growingCache<Owner>(MAX_KNOWN);
  readonly #onFailure: (error: unknown) => void;
  readonly #claims = new WriteTogether((claims: readonly NameClaim[]) => this.#write(claims));

  /** `onFailure` receives the error when claims cannot be written; senders receive `overloaded`. */
  constructor(database: Database, onFailure: (error: unknown) => void) {
    this.#database = database;
    this.#onFailure = onFailure;
    database.onLoss?.(() => this.#owners.clear());
  }

  /** The instance name of an entity. Synchronous, and without a call of `onName`, when the owner is known. */
  resolve(
    scope: ClaimScope,
    entity: Entity,
    form: EntityForm,
    onName: (name: string) => void = () => undefined,
  ): string | Promise<string> {
    const first = toInstanceName(entity.text, form);
    if (first !== null && !entity.isExact && !canBeShared(first)) return first;
    if (first !== null && isOwnedBy(this.#owners.get(keyOf(scope, first)), entity)) return first;
    const names = namesOf(entity.text, form);
    const at = names.findIndex((name, i) => {
      const owner = this.#owners.get(keyOf(scope, name));
      return (
        i === names.length - 1 || owner === undefined || mayTake(owner, entity) || isOwnedBy(owner, entity)
      );
    });
    const name = names[at] ?? "";
    const isKnown = at === names.length - 1 || isOwnedBy(this.#owners.get(keyOf(scope, name)), entity);
    return isKnown ? name : this.#claim({ scope, entity, names, at, onName });
  }

  async #claim(claim: NameClaim): Promise<string> {
    const names = await this.#claims.add(claim);
    return names.get(claim) ?? "";
  }

  async #write(claims: readonly NameClaim[]): Promise<ReadonlyMap<NameClaim, string>> {
    let isReported = false;
    const report = (names: readonly string[]) => {
      if (!isReported) claims.forEach((claim, i) => reportName(claim, names[i] ?? ""));
      isReported = true;
    };
    try {
      const { names, owners } = await this.#database.transaction(async (tx) => {
        const settled = await settle(tx, claims);
        // Outside of the transaction, which blocks other writes: instances are prepared during the commit and its sync.
        setImmediate(() => report(settled.names));
        return settled;
      }, SCOPE);
      for (const [key, owner] of owners) this.#owners.set(key, owner);
      // The commit may have ended before the immediate ran.
      report(names);
      return new Map(claims.map((claim, i) => [claim, names[i] ?? ""]));
    } catch (error) {
      isReported = true;
      this.#onFailure(error);
      throw overloaded();
    }
  }
}

function isOwnedBy(owner: Owner | undefined, { text, isExact }: Entity): boolean {
  return owner !== undefined && (isExact ? owner.spelling === text : owner.folded === text);
}

/** True for a name that one spelling of the text owns, and no exact one yet. */
function mayTake({ folded, spelling }: Owner, { text, isExact }: Entity): boolean {
  return isExact && spelling === null && folded === fold(text);
}

/** The name that each claim gets, and the owners of all names tried. */
async function settle(
  tx: Queryable,
  claims: readonly NameClaim[],
): Promise<{ names: string[]; owners: Map<string, Owner> }> {
  const owners = new Map<string, Owner>();
  const tries = claims.map((claim) => ({ ...claim, name: claim.names[claim.at] ?? "" }));
  let undecided = tries;
  while (undecided.length > 0) {
    for (const [key, owner] of await claimNames(tx, undecided)) owners.set(key, owner);
    undecided = undecided.filter(
      ({ scope, name, entity }) => !isOwnedBy(owners.get(keyOf(scope, name)), entity),
    );
    for (const one of undecided) {
      one.at += 1;
      one.name = one.names[one.at] ?? "";
    }
    undecided = undecided.filter(({ at, names }) => at < names.length - 1);
  }
  return { names: tries.map(({ name }) => name), owners };
}

interface Try extends NameClaim {
  name: string;
}

/** Claims the current name of each where it has no owner; returns the owners. */
async function claimNames(tx: Queryable, tries: readonly Try[]): Promise<Map<string, Owner>> {
  // The first of several claims to one name is written. Copies of a delivery make the same claim.
  const firsts = new Map<string, Try>();
  for (const one of tries) {
    const key = keyOf(one.scope, one.name);
    if (!firsts.has(key)) firsts.set(key, one);
  }
  // All nodes claim names in the same order, so that no two wait for each other.
  const rows = [...firsts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { scope, name, entity }]) => [scope.account, scope.agent, name, ...toColumns(entity)]);
  const written = await INSERT_CLAIMS.run(tx, rows.flat());
  const keys = rows.flatMap((row) => row.slice(0, 3));
  const owners =
    written === rows.length
      ? new Map([...firsts].map(([key, { entity }]) => [key, toOwner(entity)]))
      : await readOwners(tx, keys);
  const takers = tries
    .filter(({ scope, name, entity }) => {
      const owner = owners.get(keyOf(scope, name));
      return owner !== undefined && mayTake(owner, entity);
    })
    .sort((a, b) => (keyOf(a.scope, a.name) < keyOf(b.scope, b.name) ? -1 : 1));
  if (takers.length === 0) return owners;
  for (const { scope, name, entity } of takers) {
    // Only the first of several takers changes the row, at whatever node it arrived.
    await tx.run(
      sql`UPDATE webhook_claim SET spelling = ${entity.text}
          WHERE account_id = ${scope.account} AND agent = ${scope.agent} AND name = ${name} AND spelling IS NULL`,
    );
  }
  return readOwners(tx, keys);
}

async function readOwners(tx: Queryable, keys: readonly (string | null)[]): Promise<Map<string, Owner>> {
  const owners = new Map<string, Owner>();
  for (const query of SELECT_OWNERS.queries(keys)) {
    for (const row of await tx.all<OwnerRow>(query)) {
      const key = keyOf({ account: row.account_id, agent: row.agent }, row.name);
      owners.set(key, { folded: row.entity, spelling: row.spelling });
    }
  }
  return owners;
}

function toOwner({ text, isExact }: Entity): Owner {
  return { folded: isExact ? fold(text) : text, spelling: isExact ? text : null };
}

/** `entity` and `spelling`. */
function toColumns(entity: Entity): [string, string | null] {
  const { folded, spelling } = toOwner(entity);
  return [folded, spelling];
}

interface OwnerRow {
  readonly account_id: string;
  readonly agent: string;
  readonly name: string;
  /** The folded text. */
  readonly entity: string;
  readonly spelling: string | null;
}

function reportName({ onName }: NameClaim, name: string): void {
  try {
    onName(name);
  } catch {
    // An instance that cannot be prepared fails again, visibly, when the delivery reaches it.
  }
}

function keyOf({ account, agent }: ClaimScope, name: string): string {
  return `${account}\0${agent}\0${name}`;
}
