/**
 * Collects the index changes of a batch of writes and writes them once, with few statements: postings in key order, and each count and each bitmap
 * chunk once, regardless of how many resources changed it. A batch of small writes and a load of a million resources both depend on this.
 *
 * Invariants:
 * 1. After `flush`, the counts, the bitmaps, and the postings of values without bitmaps match the tags of the resources. The caller writes the
 *    rows of the resources in the same transaction.
 * 2. A key or value gets bitmaps when its uses reach `bitmapMinUses`, and keeps them. A reader that has read `has_bitmap` can therefore read
 *    bitmaps without a snapshot.
 * 3. The postings of a value with bitmaps are not updated, which saves a third of the pages that a write changes. They are deleted only with the
 *    value, because a reader may have read the row of the value before the bitmaps were created. A key has at least as many uses as each of its
 *    values, so its bitmaps are created in the same flush or earlier, and its postings are then complete.
 * 4. A flush yields to the event loop after some milliseconds, in its transaction.
 * See README.md.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { foldCase, type Tags } from "@signalbox/protocol";
import { LONGEST_LOOK_UP } from "../../core/look-ups.ts";
import type { Queryable } from "../../core/queryable.ts";
import { RowsStatement } from "../../core/rows-statement.ts";
import { sql, type SqlValue } from "../../core/sql.ts";
import { BitmapWriter, type NetChanges, type SetChanges } from "./bitmap-writer.ts";
import {
  ANY_VALUE_NO,
  findKeys,
  findValues,
  toSortKey,
  toStoredText,
  TYPE_KEY_NO,
  TYPE_KEY_TEXT,
} from "./dictionary.ts";

/** Smaller sets are read from the postings in less than a millisecond. For larger sets, bitmaps are faster and smaller. */
export const BITMAP_MIN_USES = 1024;
/** After so many milliseconds a flush yields to the event loop. */
const TURN_MS = 4;

/** The next free numbers. The caller stores them in the row of the account. */
export interface IndexCounters {
  nextKey: number;
  nextValue: number;
}

/** The changes of a key or value, and from the beginning of the flush its row. */
interface Entry {
  readonly text: string;
  /** Resources added and removed, in order: resource number × 2, plus 1 when added. */
  readonly changes: number[];
  no: number;
  uses: number;
  hasBitmap: boolean;
}

interface ValueEntry extends Entry {
  readonly usesByType: Map<string, number>;
}

interface KeyEntry extends Entry {
  readonly values: Map<string, ValueEntry>;
}

const insertPostings = new RowsStatement(
  "INSERT INTO tag_posting (account_no, key_no, value_no, resource_no) VALUES ",
  4,
);
const storeKeys = new RowsStatement(
  "INSERT INTO tag_key (account_no, key_no, sort_key, folded, full_text, uses, has_bitmap) VALUES ",
  7,
  " ON CONFLICT (account_no, key_no) DO UPDATE SET uses = excluded.uses, has_bitmap = excluded.has_bitmap",
);
const storeValues = new RowsStatement(
  "INSERT INTO tag_value (account_no, key_no, value_no, sort_key, folded, full_text, uses, has_bitmap) VALUES ",
  8,
  " ON CONFLICT (account_no, key_no, value_no) DO UPDATE SET uses = excluded.uses, has_bitmap = excluded.has_bitmap",
);
const addUsesByType = new RowsStatement(
  "INSERT INTO tag_value_type (account_no, key_no, type_no, value_no, uses) VALUES ",
  5,
  " ON CONFLICT (account_no, key_no, type_no, value_no) DO UPDATE SET uses = tag_value_type.uses + excluded.uses",
);

export class IndexDelta {
  readonly #tx: Queryable;
  readonly #accountNo: number;
  readonly #counters: IndexCounters;
  readonly #bitmapMinUses: number;
  readonly #keys = new Map<string, KeyEntry>();
  #turnBegan = 0;

  constructor(tx: Queryable, accountNo: number, counters: IndexCounters, bitmapMinUses: number) {
    this.#tx = tx;
    this.#accountNo = accountNo;
    this.#counters = counters;
    this.#bitmapMinUses = bitmapMinUses;
  }

