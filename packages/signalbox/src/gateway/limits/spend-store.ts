/**
 * Stores amounts of money: what owners have spent, and what running calls may spend. The ledger decides, the store remembers: in a journal of the
 * data folder, and in rows of the database.
 *
 * Invariants:
 * 1. Settled amounts are written to the database every second and when the service stops; until then the journal has them, so `kill -9`
 *    loses none. Calls that were running then count with what they had reserved.
 * 2. Amounts that could not be written are kept for the next attempt.
 * 3. Amounts of a deleted owner never count for a later owner of the same name, including amounts of running calls and unwritten ones.
 */
import type { Clock } from "../../core/clock.ts";
import { sql } from "../../core/sql.ts";
import type { Database } from "../../database/database.ts";
import { type AmountRow, fromAmountRow } from "./amount-row.ts";
import type { LimitOwner } from "./limit-rule.ts";
import { ownerKey } from "./owner-buckets.ts";
import type { NamedBucket } from "./rule-buckets.ts";
import type { FoundAmount, JournalPosition, SlotAmount, SpendJournal } from "./spend-journal.ts";

export interface SpendStoreParts {
  readonly database: Database;
  readonly journal: SpendJournal;
  readonly clock: Clock;
  /** Called when amounts could not be written; the write is repeated. */
  readonly onError: (error: unknown) => void;
}

const FLUSH_MS = 1000;
/** How often rows of expired windows are deleted. They have no effect, so the interval only bounds their number. */
const CLEAN_MS = 60_000;

interface StoredAmount {
  readonly accountId: string;
  readonly owner: string;
  readonly bucket: string;
  readonly slot: number;
  readonly end: number;
  amount: number;
  /** Null for amounts that were read, not settled by this process. */
  readonly from: NamedBucket | null;
}

