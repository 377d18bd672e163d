/**
 * Key-value storage of an object: `ctx.storage.kv` synchronously, and `get`, `put`, `delete` and `list` of `ctx.storage` with promises. Values are
 * copied by structured clone, and keys are ordered by their UTF-8 bytes.
 */
import { deserialize, serialize } from "node:v8";
import { joinSql, rawSql, sql, type SqlQuery } from "../../core/sql.ts";
import type { StorageParts } from "./storage-parts.ts";

export interface ListOptions {
  readonly start?: string;
  readonly startAfter?: string;
  readonly end?: string;
  readonly prefix?: string;
  readonly reverse?: boolean;
  readonly limit?: number;
}

/** Programs without types pass other keys, too: they become text. */
type Key = string | number;

interface Row {
  readonly key: string;
  readonly value: Uint8Array;
}

export class KvStorage {
  readonly #parts: StorageParts;

  constructor(parts: StorageParts) {
    this.#parts = parts;
  }

  get(key: Key): unknown {
    return this.find(key)?.value;
  }

  /** Tells a key whose value is undefined from one that does not exist. */
  find(key: Key): { readonly value: unknown } | undefined {
    this.#parts.transactions.requirePresent();
    const row = this.#parts.database.get<Pick<Row, "value">>(
      sql`SELECT value FROM _signalbox_kv WHERE key = ${String(key)}`,
    );
    return row === undefined ? undefined : { value: deserialize(row.value) };
  }

  put(key: Key, value: unknown): void {
    this.#put(key, toBytes(value));
  }

  #put(key: Key, bytes: Uint8Array): void {
    this.#parts.transactions.open();
    this.#run(
      sql`INSERT INTO _signalbox_kv (key, value) VALUES (${String(key)}, ${bytes})
          ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
    );
  }

  /** Stores all entries, or none if one of the values cannot be copied. */
  putAll(entries: readonly (readonly [Key, unknown])[]): void {
    const copies = entries.map(([key, value]) => [key, toBytes(value)] as const);
    for (const [key, bytes] of copies) this.#put(key, bytes);
  }

  /** True if there was a value. */
  delete(key: Key): boolean {
    this.#parts.transactions.open();
    return this.#run(sql`DELETE FROM _signalbox_kv WHERE key = ${String(key)}`) > 0;
  }

  /** Entries in order of their keys. */
  list(options?: ListOptions | null): IteratorObject<[string, unknown], undefined> {
    this.#parts.transactions.requirePresent();
    const rows = this.#parts.database.all<Row>(toQuery(options ?? {}));
    return rows.values().map(({ key, value }): [string, unknown] => [key, deserialize(value)]);
  }

  /** How much `list` would return, without reading it. */
  measure(options?: ListOptions | null): { readonly count: number; readonly bytes: number } {
    this.#parts.transactions.requirePresent();
    const measured = this.#parts.database.get<{ count: number; bytes: number }>(
      sql`SELECT count(*) AS count, total(length(key) + length(value)) AS bytes FROM (${toQuery(options ?? {})})`,
    );
    return measured ?? { count: 0, bytes: 0 };
  }

  deleteAll(): void {
    this.#parts.transactions.open();
    this.#run(sql`DELETE FROM _signalbox_kv`);
  }

  /** Returns the number of changed rows, which the program can read, too. */
  #run(query: SqlQuery): number {
    const { counters, database } = this.#parts;
    const { changes } = database.run(query);
    counters.wroteOwn(changes);
    return changes;
  }
}

/** A structured clone of the value. */
export function toBytes(value: unknown): Uint8Array {
  try {
    return serialize(value);
  } catch (error) {
    throw new DOMException(error instanceof Error ? error.message : String(error), "DataCloneError");
  }
}

function toQuery({ start, startAfter, end, prefix, reverse, limit }: ListOptions): SqlQuery {
  if (start !== undefined && startAfter !== undefined)
    throw new TypeError("list() cannot be called with both start and startAfter values.");
  if (limit !== undefined && !(limit > 0)) throw new TypeError("List limit must be positive.");
  const conditions: SqlQuery[] = [sql`1`];
  if (start !== undefined) conditions.push(sql`key >= ${start}`);
  if (startAfter !== undefined) conditions.push(sql`key > ${startAfter}`);
  if (end !== undefined) conditions.push(sql`key < ${end}`);
  if (prefix !== undefined && prefix !== "") {
    const bytes = Buffer.from(prefix);
    conditions.push(sql`key >= ${prefix}`, sql`substr(CAST(key AS BLOB), 1, ${bytes.length}) = ${bytes}`);
  }
  const order = reverse === true ? rawSql("DESC") : rawSql("ASC");
  const count = limit === undefined ? -1 : Math.trunc(limit);
  return sql`SELECT key, value FROM _signalbox_kv WHERE ${joinSql(conditions, " AND ")} ORDER BY key ${order} LIMIT ${count}`;
}
