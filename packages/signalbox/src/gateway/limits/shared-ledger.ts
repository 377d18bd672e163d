/**
 * The ledger of nodes that share a PostgreSQL database: every amount is in the database before a call uses it, so nothing is lost with a node or
 * its disk. Circuits and the response cache stay with each node; only limits are shared.
 *
 * Invariants:
 * 1. There is one `SharedBucket` for each row.
 * 2. Amounts of a deleted owner never count for a later owner of the same name.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import { repeat, type Repetition } from "../../core/repeat.ts";
import { SharedClock } from "../../core/shared-clock.ts";
import type { Database } from "../../database/database.ts";
import type { SharedNeed } from "./claim.ts";
import { type Charge, Grant, type Need } from "./grant.ts";
import { importAmounts } from "./import-amounts.ts";
import type { Ledger, Taken, VisitBucket } from "./ledger.ts";
import { Refusal } from "./limit-refusal.ts";
import type { LimitOwner, LimitRule } from "./limit-rule.ts";
import { OwnerBuckets } from "./owner-buckets.ts";
import { RuleBuckets } from "./rule-buckets.ts";
import { ShareExchange } from "./share-exchange.ts";
import { ShareTable } from "./share-table.ts";
import { SharedBucket } from "./shared-bucket.ts";

export interface SharedLedgerParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly incarnation: () => string;
  /** The folder in which versions before this one kept a journal; its amounts are moved to the database. */
  readonly earlierJournal: string;
  readonly onError: (error: unknown) => void;
  /** A soft budget was exceeded; called once for each window, at one of the nodes. */
  readonly onSoftBudget: (rule: LimitRule, used: number) => void;
}

/** How often dead nodes are looked for. */
const LOOK_MS = 1000;
/** How often ended rows are removed, and amounts of dead nodes are looked for although no node has died. */
const CLEAN_MS = 60_000;
const WOULD_WAIT = Refusal.unchecked(new SignalboxError("storage_unavailable"));

