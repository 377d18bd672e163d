/**
 * Keeps two entities of an account off one instance. Plain names are not one-to-one, so the first entity that arrives under an ambiguous name owns it
 * for good; another one with the same plain name gets its reversible name.
 *
 * Invariants:
 * 1. An entity always resolves to the same name, also after a restart and on every node: the owner is a row, written before the
 *    delivery goes on, and the first writer wins.
 * 2. Only verified deliveries get here, so nobody without a secret can make a row.
 * 3. Names that cannot be shared (no `-`) cost nothing; known ones cost a look into memory.
 *
 * A claim's name is certain before the row is on the disk. Whoever asked is told by `onName`, so that they can prepare meanwhile; nothing of the
 * entity's may be stored under the name before the claim has resolved.
 */
import { SignalboxError } from "@signalbox/protocol";
import { LRUCache } from "lru-cache";
import type { Database } from "../storage/ports/database.ts";
import { sql } from "../storage/ports/sql.ts";
import { isAmbiguous, normalise, toInstanceName } from "./instance-name.ts";

/** About 10 MB of names; a miss costs one indexed read. */
const MAX_KNOWN = 50_000;
/** Nothing else touches `webhook_entity`: a first delivery need not wait for what other areas write. */
const SCOPE = { scope: "webhook_entity" };

interface Claim {
  readonly account: string;
  readonly agent: string;
  readonly name: string;
  readonly entity: string;
  readonly onName: (name: string) => void;
  resolve(owner: string): void;
  reject(error: unknown): void;
}

export class EntityClaims {
  readonly #database: Database;
  readonly #owners = new LRUCache<string, string>({ max: MAX_KNOWN });
  #waiting: Claim[] = [];

  constructor(database: Database) {
    this.#database = database;
  }

  /** The instance name of an entity whose plain name is `name`; synchronous, and without `onName`, for everything seen before. */
  resolve(
    account: string,
    agent: string,
    name: string,
    entity: string,
    onName: (name: string) => void = () => undefined,
  ): string | Promise<string> {
    if (!isAmbiguous(name)) return name;
    const wanted = normalise(entity);
    const owner = this.#owners.get(keyOf(account, agent, name));
    if (owner !== undefined) return nameFor(name, wanted, owner);
    return this.#claim(account, agent, name, wanted, onName).then((first) => nameFor(name, wanted, first));
  }

  #claim(
    account: string,
    agent: string,
    name: string,
    entity: string,
    onName: (name: string) => void,
  ): Promise<string> {
    return new Promise((resolve, reject) => {
      // Claims that come while this turn of the event loop lasts share one transaction.
      if (this.#waiting.length === 0) setImmediate(() => void this.#write());
      this.#waiting.push({ account, agent, name, entity, onName, resolve, reject });
    });
  }

  async #write(): Promise<void> {
    const claims = this.#waiting;
    this.#waiting = [];
    let isTold = false;
    const tell = (owners: readonly string[]) => {
      if (!isTold) claims.forEach((claim, i) => tellName(claim, owners[i] ?? claim.entity));
      isTold = true;
    };
    try {
      const owners = await this.#database.transaction(async (tx) => {
        const found: string[] = [];
        for (const { account, agent, name, entity } of claims) {
          const { changes } = await tx.run(
            sql`INSERT INTO webhook_entity (account_id, agent, name, entity) VALUES (${account}, ${agent}, ${name}, ${entity})
                ON CONFLICT (account_id, agent, name) DO NOTHING`,
          );
          const row =
            changes === 1
              ? { entity }
              : await tx.get<{ entity: string }>(
                  sql`SELECT entity FROM webhook_entity
                      WHERE account_id = ${account} AND agent = ${agent} AND name = ${name}`,
                );
          found.push(row?.entity ?? entity);
        }
        // Not in here, where no other write can happen: they prepare while this one is committed and synced.
        setImmediate(() => tell(found));
        return found;
      }, SCOPE);
      // A quick disk may have been quicker.
      tell(owners);
      claims.forEach(({ account, agent, name, entity, resolve }, i) => {
        const owner = owners[i] ?? entity;
        this.#owners.set(keyOf(account, agent, name), owner);
        resolve(owner);
      });
    } catch (error) {
      isTold = true;
      for (const claim of claims) claim.reject(error);
    }
  }
}

function tellName({ name, entity, onName }: Claim, owner: string): void {
  try {
    onName(nameFor(name, entity, owner));
  } catch {
    // A name that cannot be had is told when the claim resolves.
  }
}

/** The plain name for its owner (and for whoever writes the plain name itself), the reversible one for everybody else. */
function nameFor(plain: string, entity: string, owner: string): string {
  if (entity === owner || entity === plain) return plain;
  const reversible = toInstanceName(entity, "reversible");
  if (reversible === null)
    throw new SignalboxError("webhook_missing_entity", { message: "The entity's name is too long" });
  return reversible;
}

function keyOf(account: string, agent: string, name: string): string {
  return `${account}\0${agent}\0${name}`;
}
