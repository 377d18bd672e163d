/**
 * Collects what a batch of writes changes in the index, and writes it once: postings in key order, each count and each bitmap chunk once, however
 * many resources changed it. This makes many small writes cheap together, and the load of a million resources as well.
 *
 * Invariants:
 * 1. After `flush` the counts, the bitmaps, and the postings of values without bitmaps match the tags of the resources, in the same transaction
 *    as their rows.
 * 2. A key or value gets bitmaps when its uses reach `bitmapMinUses`, and keeps them: a reader that has seen `has_bitmap` can rely on it without
 *    a snapshot.
 * 3. The postings of a value that has bitmaps are no longer updated, which saves a third of the pages of a write. They are not deleted either,
 *    because a reader may have read the row of the value before it had bitmaps; they are deleted with the value. A key needs no postings: it has
 *    at least as many uses as each of its values, so it gets its bitmaps in the same flush or earlier.
 */
import { foldCase, type Tags } from "@signalbox/protocol";
import type { Queryable } from "../../core/queryable.ts";
import { sql, type SqlValue } from "../../core/sql.ts";
import { type NetChanges, writeBitmap } from "./bitmap-writer.ts";
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

/** Smaller sets are read from the postings in well under a millisecond; for larger sets chunks are faster and smaller. */
export const BITMAP_MIN_USES = 1024;

/** No user key can have this text, so the types are stored in the same table. */
const TYPE_KEY_TEXT = ":type";

/** The next numbers; stored with the row of the account. */
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

  /** Records a change of the tags of a resource; an empty set means no tags. */
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

  async flush(): Promise<void> {
    for (const key of byNumber(this.#keys.values())) {
      for (const value of byNumber(key.values.values())) await this.#flushValue(key, value);
      const net = netChanges(key.changes);
      const had = key.hasBitmap;
      key.uses += net.gained.length - net.lost.length;
      key.hasBitmap ||= key.uses >= this.#bitmapMinUses;
      if (key.hasBitmap) await writeBitmap(this.#tx, this.#accountNo, key.no, ANY_VALUE_NO, had ? net : null);
      await this.#writeKey(key);
    }
  }

  async #flushValue(key: KeyEntry, value: ValueEntry): Promise<void> {
    const net = netChanges(value.changes);
    const had = value.hasBitmap;
    if (!had) await this.#writePostings(key, value, net);
    value.uses += net.gained.length - net.lost.length;
    value.hasBitmap ||= value.uses >= this.#bitmapMinUses;
    if (value.hasBitmap) await writeBitmap(this.#tx, this.#accountNo, key.no, value.no, had ? net : null);
    await this.#writeValue(key, value);
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

/** The sum of the changes. Additions and removals of one resource alternate: an even number cancels out, of an odd number the last one counts. */
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
