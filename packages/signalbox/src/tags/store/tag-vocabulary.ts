/** Lists the keys and the values in use, sorted and with counts, by prefix and by resource type. */
import type { Database } from "../../database/database.ts";
import { joinSql, sql, type SqlQuery } from "../../core/sql.ts";
import type { AccountNumbers } from "./account-numbers.ts";
import {
  findKey,
  findValue,
  fromStoredText,
  prefixRange,
  TYPE_KEY_NO,
} from "../../engines/tag-index/index.ts";

export interface VocabularyQuery {
  /** Empty for all; at most `MAX_PREFIX_BYTES` long. */
  readonly prefix: string;
  /** The sort key of the last entry of the previous page; null for the first page. */
  readonly after: Uint8Array | null;
  readonly limit: number;
}

export interface VocabularyEntry {
  readonly text: string;
  /** The number of resources that have the key or value. */
  readonly uses: number;
  readonly sortKey: Uint8Array;
}

export interface Vocabulary {
  keys(accountId: string, query: VocabularyQuery): Promise<VocabularyEntry[]>;
  /** The values of a key on all resources or on those of one type. */
  values(
    accountId: string,
    key: string,
    type: string | null,
    query: VocabularyQuery,
  ): Promise<VocabularyEntry[]>;
}

/** Up to this many values of a type are joined and sorted. With more, a scan of all values in order soon finds a page of them. */
const MAX_SORTED_VALUES = 2000;

interface TextRow {
  readonly sort_key: Uint8Array;
  readonly full_text: Uint8Array | null;
  readonly uses: number;
}

export class TagVocabulary implements Vocabulary {
  readonly #database: Database;
  readonly #accounts: AccountNumbers;

  constructor(database: Database, accounts: AccountNumbers) {
    this.#database = database;
    this.#accounts = accounts;
  }

  async keys(accountId: string, query: VocabularyQuery): Promise<VocabularyEntry[]> {
    const accountNo = await this.#accounts.find(accountId);
    if (accountNo === null) return [];
    const rows = await this.#database.all<TextRow>(
      sql`SELECT sort_key, full_text, uses FROM tag_key t
          WHERE account_no = ${accountNo} AND key_no <> ${TYPE_KEY_NO} AND uses > 0 AND ${textRange(query)}
          ORDER BY sort_key LIMIT ${query.limit}`,
    );
    return toEntries(rows);
  }

  async values(
    accountId: string,
    key: string,
    type: string | null,
    query: VocabularyQuery,
  ): Promise<VocabularyEntry[]> {
    const accountNo = await this.#accounts.find(accountId);
    const keyRow = accountNo === null ? undefined : await findKey(this.#database, accountNo, key);
    if (accountNo === null || keyRow === undefined) return [];
    if (type !== null) return this.#valuesOfType(accountNo, keyRow.key_no, type, query);
    const rows = await this.#database.all<TextRow>(
      sql`SELECT sort_key, full_text, uses FROM tag_value t
          WHERE account_no = ${accountNo} AND key_no = ${keyRow.key_no} AND uses > 0 AND ${textRange(query)}
          ORDER BY sort_key LIMIT ${query.limit}`,
    );
    return toEntries(rows);
  }

  async #valuesOfType(
    accountNo: number,
    keyNo: number,
    type: string,
    query: VocabularyQuery,
  ): Promise<VocabularyEntry[]> {
    const typeRow = await findValue(this.#database, accountNo, TYPE_KEY_NO, type);
    if (typeRow === undefined) return [];
    const ofType = sql`u.account_no = ${accountNo} AND u.key_no = ${keyNo} AND u.type_no = ${typeRow.value_no} AND u.uses > 0`;
    const some = await this.#database.all<{ value_no: number }>(
      sql`SELECT u.value_no FROM tag_value_type u WHERE ${ofType} LIMIT ${MAX_SORTED_VALUES + 1}`,
    );
    const statement =
      some.length > MAX_SORTED_VALUES
        ? // The query planners cannot know which table is smaller; a subquery in the select list makes them scan in order.
          sql`SELECT sort_key, full_text, uses FROM
                (SELECT t.sort_key, t.full_text, (SELECT u.uses FROM tag_value_type u WHERE ${ofType} AND u.value_no = t.value_no) AS uses
                 FROM tag_value t WHERE t.account_no = ${accountNo} AND t.key_no = ${keyNo} AND ${textRange(query)}) scanned
              WHERE uses IS NOT NULL ORDER BY sort_key LIMIT ${query.limit}`
        : sql`SELECT t.sort_key, t.full_text, u.uses FROM tag_value_type u
                JOIN tag_value t ON t.account_no = u.account_no AND t.key_no = u.key_no AND t.value_no = u.value_no
              WHERE ${ofType} AND ${textRange(query)} ORDER BY t.sort_key LIMIT ${query.limit}`;
    return toEntries(await this.#database.all<TextRow>(statement));
  }
}

function textRange(query: VocabularyQuery): SqlQuery {
  const conditions = [sql`1 = 1`];
  if (query.prefix !== "") {
    const { low, high } = prefixRange(query.prefix);
    conditions.push(sql`t.sort_key >= ${low} AND t.sort_key < ${high}`);
  }
  if (query.after !== null) conditions.push(sql`t.sort_key > ${query.after}`);
  return joinSql(conditions, " AND ");
}

function toEntries(rows: readonly TextRow[]): VocabularyEntry[] {
  return rows.map((row) => ({ text: fromStoredText(row), uses: row.uses, sortKey: row.sort_key }));
}
