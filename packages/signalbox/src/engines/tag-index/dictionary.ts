/** Keys and values as numbers: look-ups of the dictionary, exact and regardless of case. */
import { foldCase } from "@signalbox/protocol";
import type { Queryable } from "../../core/queryable.ts";
import { sql } from "../../core/sql.ts";
import { toSortKey } from "./sort-key.ts";

/** The resource type is a key to the index; user keys are numbered from 1. */
export const TYPE_KEY_NO = 0;
/** Stands for "any value" where a whole key has a bitmap; values are numbered from 1. */
export const ANY_VALUE_NO = 0;

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

/** Every key that equals this one when case does not count. */
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