export class SpendStore {
  readonly #parts: SpendStoreParts;
  /** Rows that no bucket has asked for yet, by owner, then by bucket. */
  readonly #stored = new Map<string, Map<string, StoredAmount[]>>();
  /** Reservations of running calls, by call. */
  readonly #open = new Map<number, readonly SlotAmount[]>();
  #unwritten = new Map<string, StoredAmount>();
  #lastCall = 0;
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> | null = null;
  #cleanedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: SpendStoreParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { database, journal, clock } = this.#parts;
    await this.#removeEnded(clock.now());
    for (const row of await database.all<AmountRow>(sql`SELECT * FROM limit_amount`)) {
      this.#keepStored({ ...fromAmountRow(row), from: null });
    }
    const id = journal.readId();
    for (const found of journal.recover(id === null ? null : await this.#readPosition(id))) {
      this.#recovered(found);
    }
    journal.begin([]);
    await this.flush();
    journal.removeEarlier();
    this.#timer = setInterval(() => {
      // `flush` reports the error, and the next interval repeats the write.
      this.flush().catch(() => undefined);
    }, FLUSH_MS).unref();
  }

  /** Rejects when the remaining amounts could not be written. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    // That flush reports its error; the next one repeats the write.
    await this.#flushing?.catch(() => undefined);
    try {
      await this.flush();
    } finally {
      this.#parts.journal.close();
    }
  }

  /** Names of stored buckets of a rule that were not restored yet. */
  storedNames(owner: LimitOwner, ruleId: string): string[] {
    const names = this.#stored.get(ownerKey(owner))?.keys() ?? [];
    return [...names].filter((name) => name === ruleId || name.startsWith(`${ruleId} `));
  }

  /** Adds what is stored of a new bucket. */
  restore(bucket: NamedBucket): void {
    const key = ownerKey(bucket.owner);
    const ofOwner = this.#stored.get(key);
    const rows = ofOwner?.get(bucket.name);
    if (ofOwner === undefined || rows === undefined) return;
    ofOwner.delete(bucket.name);
    if (ofOwner.size === 0) this.#stored.delete(key);
    const now = this.#parts.clock.now();
    const current = bucket.window.slotOf(now);
    for (const { slot, end, amount } of rows) {
      const at = bucket.window.slotOf(slot);
      if (at > current) {
        // The clock was ahead when the amount was written and has been corrected: the amount counts from now on.
        bucket.add(current, amount);
        this.#change(bucket, slot, end, -amount);
        this.#change(bucket, current, bucket.window.endOf(current), amount);
      } else if (now < bucket.window.endOf(at)) bucket.add(at, amount);
    }
  }

  /** Remembers what a call may spend; returns the number of the call. */
  reserved(amounts: readonly SlotAmount[], isWrittenLater = false): number {
    const { journal } = this.#parts;
    const call = ++this.#lastCall;
    this.#open.set(call, amounts);
    journal.reserved(call, amounts);
    if (!isWrittenLater) journal.flush();
    return call;
  }

  /** Calls back when the journal has every reservation. */
  whenWritten(task: () => void): void {
    this.#parts.journal.whenWritten(task);
  }

  /** Remembers what the call has spent. */
  settled(call: number, amounts: readonly SlotAmount[]): void {
    this.#open.delete(call);
    const kept = amounts.filter(({ bucket }) => !bucket.isForgotten);
    this.#parts.journal.settled(call, kept);
    for (const { bucket, slot, end, amount } of kept) this.#change(bucket, slot, end, amount);
  }

  /** An amount counts in another slot. */
  moved(from: NamedBucket, fromSlot: number, to: NamedBucket, toSlot: number, amount: number): void {
    this.#change(from, fromSlot, from.window.endOf(fromSlot), -amount);
    this.#change(to, toSlot, to.window.endOf(toSlot), amount);
  }

  /** The owner was deleted: removes its rows, and unwritten amounts. Its buckets must be marked as forgotten before. */
  forget(owner: LimitOwner): void {
    const { accountId, key } = owner;
    this.#stored.delete(ownerKey(owner));
    for (const [name, entry] of this.#unwritten) {
      if (entry.accountId !== accountId || entry.owner !== key) continue;
      if (entry.from !== null) entry.from.unwritten = null;
      this.#unwritten.delete(name);
    }
    this.#parts.database
      .run(sql`DELETE FROM limit_amount WHERE account_id = ${accountId} AND owner = ${key}`)
      // The rows have no effect; they are removed when their windows end.
      .catch(this.#parts.onError);
  }

  /** Owners that have stored amounts and were not used since the start. */
  idleOwners(): LimitOwner[] {
    return [...this.#stored.keys()].map((name) => {
      const [accountId = "", key = ""] = name.split("\n");
      return { accountId, key };
    });
  }

  /** Writes the amounts settled since the last flush. One flush runs at a time; calls during a flush share it. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => (this.#flushing = null));
    return this.#flushing;
  }

  async #flush(): Promise<void> {
    const { clock, journal, onError } = this.#parts;
    const now = clock.now();
    try {
      const isNewFile = journal.isFull;
      if (isNewFile) journal.begin(this.#open);
      else journal.flush();
      const taken = this.#unwritten;
      this.#unwritten = new Map();
      for (const { from } of taken.values()) if (from !== null) from.unwritten = null;
      // Nothing was settled: the position may stay behind, because it only skips settled amounts.
      if (taken.size > 0 || isNewFile) await this.#write([...taken.values()], journal.position);
      if (isNewFile) journal.removeEarlier();
      if (Math.abs(now - this.#cleanedAt) >= CLEAN_MS) await this.#removeEnded(now);
    } catch (error) {
      onError(error);
      throw error;
    }
  }

  async #write(entries: readonly StoredAmount[], position: JournalPosition): Promise<void> {
    const { database, journal } = this.#parts;
    try {
      await database.transaction(async (tx) => {
        for (const { accountId, owner, bucket, slot, end, amount } of entries) {
          await tx.run(
            sql`INSERT INTO limit_amount (account_id, owner, bucket, slot_start, ends_at, amount)
                VALUES (${accountId}, ${owner}, ${bucket}, ${slot}, ${end}, ${amount})
                ON CONFLICT (account_id, owner, bucket, slot_start)
                DO UPDATE SET amount = limit_amount.amount + excluded.amount, ends_at = excluded.ends_at`,
          );
        }
        await tx.run(
          sql`INSERT INTO limit_journal (id, sequence, position) VALUES (${journal.id}, ${position.sequence}, ${position.byte})
              ON CONFLICT (id) DO UPDATE SET sequence = excluded.sequence, position = excluded.position`,
        );
      });
    } catch (error) {
      for (const entry of entries) if (entry.from?.isForgotten !== true) this.#keep(entry);
      throw error;
    }
  }

  async #readPosition(id: string): Promise<JournalPosition | null> {
    const row = await this.#parts.database.get<{ readonly sequence: number; readonly position: number }>(
      sql`SELECT sequence, position FROM limit_journal WHERE id = ${id}`,
    );
    return row === undefined ? null : { sequence: row.sequence, byte: row.position };
  }

  #recovered(found: FoundAmount): void {
    if (found.end <= this.#parts.clock.now()) return;
    this.#keepStored({ ...found, from: null });
    this.#keep({ ...found, from: null });
  }

  async #removeEnded(now: number): Promise<void> {
    await this.#parts.database.run(sql`DELETE FROM limit_amount WHERE ends_at <= ${now}`);
    this.#cleanedAt = now;
  }

  #keepStored(row: StoredAmount): void {
    const key = ownerKey({ accountId: row.accountId, key: row.owner });
    let ofOwner = this.#stored.get(key);
    if (ofOwner === undefined) {
      ofOwner = new Map();
      this.#stored.set(key, ofOwner);
    }
    const rows = ofOwner.get(row.bucket);
    if (rows === undefined) ofOwner.set(row.bucket, [row]);
    else rows.push(row);
  }

  #change(bucket: NamedBucket, slot: number, end: number, amount: number): void {
    if (bucket.unwritten?.slot === slot) {
      bucket.unwritten.amount += amount;
      return;
    }
    const { accountId, key: owner } = bucket.owner;
    const entry: StoredAmount = { accountId, owner, bucket: bucket.name, slot, end, amount, from: bucket };
    // The entry is reused while it waits, so that a call builds no key.
    if (this.#keep(entry)) bucket.unwritten = entry;
  }

  /** True when the entry waits itself, false when it was added to another one. */
  #keep(entry: StoredAmount): boolean {
    const key = `${entry.accountId}\n${entry.owner}\n${entry.bucket}\n${entry.slot}`;
    const waiting = this.#unwritten.get(key);
    if (waiting === undefined) this.#unwritten.set(key, entry);
    else waiting.amount += entry.amount;
    return waiting === undefined;
  }
}
