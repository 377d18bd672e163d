/**
 * Collects the index changes of a batch of writes and writes them once: postings in key order, and each count and each bitmap chunk once,
 * regardless of how many resources changed it. A batch of small writes and a load of a million resources both depend on this.
 *
 * Invariants:
 * 1. After `flush`, the counts, the bitmaps, and the postings of values without bitmaps match the tags of the resources. The caller writes the
 *    rows of the resources in the same transaction.
 * 2. A key or value gets bitmaps when its uses reach `bitmapMinUses`, and keeps them. A reader that has read `has_bitmap` can therefore read
 *    bitmaps without a snapshot.
 * 3. The postings of a value with bitmaps are not updated, which saves a third of the pages that a write changes. They are deleted only with the
 *    value, because a reader may have read the row of the value before the bitmaps were created. A key has at least as many uses as each of its
 *    values, so its bitmaps are created in the same flush or earlier, and its postings are then complete.
 * See README.md.
 */
import { foldCase, type Tags } from "@signalbox/protocol";
import type { Queryable } from "../../core/queryable.ts";
import { sql, type SqlValue } from "../../core/sql.ts";
import { createBitmap, type NetChanges, updateBitmap } from "./bitmap-writer.ts";
import {
  ANY_VALUE_NO,
  findKey,
  findTypeKey,
  findValue,
  toSortKey,
  toStoredText,
  TYPE_KEY_NO,
} from "./dictionary.ts";
import { RowsStatement } from "../../core/rows-statement.ts";

/** Smaller sets are read from the postings in less than a millisecond. For larger sets, bitmaps are faster and smaller. */
export const BITMAP_MIN_USES = 1024;

/** Not a valid tag key, so the key of the types cannot collide with one. */
const TYPE_KEY_TEXT = ":type";

/** The next free numbers. The caller stores them in the row of the account. */
export interface IndexCounters {
  nextKey: number;
  nextValue: number;
}

interface Entry {
  readonly no: number;
  readonly isNew: boolean;
  readonly text: string;
  uses: number;
  hasBitmap: boolean;
  /** Resources added and removed, in order: resource number × 2, plus 1 when added. */
  readonly changes: number[];
}

interface ValueEntry extends Entry {
  readonly usesByType: Map<number, number>;
}

interface KeyEntry extends Entry {
  readonly values: Map<string, ValueEntry>;
}

const insertPostings = new RowsStatement(
  "INSERT INTO tag_posting (account_no, key_no, value_no, resource_no) VALUES ",
  4,
);
const insertKeys = new RowsStatement(
  "INSERT INTO tag_key (account_no, key_no, sort_key, folded, full_text, uses, has_bitmap) VALUES ",
  7,
);
const insertValues = new RowsStatement(
  "INSERT INTO tag_value (account_no, key_no, value_no, sort_key, folded, full_text, uses, has_bitmap) VALUES ",
  8,
);

export class IndexDelta {
  readonly #tx: Queryable;
  readonly #accountNo: number;
  readonly #counters: IndexCounters;
  readonly #bitmapMinUses: number;
  readonly #keys = new Map<string, KeyEntry>();

  constructor(tx: Queryable, accountNo: number, counters: IndexCounters, bitmapMinUses: number) {
    this.#tx = tx;
    this.#accountNo = accountNo;
    this.#counters = counters;
    this.#bitmapMinUses = bitmapMinUses;
  }

  /** Records that the tags of a resource changed from `before` to `after`. */
  async change(resourceNo: number, type: string, before: Tags, after: Tags): Promise<void> {
    const typeKey = await this.#key(TYPE_KEY_TEXT);
    const typeValue = await this.#value(typeKey, type);
    if (before.size === 0 && after.size > 0) gain(typeKey, typeValue, resourceNo);
    if (before.size > 0 && after.size === 0) lose(typeKey, typeValue, resourceNo);
    for (const [key, value] of before) {
      const next = after.get(key);
      if (next === value) continue;
      const keyEntry = await this.#key(key);
      const valueEntry = await this.#value(keyEntry, value);
      valueEntry.changes.push(resourceNo * 2);
      count(valueEntry, typeValue.no, -1);
      if (next === undefined) keyEntry.changes.push(resourceNo * 2);
    }
    for (const [key, value] of after) {
      const previous = before.get(key);
      if (previous === value) continue;
      const keyEntry = await this.#key(key);
      const valueEntry = await this.#value(keyEntry, value);
      valueEntry.changes.push(resourceNo * 2 + 1);
      count(valueEntry, typeValue.no, 1);
      if (previous === undefined) keyEntry.changes.push(resourceNo * 2 + 1);
    }
  }

  /** Writes the recorded changes. Call once, after the last `change`. */
  async flush(): Promise<void> {
    for (const key of byNumber(this.#keys.values())) {
      for (const value of byNumber(key.values.values())) await this.#flushValue(key, value);
      await this.#updateSet(key, netChanges(key.changes), key.no, ANY_VALUE_NO);
      await this.#writeKey(key);
    }
  }

  async #flushValue(key: KeyEntry, value: ValueEntry): Promise<void> {
    const net = netChanges(value.changes);
    if (!value.hasBitmap) await this.#writePostings(key, value, net);
    await this.#updateSet(value, net, key.no, value.no);
    await this.#writeValue(key, value);
  }