  /** Records that the tags of a resource changed from `before` to `after`. */
  change(resourceNo: number, type: string, before: Tags, after: Tags): void {
    const typeKey = this.#key(TYPE_KEY_TEXT);
    const typeValue = valueOf(typeKey, type);
    if (before.size === 0 && after.size > 0) gain(typeKey, typeValue, resourceNo);
    if (before.size > 0 && after.size === 0) lose(typeKey, typeValue, resourceNo);
    for (const [key, value] of before) {
      const next = after.get(key);
      if (next === value) continue;
      const keyEntry = this.#key(key);
      const valueEntry = valueOf(keyEntry, value);
      valueEntry.changes.push(resourceNo * 2);
      count(valueEntry, type, -1);
      if (next === undefined) keyEntry.changes.push(resourceNo * 2);
    }
    for (const [key, value] of after) {
      const previous = before.get(key);
      if (previous === value) continue;
      const keyEntry = this.#key(key);
      const valueEntry = valueOf(keyEntry, value);
      valueEntry.changes.push(resourceNo * 2 + 1);
      count(valueEntry, type, 1);
      if (previous === undefined) keyEntry.changes.push(resourceNo * 2 + 1);
    }
  }

  /** Writes the recorded changes. Call once, after the last `change`. */
  async flush(): Promise<void> {
    this.#turnBegan = performance.now();
    await this.#findRows();
    const sets = this.#changedSets();
    // Bitmaps are created from postings.
    await this.#writePostings(sets);
    await this.#writeBitmaps(sets);
    await this.#writeCounts();
  }