export class SharedLedger implements Ledger {
  readonly #parts: SharedLedgerParts;
  /** By row. */
  readonly #rows = new Map<string, SharedBucket>();
  readonly #buckets = new OwnerBuckets(
    // The row of a rule with a new window is converted by the node that uses it first.
    (rule) =>
      new RuleBuckets(
        rule,
        [],
        (name) => this.#open(rule, name),
        () => this.now(),
      ),
  );
  readonly #table: ShareTable;
  readonly #clock: SharedClock;
  readonly #shares: ShareExchange;
  #membership = "";
  #cleanedAt = Number.NEGATIVE_INFINITY;
  #looking: Repetition | null = null;

  constructor(parts: SharedLedgerParts) {
    const { database, clock, incarnation, onError } = parts;
    this.#parts = parts;
    this.#table = new ShareTable(database);
    this.#clock = new SharedClock(clock);
    this.#shares = new ShareExchange({
      table: this.#table,
      clock: this.#clock,
      incarnation,
      onError,
      onRejoined: () => this.#dropBuckets(),
    });
  }

  take(needs: readonly Need[]): Taken | Promise<Taken> {
    assertShared(needs);
    const decided = this.#shares.take(needs);
    return decided === null
      ? new Grant(this, needs)
      : decided.then((refusal) => refusal ?? new Grant(this, needs));
  }

  /** Nothing is written here: PostgreSQL has the shares. */
  whenWritten(task: () => void): void {
    setImmediate(task);
  }

  takeNow(needs: readonly Need[]): Taken {
    assertShared(needs);
    return this.#shares.tryTake(needs) ? new Grant(this, needs) : WOULD_WAIT;
  }

  end({ needs }: Grant, charges: readonly Charge[]): void {
    for (const need of needs) if (need.rule.kind !== "requests") need.bucket.release(need);
    this.charge(charges);
  }

  charge(charges: readonly Charge[]): void {
    const now = this.#clock.now();
    for (const { rule, bucket, amount } of charges) {
      if (rule.isSoft && bucket instanceof SharedBucket)
        bucket.watch(rule.limit, (used) => this.#parts.onSoftBudget(rule, used));
      bucket.add(bucket.window.slotOf(now), amount);
    }
  }

  bucketsOf(rule: LimitRule): RuleBuckets {
    return this.#buckets.of(rule);
  }

  /** All amounts outlive the process. */
  now(): number {
    return this.#clock.now();
  }

  async start(): Promise<void> {
    const { database, earlierJournal, clock } = this.#parts;
    await importAmounts(database, earlierJournal, clock.now());
    await this.#look();
    this.#looking = repeat(LOOK_MS, () => this.#look(), this.#parts.onError);
  }

  async stop(): Promise<void> {
    await this.#looking?.stop();
    await this.#shares.stop();
  }

  #open({ window, owner, kind }: Pick<LimitRule, "window" | "owner" | "kind">, name: string): SharedBucket {
    const key = `${owner.accountId}\n${owner.key}\n${kind} ${name}`;
    let bucket = this.#rows.get(key);
    if (bucket === undefined) {
      bucket = new SharedBucket(window, owner, name, kind, (changed) => this.#onChanged(changed));
      this.#rows.set(key, bucket);
    } else bucket.configure(window);
    return bucket;
  }

  async refresh(owners: readonly LimitOwner[], visit: VisitBucket): Promise<void> {
    const [first] = owners;
    if (first === undefined) return;
    const now = this.#clock.now();
    const keys = owners.map(({ key }) => key);
    for (const row of await this.#table.ofOwners(first.accountId, keys)) {
      const space = row.bucket.indexOf(" ");
      const bucket = visit(row.owner, row.bucket.slice(0, space), row.bucket.slice(space + 1));
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

  forget(owner: LimitOwner): void {
    this.#buckets.forget(owner);
    for (const [key, bucket] of this.#rows) if (bucket.isForgotten) this.#rows.delete(key);
    // The rows have no effect; they are removed when their windows end.
    this.#table.forget(owner.accountId, owner.key).catch(this.#parts.onError);
  }

  async idleOwners(): Promise<readonly LimitOwner[]> {
    return (await this.#table.owners()).map((row) => ({ accountId: row.account_id, key: row.owner }));
  }

  #onChanged(bucket: SharedBucket): void {
    if (bucket.isForgotten) return;
    if (!bucket.isDropped) return this.#shares.changed(bucket);
    // A call that began under an earlier identity of this node: what it has used counts, what it held was counted when the node was declared dead.
    const amount = bucket.charged;
    bucket.charged = 0;
    if (amount === 0) return;
    const successor = this.#open(bucket, bucket.name);
    successor.add(successor.window.slotOf(this.#clock.now()), amount);
  }

  #dropBuckets(): void {
    const dropped = [...this.#rows.values()];
    this.#rows.clear();
    for (const bucket of dropped) {
      bucket.drop();
      this.#onChanged(bucket);
    }
  }

  async #look(): Promise<void> {
    const now = this.#clock.now();
    const membership = await this.#table.membership();
    const isCleaning = Math.abs(now - this.#cleanedAt) >= CLEAN_MS;
    if (membership !== this.#membership || isCleaning) await this.#table.settleDead();
    this.#membership = membership;
    if (!isCleaning) return;
    await this.#table.removeEnded();
    this.#cleanedAt = now;
    for (const [key, bucket] of this.#rows) {
      if (!bucket.isEmpty(now)) continue;
      this.#rows.delete(key);
      bucket.drop();
    }
  }
}

/** The buckets of this ledger are its own. */
function assertShared(needs: readonly Need[]): asserts needs is readonly SharedNeed[] {
  for (const { bucket } of needs)
    if (!(bucket instanceof SharedBucket)) throw new Error(`the bucket ${bucket.name} is of another ledger`);
}
