/**
 * Keeps two entities of an account off one instance. Names are not one-to-one, so the first entity that comes to a name which another one
 * could come to as well owns it, for good.
 *
 * An entity tries its names in this order, and gets the first that it owns or that nobody owns:
 *   plain (unless its source wants reversible names) → reversible → reserved
 * The reserved name needs no owner: no other entity can come to it.
 *
 * Invariants:
 * 1. Two entities (after `normalise`) never have the same name, in whatever order they come: a name that can be shared has one owner, and
 *    any other name belongs to one entity by its letters.
 * 2. An entity always gets the same name, also after a restart: owners are rows, written before the delivery goes on, never changed, and
 *    the first writer wins. (A source that is changed to another form names its entities anew.)
 * 3. Only verified deliveries get here, so nobody without a secret can make a row.
 * 4. A claim that cannot be written is refused as `overloaded`, and the delivery with it: its sender tries again, and so does the claim.
 * 5. Names that cannot be shared cost nothing; known ones cost a look into memory; new ones share one transaction, of one statement, with
 *    all that come in the same turn of the event loop.
 *
 * A name is certain before its row is on the disk. Whoever asked is told by `onName`, so that they can prepare meanwhile; nothing of the
 * entity's may be stored under the name before the claim has resolved.
 */
import { LRUCache } from "lru-cache";
import type { Database, Queryable } from "../database/database.ts";
import { RowsStatement } from "../core/rows-statement.ts";
import { overloaded } from "./admission.ts";
import { canBeShared, type EntityForm, normalise, toInstanceName, toReservedName } from "./instance-name.ts";

/** About 10 MB of names; a miss costs one indexed read. */
const MAX_KNOWN = 50_000;
/** Nothing else touches `webhook_claim`: a first delivery need not wait for what other areas write. */
const SCOPE = { scope: "webhook_claim" };

const INSERT_CLAIMS = new RowsStatement(
  "INSERT INTO webhook_claim (account_id, agent, name, entity) VALUES ",
  4,
  " ON CONFLICT (account_id, agent, name) DO NOTHING",
);
const SELECT_OWNERS = new RowsStatement(
  "SELECT account_id, agent, name, entity FROM webhook_claim WHERE (account_id, agent, name) IN (VALUES ",
  3,
  ")",
);

/** Whose instances are meant. */
export interface ClaimScope {
  readonly account: string;
  /** Kebab-case name of the agent class. */
  readonly agent: string;
}

interface Claim {
  readonly scope: ClaimScope;
  readonly entity: string;
  /** Names that the entity tries, in order; all of them can be shared but the last, which it is sure to get. */
  readonly names: readonly string[];
  /** The one it begins with: owners of those before are known, and are others. */
  at: number;
  readonly onName: (name: string) => void;
  resolve(name: string): void;
  reject(error: unknown): void;
}

export class EntityClaims {
  readonly #database: Database;
  readonly #owners = new LRUCache<string, string>({ max: MAX_KNOWN });
  readonly #onFailure: (error: unknown) => void;
  #waiting: Claim[] = [];

  /** `onFailure` is told why claims could not be written; their senders are not. */
  constructor(database: Database, onFailure: (error: unknown) => void) {
    this.#database = database;
    this.#onFailure = onFailure;
  }

