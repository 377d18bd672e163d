/**
 * The dictionary of the index: each key and each value has a number and is found by its text, case-sensitively or not.
 *
 * A text is stored as a sort key: its UTF-8 bytes, which sort by code point in both databases and in every locale. A long text is truncated and
 * followed by a hash, so that index entries stay small; long texts are sorted by their first `HEAD_BYTES` bytes.
 *
 * Invariant: different texts have different sort keys. A complete sort key has at most `WHOLE_BYTES` bytes and is valid UTF-8. A truncated one is
 * longer and contains the byte 0xFF, which UTF-8 does not use.
 */
import { createHash } from "node:crypto";
import { foldCase } from "@signalbox/protocol";
import type { Queryable } from "../../core/queryable.ts";
import { LookUps } from "../../core/look-ups.ts";
import { sql } from "../../core/sql.ts";

/** The key of the resource types; the keys of tags are numbered from 1. */
export const TYPE_KEY_NO = 0;
/** Not a valid tag key, so the key of the types cannot collide with one. */
export const TYPE_KEY_TEXT = ":type";
/** In place of a value number: any value of the key. Values are numbered from 1. */
export const ANY_VALUE_NO = 0;

/** Identifies the resources that have a value of a key, or the key with any value (`ANY_VALUE_NO`). */
export interface StoredSetId {
  readonly accountNo: number;
  readonly keyNo: number;
  readonly valueNo: number;
}

export interface KeyRow {
  readonly key_no: number;
  readonly uses: number;
  readonly has_bitmap: number;
}

export interface ValueRow {
  readonly value_no: number;
  readonly uses: number;
  readonly has_bitmap: number;
}

export function findKey(queryable: Queryable, accountNo: number, key: string): Promise<KeyRow | undefined> {
  return queryable.get<KeyRow>(
    sql`SELECT key_no, uses, has_bitmap FROM tag_key WHERE account_no = ${accountNo} AND sort_key = ${toSortKey(key)}`,
  );
}

export function findTypeKey(queryable: Queryable, accountNo: number): Promise<KeyRow | undefined> {
  return queryable.get<KeyRow>(
    sql`SELECT key_no, uses, has_bitmap FROM tag_key WHERE account_no = ${accountNo} AND key_no = ${TYPE_KEY_NO}`,
  );
}

export function findValue(
  queryable: Queryable,
  accountNo: number,
  keyNo: number,
  value: string,
): Promise<ValueRow | undefined> {
  return queryable.get<ValueRow>(
    sql`SELECT value_no, uses, has_bitmap FROM tag_value
        WHERE account_no = ${accountNo} AND key_no = ${keyNo} AND sort_key = ${toSortKey(value)}`,
  );
}

const KEYS = new LookUps<KeyRow>("key_no, uses, has_bitmap", "tag_key", ["account_no", "sort_key"]);
const VALUES = new LookUps<ValueRow>("value_no, uses, has_bitmap", "tag_value", [
  "account_no",
  "key_no",
  "sort_key",
]);

/** The rows of several keys, in their order; undefined for a key without a row. The key of the types has the text `TYPE_KEY_TEXT`. */
export function findKeys(
  queryable: Queryable,
  accountNo: number,
  keys: readonly string[],
): Promise<(KeyRow | undefined)[]> {
  return KEYS.find(
    queryable,
    keys.flatMap((key) => [accountNo, toSortKey(key)]),
  );
}

export function findValues(
  queryable: Queryable,
  accountNo: number,
  values: readonly { readonly keyNo: number; readonly text: string }[],
): Promise<(ValueRow | undefined)[]> {
  return VALUES.find(
    queryable,
    values.flatMap(({ keyNo, text }) => [accountNo, keyNo, toSortKey(text)]),
  );
}

/** The keys that are equal to `key` if case is ignored. */
export function findFoldedKeys(queryable: Queryable, accountNo: number, key: string): Promise<KeyRow[]> {
  return queryable.all<KeyRow>(
    sql`SELECT key_no, uses, has_bitmap FROM tag_key
        WHERE account_no = ${accountNo} AND folded = ${toSortKey(foldCase(key))} AND key_no <> ${TYPE_KEY_NO}`,
  );
}

export function findFoldedValues(
  queryable: Queryable,
  accountNo: number,
  keyNo: number,
  value: string,
): Promise<ValueRow[]> {
  return queryable.all<ValueRow>(
    sql`SELECT value_no, uses, has_bitmap FROM tag_value
        WHERE account_no = ${accountNo} AND key_no = ${keyNo} AND folded = ${toSortKey(foldCase(value))}`,
  );
}

const WHOLE_BYTES = 200;
const HEAD_BYTES = 184;
const HASH_BYTES = 16;
const TRUNCATED = 0xff;

export interface StoredText {
  readonly sortKey: Uint8Array;
  /** The complete text if the sort key is truncated, otherwise null. */
  readonly fullText: Uint8Array | null;
}

export function toStoredText(text: string): StoredText {
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length <= WHOLE_BYTES) return { sortKey: bytes, fullText: null };
  const sortKey = Buffer.alloc(HEAD_BYTES + 1 + HASH_BYTES, TRUNCATED);
  bytes.copy(sortKey, 0, 0, HEAD_BYTES);
  createHash("sha256")
    .update(bytes)
    .digest()
    .copy(sortKey, HEAD_BYTES + 1, 0, HASH_BYTES);
  return { sortKey, fullText: bytes };
}

export function toSortKey(text: string): Uint8Array {
  return toStoredText(text).sortKey;
}

export function fromStoredText(stored: {
  readonly sort_key: Uint8Array;
  readonly full_text: Uint8Array | null;
}): string {
  const bytes = stored.full_text ?? stored.sort_key;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

/** A longer prefix cannot be compared with truncated sort keys. */
export const MAX_PREFIX_BYTES = HEAD_BYTES;

/** The range of the sort keys of all texts that begin with `prefix`: `low` inclusive, `high` exclusive. */
export function prefixRange(prefix: string): { low: Uint8Array; high: Uint8Array } {
  const low = Buffer.from(prefix, "utf8");
  // Behind every truncated key, also one whose hash begins with the same bytes. No text has them.
  return { low, high: Buffer.concat([low, Buffer.alloc(1 + HASH_BYTES + 1, TRUNCATED)]) };
}