  /** Updates the count and the bitmaps; creates the bitmaps when the count reaches the limit. */
  async #updateSet(entry: Entry, net: NetChanges, keyNo: number, valueNo: number): Promise<void> {
    const id = { accountNo: this.#accountNo, keyNo, valueNo };
    entry.uses += net.gained.length - net.lost.length;
    if (entry.hasBitmap) {
      await updateBitmap(this.#tx, id, net);
    } else if (entry.uses >= this.#bitmapMinUses) {
      entry.hasBitmap = true;
      await createBitmap(this.#tx, id);
    }
  }

  async #writePostings(key: KeyEntry, value: ValueEntry, { gained, lost }: NetChanges): Promise<void> {
    for (const resourceNo of lost) {
      await this.#tx.run(
        sql`DELETE FROM tag_posting WHERE account_no = ${this.#accountNo} AND key_no = ${key.no}
            AND value_no = ${value.no} AND resource_no = ${resourceNo}`,
      );
    }
    const rows: SqlValue[] = [];
    for (const resourceNo of gained) rows.push(this.#accountNo, key.no, value.no, resourceNo);
    await insertPostings.run(this.#tx, rows);
  }

  async #writeKey(key: KeyEntry): Promise<void> {
    if (key.isNew) {
      const { sortKey, fullText } = toStoredText(key.text);
      const folded = toSortKey(foldCase(key.text));
      await insertKeys.run(this.#tx, [
        this.#accountNo,
        key.no,
        sortKey,
        folded,
        fullText,
        key.uses,
        Number(key.hasBitmap),
      ]);
    } else if (key.changes.length > 0) {
      await this.#tx.run(
        sql`UPDATE tag_key SET uses = ${key.uses}, has_bitmap = ${Number(key.hasBitmap)}
            WHERE account_no = ${this.#accountNo} AND key_no = ${key.no}`,
      );
    }
  }

  async #writeValue(key: KeyEntry, value: ValueEntry): Promise<void> {
    if (value.isNew) {
      const { sortKey, fullText } = toStoredText(value.text);
      const folded = toSortKey(foldCase(value.text));
      await insertValues.run(this.#tx, [
        this.#accountNo,
        key.no,
        value.no,
        sortKey,
        folded,
        fullText,
        value.uses,
        Number(value.hasBitmap),
      ]);
    } else if (value.changes.length > 0) {
      await this.#tx.run(
        sql`UPDATE tag_value SET uses = ${value.uses}, has_bitmap = ${Number(value.hasBitmap)}
            WHERE account_no = ${this.#accountNo} AND key_no = ${key.no} AND value_no = ${value.no}`,
      );
    }
    for (const [typeNo, difference] of value.usesByType) {
      if (difference === 0) continue;
      await this.#tx.run(
        sql`INSERT INTO tag_value_type (account_no, key_no, type_no, value_no, uses)
            VALUES (${this.#accountNo}, ${key.no}, ${typeNo}, ${value.no}, ${difference})
            ON CONFLICT (account_no, key_no, type_no, value_no) DO UPDATE SET uses = tag_value_type.uses + excluded.uses`,
      );
    }
  }

  async #key(text: string): Promise<KeyEntry> {
    const known = this.#keys.get(text);
    if (known !== undefined) return known;
    const isType = text === TYPE_KEY_TEXT;
    const row = isType
      ? await findTypeKey(this.#tx, this.#accountNo)
      : await findKey(this.#tx, this.#accountNo, text);
    const entry: KeyEntry = {
      no: row?.key_no ?? (isType ? TYPE_KEY_NO : this.#counters.nextKey++),
      isNew: row === undefined,
      text,
      uses: row?.uses ?? 0,
      hasBitmap: row?.has_bitmap === 1,
      changes: [],
      values: new Map(),
    };
    this.#keys.set(text, entry);
    return entry;
  }

  async #value(key: KeyEntry, text: string): Promise<ValueEntry> {
    const known = key.values.get(text);
    if (known !== undefined) return known;
    const row = key.isNew ? undefined : await findValue(this.#tx, this.#accountNo, key.no, text);
    const entry: ValueEntry = {
      no: row?.value_no ?? this.#counters.nextValue++,
      isNew: row === undefined,
      text,
      uses: row?.uses ?? 0,
      hasBitmap: row?.has_bitmap === 1,
      changes: [],
      usesByType: new Map(),
    };
    key.values.set(text, entry);
    return entry;
  }
}

function gain(key: KeyEntry, value: ValueEntry, resourceNo: number): void {
  key.changes.push(resourceNo * 2 + 1);
  value.changes.push(resourceNo * 2 + 1);
}

function lose(key: KeyEntry, value: ValueEntry, resourceNo: number): void {
  key.changes.push(resourceNo * 2);
  value.changes.push(resourceNo * 2);
}

function count(value: ValueEntry, typeNo: number, difference: number): void {
  value.usesByType.set(typeNo, (value.usesByType.get(typeNo) ?? 0) + difference);
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