  /** The instance name of an entity that has a name of this form; synchronous, and without `onName`, for everything seen before. */
  resolve(
    scope: ClaimScope,
    entity: string,
    form: EntityForm,
    onName: (name: string) => void = () => undefined,
  ): string | Promise<string> {
    const first = toInstanceName(entity, form);
    if (first !== null && !canBeShared(first)) return first;
    const wanted = normalise(entity);
    if (first !== null && this.#owners.get(keyOf(scope, first)) === wanted) return first;
    const names = namesOf(wanted, form);
    for (const [at, name] of names.entries()) {
      const isSure = at === names.length - 1;
      const owner = isSure ? wanted : this.#owners.get(keyOf(scope, name));
      if (owner === wanted) return name;
      if (owner === undefined) return this.#claim(scope, wanted, names, at, onName);
    }
    throw new Error("an entity always has a name");
  }

  #claim(
    scope: ClaimScope,
    entity: string,
    names: readonly string[],
    at: number,
    onName: (name: string) => void,
  ): Promise<string> {
    return new Promise((resolve, reject) => {
      // Claims that come while this turn of the event loop lasts share one transaction.
      if (this.#waiting.length === 0) setImmediate(() => this.#write());
      this.#waiting.push({ scope, entity, names, at, onName, resolve, reject });
    });
  }

  #write(): void {
    const claims = this.#waiting;
    this.#waiting = [];
    let isTold = false;
    const tell = (names: readonly string[]) => {
      if (!isTold) claims.forEach((claim, i) => tellName(claim, names[i] ?? ""));
      isTold = true;
    };
    this.#database
      .transaction(async (tx) => {
        const settled = await settle(tx, claims);
        // Not in here, where no other write can happen: they prepare while this one is committed and synced.
        setImmediate(() => tell(settled.names));
        return settled;
      }, SCOPE)
      .then(
        ({ names, owners }) => {
          for (const [key, owner] of owners) this.#owners.set(key, owner);
          // A quick disk may have been quicker.
          tell(names);
          claims.forEach((claim, i) => claim.resolve(names[i] ?? ""));
        },
        (error: unknown) => {
          isTold = true;
          this.#onFailure(error);
          for (const claim of claims) claim.reject(overloaded());
        },
      );
  }
}

/** The name each claim gets, and the owners that were learnt on the way. */
async function settle(
  tx: Queryable,
  claims: readonly Claim[],
): Promise<{ names: string[]; owners: Map<string, string> }> {
  const owners = new Map<string, string>();
  const tries = claims.map((claim) => ({ ...claim, name: claim.names[claim.at] ?? "" }));
  let undecided = tries;
  while (undecided.length > 0) {
    for (const [key, owner] of await claimNames(tx, undecided)) owners.set(key, owner);
    undecided = undecided.filter(({ scope, name, entity }) => owners.get(keyOf(scope, name)) !== entity);
    for (const one of undecided) {
      one.at += 1;
      one.name = one.names[one.at] ?? "";
    }
    undecided = undecided.filter(({ at, names }) => at < names.length - 1);
  }
  return { names: tries.map(({ name }) => name), owners };
}

interface Try extends Claim {
  name: string;
}

/** Claims the names these are at, as far as they are free, and returns who owns them. */
async function claimNames(tx: Queryable, tries: readonly Try[]): Promise<Map<string, string>> {
  // Of two claims to one name the first is written; copies of a delivery claim the same.
  const firsts = new Map<string, Try>();
  for (const one of tries) {
    const key = keyOf(one.scope, one.name);
    if (!firsts.has(key)) firsts.set(key, one);
  }
  const rows = [...firsts.values()].map(({ scope, name, entity }) => [
    scope.account,
    scope.agent,
    name,
    entity,
  ]);
  const written = await INSERT_CLAIMS.run(tx, rows.flat());
  if (written === rows.length) return new Map([...firsts].map(([key, { entity }]) => [key, entity]));
  const owners = new Map<string, string>();
  for (const query of SELECT_OWNERS.queries(rows.flatMap((row) => row.slice(0, 3)))) {
    for (const row of await tx.all<OwnerRow>(query)) {
      owners.set(keyOf({ account: row.account_id, agent: row.agent }, row.name), row.entity);
    }
  }
  return owners;
}

interface OwnerRow {
  readonly account_id: string;
  readonly agent: string;
  readonly name: string;
  readonly entity: string;
}

function tellName({ onName }: Claim, name: string): void {
  try {
    onName(name);
  } catch {
    // An instance that cannot be had is told when the delivery asks for it.
  }
}

function namesOf(entity: string, form: EntityForm): string[] {
  const plain = form === "plain" ? toInstanceName(entity, "plain") : null;
  const reversible = toInstanceName(entity, "reversible");
  const shared = reversible === plain ? [plain] : [plain, reversible];
  return [...shared.filter((name) => name !== null), toReservedName(entity)];
}

function keyOf({ account, agent }: ClaimScope, name: string): string {
  return `${account}\0${agent}\0${name}`;
}