  /** Reads the rows of all keys and values, and numbers new ones. */
  async #findRows(): Promise<void> {
    const keys = [...this.#keys.values()];
    const keyRows = await findKeys(
      this.#tx,
      this.#accountNo,
      keys.map(({ text }) => text),
    );
    const values: { readonly keyNo: number; readonly entry: ValueEntry; readonly text: string }[] = [];
    for (const [i, key] of keys.entries()) {
      const number = () => (key.text === TYPE_KEY_TEXT ? TYPE_KEY_NO : this.#counters.nextKey++);
      take(key, keyRows[i], keyRows[i]?.key_no ?? number());
      for (const entry of key.values.values()) values.push({ keyNo: key.no, entry, text: entry.text });
    }
    for (let at = 0; at < values.length; at += LONGEST_LOOK_UP) {
      const part = values.slice(at, at + LONGEST_LOOK_UP);
      const rows = await findValues(this.#tx, this.#accountNo, part);
      for (const [i, { entry }] of part.entries())
        take(entry, rows[i], rows[i]?.value_no ?? this.#counters.nextValue++);
      await this.#pause();
    }
  }

  /** The sets of values, and after those of its values the set of each key. */
  #changedSets(): ChangedSet[] {
    const sets: ChangedSet[] = [];
    for (const key of byNumber(this.#keys.values())) {
      for (const value of byNumber(key.values.values()))
        sets.push({ entry: value, keyNo: key.no, valueNo: value.no, net: netChanges(value.changes) });
      sets.push({ entry: key, keyNo: key.no, valueNo: ANY_VALUE_NO, net: netChanges(key.changes) });
    }
    return sets;
  }

  async #writePostings(sets: readonly ChangedSet[]): Promise<void> {
    const rows: SqlValue[] = [];
    for (const { entry, keyNo, valueNo, net } of sets) {
      if (valueNo === ANY_VALUE_NO || entry.hasBitmap) continue;
      for (const resourceNo of net.lost) {
        await this.#tx.run(
          sql`DELETE FROM tag_posting WHERE account_no = ${this.#accountNo} AND key_no = ${keyNo}
              AND value_no = ${valueNo} AND resource_no = ${resourceNo}`,
        );
      }
      for (const resourceNo of net.gained) rows.push(this.#accountNo, keyNo, valueNo, resourceNo);
      await this.#pause();
    }
    await this.#runAll(insertPostings, rows);
  }

  /** Updates the uses and the bitmaps; creates bitmaps when the uses reach the limit. */
  async #writeBitmaps(sets: readonly ChangedSet[]): Promise<void> {
    const bitmaps = new BitmapWriter(this.#tx);
    const updates: SetChanges[] = [];
    for (const { entry, keyNo, valueNo, net } of sets) {
      const id = { accountNo: this.#accountNo, keyNo, valueNo };
      entry.uses += net.gained.length - net.lost.length;
      if (entry.hasBitmap) updates.push({ id, net });
      else if (entry.uses >= this.#bitmapMinUses) {
        entry.hasBitmap = true;
        await bitmaps.create(id);
        await this.#pause();
      }
    }
    await bitmaps.update(updates, () => this.#pause());
    await bitmaps.flush();
  }

  async #writeCounts(): Promise<void> {
    const keys: SqlValue[] = [];
    const values: SqlValue[] = [];
    const types: SqlValue[] = [];
    const typeValues = this.#keys.get(TYPE_KEY_TEXT)?.values;
    for (const key of byNumber(this.#keys.values())) {
      if (key.changes.length > 0) keys.push(this.#accountNo, key.no, ...textColumns(key));
      for (const value of byNumber(key.values.values())) {
        if (value.changes.length > 0) values.push(this.#accountNo, key.no, value.no, ...textColumns(value));
        for (const [type, difference] of value.usesByType) {
          const typeNo = typeValues?.get(type)?.no ?? 0;
          if (difference !== 0) types.push(this.#accountNo, key.no, typeNo, value.no, difference);
        }
      }
    }
    await this.#runAll(storeKeys, keys);
    await this.#runAll(storeValues, values);
    await this.#runAll(addUsesByType, types);
  }

  async #runAll(statement: RowsStatement, rows: readonly SqlValue[]): Promise<void> {
    for (const query of statement.queries(rows)) {
      await this.#tx.run(query);
      await this.#pause();
    }
  }

  async #pause(): Promise<void> {
    if (performance.now() - this.#turnBegan < TURN_MS) return;
    await nextTurn();
    this.#turnBegan = performance.now();
  }

  #key(text: string): KeyEntry {
    let entry = this.#keys.get(text);
    if (entry === undefined) {
      entry = { ...newEntry(text), values: new Map() };
      this.#keys.set(text, entry);
    }
    return entry;
  }
}

interface ChangedSet {
  readonly entry: Entry;
  readonly keyNo: number;
  readonly valueNo: number;
  readonly net: NetChanges;
}

function newEntry(text: string): Entry {
  return { text, changes: [], no: -1, uses: 0, hasBitmap: false };
}

function valueOf(key: KeyEntry, text: string): ValueEntry {
  let entry = key.values.get(text);
  if (entry === undefined) {
    entry = { ...newEntry(text), usesByType: new Map() };
    key.values.set(text, entry);
  }
  return entry;
}

function take(entry: Entry, row: { uses: number; has_bitmap: number } | undefined, no: number): void {
  entry.no = no;
  entry.uses = row?.uses ?? 0;
  entry.hasBitmap = row?.has_bitmap === 1;
}

/** The columns from `sort_key` on. */
function textColumns({ text, uses, hasBitmap }: Entry): SqlValue[] {
  const { sortKey, fullText } = toStoredText(text);
  return [sortKey, toSortKey(foldCase(text)), fullText, uses, Number(hasBitmap)];
}

function gain(key: KeyEntry, value: ValueEntry, resourceNo: number): void {
  key.changes.push(resourceNo * 2 + 1);
  value.changes.push(resourceNo * 2 + 1);
}

function lose(key: KeyEntry, value: ValueEntry, resourceNo: number): void {
  key.changes.push(resourceNo * 2);
  value.changes.push(resourceNo * 2);
}

function count(value: ValueEntry, type: string, difference: number): void {
  value.usesByType.set(type, (value.usesByType.get(type) ?? 0) + difference);
}

/** The difference between before and after the batch. Additions and removals of one resource alternate, so their sum is -1, 0 or 1. */
function netChanges(changes: readonly number[]): NetChanges {
  const gained: number[] = [];
  const lost: number[] = [];
  if (changes.length === 1) {
    const [change = 0] = changes;
    (change % 2 === 1 ? gained : lost).push(Math.floor(change / 2));
    return { gained, lost };
  }
  const balance = new Map<number, number>();
  for (const change of changes) {
    const resourceNo = Math.floor(change / 2);
    balance.set(resourceNo, (balance.get(resourceNo) ?? 0) + (change % 2 === 1 ? 1 : -1));
  }
  for (const [resourceNo, sum] of balance) {
    if (sum > 0) gained.push(resourceNo);
    else if (sum < 0) lost.push(resourceNo);
  }
  return { gained: gained.sort((a, b) => a - b), lost: lost.sort((a, b) => a - b) };
}

function byNumber<T extends Entry>(entries: Iterable<T>): T[] {
  return [...entries].sort((a, b) => a.no - b.no);
}
