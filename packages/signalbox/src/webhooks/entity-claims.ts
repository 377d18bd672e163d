/**
 * The instance name of an entity. Providers' names for entities map to several instance names; a claim decides which one an entity has, so
 * that two entities of an account never share an instance.
 *
 * - `plain`: lower case; every character except letters, digits, `_`, `.` and `-` becomes `-`. `Acme/Widgets` is `acme-widgets`. Not
 *   one-to-one: `a/b`, `a b` and `a-b` are all `a-b`.
 * - `reversible`: lower case; every UTF-8 byte except `a-z`, `0-9`, `.` and `-` is written as `_` and two hexadecimal digits. `a/b-c` is
 *   `a_2fb-c`. No two entities have the same reversible name, but the reversible name of one entity (`d/x`: `d_2fx`) can be the plain name
 *   of another (`d_2fx`).
 * - reserved: `~` and the reversible name. No plain or reversible name contains `~`, so no other entity can have it.
 *
 * An entity tries plain (unless its source wants reversible names), reversible, reserved, and gets the first name that it owns or that has no
 * owner. The first entity to claim a name owns it permanently. The reserved name needs no owner.
 *
 * Invariants:
 * 1. Two entities (after `normalise`) never have the same name, in whatever order they arrive: a name that two entities can have has one
 *    owner, and any other name determines its entity.
 * 2. An entity always gets the same name, also after a restart: owners are rows that are written before the delivery continues and never
 *    change. (A source whose form changes names its entities anew.)
 * 3. Only verified deliveries make claims, so a sender without a secret cannot create a row.
 * 4. When a claim cannot be written, the delivery is refused as `overloaded`, and its sender tries again.
 * 5. Names that only one entity can have cost nothing, known owners cost a look-up in memory, and new claims of one turn of the event loop
 *    share one transaction of one statement.
 *
 * A name is certain before its row is durable. `onName` reports it then, so that the instance can be prepared during the commit; nothing may
 * be stored under the name before the claim has resolved.
 * See docs/decisions/0083.
 */
import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { overloaded } from "../core/overload.ts";
import { RowsStatement } from "../core/rows-statement.ts";
import type { Database, Queryable } from "../database/database.ts";

/** The form of name that a source prefers. */
export type EntityForm = "plain" | "reversible";

const MAX_CHARACTERS = 256;
const RESERVED = "~";
/** A missing value in a sender's string template becomes one of these texts. */
const FORGOTTEN: ReadonlySet<string> = new Set(["undefined", "null"]);

/** Plain names of recent entities. Bounded, because senders choose them. */
const plainNames = new Map<string, string | null>();
const MAX_PLAIN_NAMES = 4096;

/** Null for a name that cannot be used: empty, `.`, `..`, too long, with a zero character, or a missing value. */
export function toInstanceName(entity: string, form: EntityForm): string | null {
  if (form !== "plain" || entity.length > MAX_CHARACTERS) return makeInstanceName(entity, form);
  let name = plainNames.get(entity);
  if (name === undefined) {
    name = makeInstanceName(entity, form);
    if (plainNames.size >= MAX_PLAIN_NAMES) plainNames.clear();
    plainNames.set(entity, name);
  }
  return name;
}

function makeInstanceName(entity: string, form: EntityForm): string | null {
  const lower = normalise(entity);
  // PostgreSQL cannot store a zero character.
  if (lower.includes("\0")) return null;
  const name = form === "plain" ? toPlain(lower) : toReversible(lower);
  if (name === "" || name === "." || name === ".." || FORGOTTEN.has(name)) return null;
  return countAtMost(name, MAX_CHARACTERS) ? name : null;
}

/** The name that no other entity can have; a hash if it would be too long. */
export function toReservedName(entity: string): string {
  const lower = normalise(entity);
  const name = RESERVED + toReversible(lower);
  return name.length <= MAX_CHARACTERS ? name : `${RESERVED}${RESERVED}${hash("sha256", lower)}`;
}

/**
 * One spelling for entities that read the same: providers' names are case-insensitive, and composed and decomposed accents look alike. Lone
 * surrogates become the replacement character, as in UTF-8.
 */
export function normalise(entity: string): string {
  return entity.trim().toWellFormed().normalize("NFC").toLowerCase();
}

/** True when the text is the entity or one of its names. */
export function isNameOf(text: string, entity: string): boolean {
  const given = normalise(text);
  return (
    given === normalise(entity) ||
    given === toInstanceName(entity, "plain") ||
    given === toInstanceName(entity, "reversible") ||
    given === toReservedName(entity)
  );
}

