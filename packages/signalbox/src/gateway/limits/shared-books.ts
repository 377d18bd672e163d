/**
 * The books of nodes that share a PostgreSQL database: every amount is in the database before a call uses it, so nothing is lost with a node or
 * its disk. Circuits and the response cache stay with each node; only limits are shared.
 *
 * Invariants:
 * 1. There is one `SharedBucket` for each row.
 * 2. Amounts of a deleted owner never count for a later owner of the same name.
 */
import type { Clock } from "../../core/clock.ts";
import { repeat, type Repetition } from "../../core/repeat.ts";
import type { Database } from "../../database/database.ts";
import type { Books } from "./books.ts";
import { importAmounts } from "./import-amounts.ts";
import type { LimitOwner, LimitRule } from "./limit-rule.ts";
import type { NamedBucket } from "./rule-buckets.ts";
import { ShareExchange } from "./share-exchange.ts";
import { ShareTable } from "./share-table.ts";
import { SharedBucket } from "./shared-bucket.ts";
import { SharedClock } from "../../core/shared-clock.ts";

export interface SharedBooksParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly incarnation: () => string;
  /** The folder in which versions before this one kept a journal; its amounts are moved to the database. */
  readonly earlierJournal: string;
  readonly onError: (error: unknown) => void;
}

/** How often dead nodes are looked for. */
const LOOK_MS = 1000;
/** How often ended rows are removed, and amounts of dead nodes are looked for although no node has died. */
const CLEAN_MS = 60_000;

export class SharedBooks implements Books {
  readonly #parts: SharedBooksParts;
  readonly #buckets = new Map<string, SharedBucket>();
  readonly #table: ShareTable;
  readonly clock: SharedClock;
  readonly shares: ShareExchange;
  #membership = "";
  #cleanedAt = Number.NEGATIVE_INFINITY;
  #looking: Repetition | null = null;

  constructor(parts: SharedBooksParts) {
    const { database, clock, incarnation, onError } = parts;
    this.#parts = parts;
    this.#table = new ShareTable(database);
    this.clock = new SharedClock(clock);
    this.shares = new ShareExchange({
      table: this.#table,
      clock: this.clock,
      incarnation,
      onError,
      onRejoined: () => this.#dropBuckets(),
    });
  }

  async start(): Promise<void> {
    const { database, earlierJournal, clock } = this.#parts;
    await importAmounts(database, earlierJournal, clock.now());
    await this.#look();
    this.#looking = repeat(LOOK_MS, () => this.#look(), this.#parts.onError);
  }

  async stop(): Promise<void> {
    await this.#looking?.stop();
    await this.shares.stop();
  }

  /** Rows are read when they are used. */
  storedNames(): string[] {
    return [];
  }

  open({ window, owner, kind }: Pick<LimitRule, "window" | "owner" | "kind">, name: string): SharedBucket {
    const key = `${owner.accountId}\n${owner.key}\n${kind} ${name}`;
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      bucket = new SharedBucket(window, owner, name, kind, (changed) => this.#onChanged(changed));
      this.#buckets.set(key, bucket);
    } else bucket.configure(window);
    return bucket;
  }

  /** The exchange reports what calls hold and use. */
  reserved(): number {
    return 0;
  }

  settled(): void {
    // See `reserved`.
  }

  moved(): void {
    // Rows are converted by the node that uses the new window first.
  }

  /** Reads the rows of an owner; `visit` gets the kind and the name of each bucket, and returns the bucket. */
  async refresh(owner: LimitOwner, visit: (kind: string, name: string) => NamedBucket | null): Promise<void> {
    const now = this.clock.now();
    for (const row of await this.#table.ofOwner(owner.accountId, owner.key)) {
      const space = row.bucket.indexOf(" ");
      const bucket = visit(row.bucket.slice(0, space), row.bucket.slice(space + 1));
      if (!(bucket instanceof SharedBucket)) continue;
      bucket.update(
        {
          used: row.used,
          heldByOthers: row.held - bucket.reportedHeld,
          spareOfOthers: row.spare,
          isTight: bucket.isTight,
        },
        now,
      );
    }
  }

  /** The owner was deleted. Its buckets must be marked as forgotten before. */
  forget(accountId: string, owner: string): void {
    for (const [key, bucket] of this.#buckets) if (bucket.isForgotten) this.#buckets.delete(key);
    // The rows can count for nobody; they are removed when their windows end.
    this.#table.forget(accountId, owner).catch(this.#parts.onError);
  }

  /** Owners that have amounts. */
  async idleOwners(): Promise<readonly { readonly accountId: string; readonly owner: string }[]> {
    return (await this.#table.owners()).map((row) => ({ accountId: row.account_id, owner: row.owner }));
  }

  #onChanged(bucket: SharedBucket): void {
    if (bucket.isForgotten) return;
    if (!bucket.isDropped) return this.shares.changed(bucket);
    // A call that began under an earlier identity of this node: what it has used counts, what it held was counted when the node was declared dead.
    const amount = bucket.charged;
    bucket.charged = 0;
    if (amount === 0) return;
    const successor = this.open(bucket, bucket.name);
    successor.add(successor.window.slotOf(this.clock.now()), amount);
  }

  #dropBuckets(): void {
    const dropped = [...this.#buckets.values()];
    this.#buckets.clear();
    for (const bucket of dropped) {
      bucket.drop();
      this.#onChanged(bucket);
    }
  }

  async #look(): Promise<void> {
    const now = this.clock.now();
    const membership = await this.#table.membership();
    const isCleaning = Math.abs(now - this.#cleanedAt) >= CLEAN_MS;
    if (membership !== this.#membership || isCleaning) await this.#table.settleDead();
    this.#membership = membership;
    if (!isCleaning) return;
    await this.#table.removeEnded();
    this.#cleanedAt = now;
    for (const [key, bucket] of this.#buckets) {
      if (!bucket.isEmpty(now)) continue;
      this.#buckets.delete(key);
      bucket.drop();
    }
  }
}