/**
 * True when two entities can have this plain or reversible name: a `-` may stand for another character, and `_2f` may be an escape. Any other
 * name equals its entity.
 */
export function canBeShared(name: string): boolean {
  return name.includes("-") || isReversible(name);
}

const ESCAPES_ONLY = /^(?:[a-z0-9.-]|_[0-9a-f]{2})*$/;

/** True when the name is the reversible name of another entity. */
function isReversible(name: string): boolean {
  if (!name.includes("_") || !ESCAPES_ONLY.test(name)) return false;
  const entity = decodeReversible(name);
  return toReversible(entity) === name && normalise(entity) === entity;
}

export function decodeReversible(name: string): string {
  const bytes: number[] = [];
  for (let i = 0; i < name.length; i++) {
    if (name[i] === "_") {
      bytes.push(Number.parseInt(name.slice(i + 1, i + 3), 16));
      i += 2;
    } else {
      bytes.push(name.charCodeAt(i));
    }
  }
  return Buffer.from(bytes).toString();
}

const PLAIN_ASCII = /^[a-z0-9_.-]*$/;

function toPlain(lower: string): string {
  return PLAIN_ASCII.test(lower) ? lower : lower.replaceAll(/[^\p{L}\p{M}\p{N}_.-]/gu, "-");
}

function toReversible(lower: string): string {
  return lower.replaceAll(/[^a-z0-9.-]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `_${byte.toString(16).padStart(2, "0")}`).join(""),
  );
}

/** Counts code points, but not those of a text that is certainly too long. */
function countAtMost(text: string, max: number): boolean {
  return text.length <= max || (text.length <= max * 2 && Array.from(text).length <= max);
}

/** About 10 MB of names; a miss costs one indexed read. */
const MAX_KNOWN = 50_000;
/** No other area writes `webhook_claim`, so claims need not wait for the writes of other areas. */
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

/** The account and agent whose instances are named. */
export interface ClaimScope {
  readonly account: string;
  /** Kebab-case name of the agent class. */
  readonly agent: string;
}

interface Claim {
  readonly scope: ClaimScope;
  readonly entity: string;
  /** Names that the entity tries, in order. The last is the reserved name. */
  readonly names: readonly string[];
  /** Index of the first name to try; the names before it have other owners. */
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

  /** `onFailure` receives the error when claims cannot be written; senders receive `overloaded`. */
  constructor(database: Database, onFailure: (error: unknown) => void) {
    this.#database = database;
    this.#onFailure = onFailure;
    database.onLoss?.(() => this.#owners.clear());
  }

  /** The instance name of an entity. Synchronous, and without a call of `onName`, when the owner is known. */
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
      const isReserved = at === names.length - 1;
      const owner = isReserved ? wanted : this.#owners.get(keyOf(scope, name));
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
      // Claims of one turn of the event loop share one transaction.
      if (this.#waiting.length === 0) setImmediate(() => this.#write());
      this.#waiting.push({ scope, entity, names, at, onName, resolve, reject });
    });
  }

  #write(): void {
    const claims = this.#waiting;
    this.#waiting = [];
    let isReported = false;
    const report = (names: readonly string[]) => {
      if (!isReported) claims.forEach((claim, i) => reportName(claim, names[i] ?? ""));
      isReported = true;
    };
    this.#database
      .transaction(async (tx) => {
        const settled = await settle(tx, claims);
        // Outside of the transaction, which blocks other writes: instances are prepared during the commit and its sync.
        setImmediate(() => report(settled.names));
        return settled;
      }, SCOPE)
      .then(
        ({ names, owners }) => {
          for (const [key, owner] of owners) this.#owners.set(key, owner);
          // The commit may have ended before the immediate ran.
          report(names);
          claims.forEach((claim, i) => claim.resolve(names[i] ?? ""));
        },
        (error: unknown) => {
          isReported = true;
          this.#onFailure(error);
          for (const claim of claims) claim.reject(overloaded());
        },
      );
  }
}

/** The name that each claim gets, and the owners of all names tried. */
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

/** Claims the current name of each where it has no owner; returns the owners. */
async function claimNames(tx: Queryable, tries: readonly Try[]): Promise<Map<string, string>> {
  // The first of several claims to one name is written. Copies of a delivery make the same claim.
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

function reportName({ onName }: Claim, name: string): void {
  try {
    onName(name);
  } catch {
    // An instance that cannot be prepared fails again, visibly, when the delivery reaches it.
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
