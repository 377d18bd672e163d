/**
 * From filters to the resources that match: every filter becomes a set, sets are intersected and subtracted chunk by chunk in order of
 * resource number, the smallest first. Only resources that carry tags now are in the universe.
 *
 * Rows may change between two reads of one evaluation. A resource that nobody touches is in the same sets throughout (bitmaps are added
 * and kept in step, never dropped, and postings are not taken away when they come), so it is found exactly once; one that is being changed may show its old or its new side, which is
 * why readers check the rows they return.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { foldCase, type TagFilter } from "@signalbox/protocol";
import type { Queryable } from "../../core/queryable.ts";
import { sql, sqlList } from "../../core/sql.ts";
import {
  type Chunk,
  CHUNK_SPAN,
  collectMembers,
  countChunk,
  intersectChunks,
  subtractChunk,
} from "./chunk.ts";
import {
  ANY_VALUE_NO,
  findFoldedKeys,
  findFoldedValues,
  findKey,
  findTypeKey,
  findValue,
  type KeyRow,
  TYPE_KEY_NO,
  type ValueRow,
} from "./dictionary.ts";
import { bitmapSet, listSet, nameSet, type ResourceSet, unionSet } from "./resource-set.ts";

/** What a list asks for; parts that are empty or null do not restrict it. */
export interface ResourceQuery {
  readonly filters: readonly TagFilter[];
  readonly isCaseInsensitive: boolean;
  readonly types: readonly string[];
  readonly ids: readonly string[];
  readonly name: string | null;
}

/** Chunks after which a long evaluation lets other work in: a few milliseconds. */
const CHUNKS_PER_TURN = 128;

export class Selection {
  readonly #included: readonly ResourceSet[];
  readonly #excluded: readonly ResourceSet[];
  readonly #lastChunk: number;

  private constructor(
    included: readonly ResourceSet[],
    excluded: readonly ResourceSet[],
    lastResource: number,
  ) {
    this.#included = included.toSorted((a, b) => a.size - b.size);
    this.#excluded = excluded;
    this.#lastChunk = Math.floor(lastResource / CHUNK_SPAN);
  }

  static async of(
    queryable: Queryable,
    accountNo: number,
    lastResource: number,
    query: ResourceQuery,
    exact: TagFilter | null = null,
  ): Promise<Selection> {
    const sets = new FilterSets(queryable, accountNo, query.isCaseInsensitive);
    const included: ResourceSet[] = [];
    const excluded: ResourceSet[] = [];
    for (const filter of query.filters) {
      const isPositive = filter.kind === "has" || filter.kind === "in";
      (isPositive ? included : excluded).push(await sets.ofFilter(filter));
    }
    if (exact !== null) included.push(await new FilterSets(queryable, accountNo, false).ofFilter(exact));
    if (query.types.length > 0) included.push(await sets.ofTypes(query.types));
    if (query.ids.length > 0) included.push(await sets.ofIds(query.ids));
    // Ids and names know nothing of whether a resource still has tags; the set of all tagged ones does.
    const hasTagSet =
      exact !== null ||
      query.types.length > 0 ||
      query.filters.some(({ kind }) => kind === "has" || kind === "in");
    if (!hasTagSet) included.push(await sets.all());
    if (query.name !== null) included.push(nameSet(queryable, accountNo, foldCase(query.name)));
    return new Selection(included, excluded, lastResource);
  }

  /** Up to `limit` resource numbers above `after`, ascending. */
  async page(after: number, limit: number): Promise<number[]> {
    const found: number[] = [];
    const first = after + 1;
    for await (const { chunkNo, members } of this.#chunks(Math.floor(first / CHUNK_SPAN))) {
      const base = chunkNo * CHUNK_SPAN;
      collectMembers(members, Math.max(0, first - base), base, limit, found);
      if (found.length >= limit) break;
    }
    return found;
  }

  async total(): Promise<number> {
    const [only] = this.#included;
    if (only?.isExact === true && this.#included.length === 1 && this.#excluded.length === 0)
      return only.size;
    let total = 0;
    for await (const { members } of this.#chunks(0)) total += countChunk(members);
    return total;
  }

  async *#chunks(firstChunk: number): AsyncGenerator<{ chunkNo: number; members: Chunk }> {
    const [driver, ...others] = this.#included;
    if (driver === undefined || driver.size === 0) return;
    let sinceTurn = 0;
    for (const chunkNo of chunkNumbers(driver, firstChunk, this.#lastChunk)) {
      let members = await driver.chunk(chunkNo);
      for (const set of others) {
        if (members === null) break;
        members = intersectChunks(members, await set.chunk(chunkNo));
      }
      for (const set of this.#excluded) {
        if (members === null) break;
        members = subtractChunk(members, await set.chunk(chunkNo));
      }
      if (members !== null) yield { chunkNo, members };
      if (++sinceTurn % CHUNKS_PER_TURN === 0) await nextTurn();
    }
  }
}

function* chunkNumbers(driver: ResourceSet, first: number, last: number): Generator<number> {
  if (driver.chunkNumbers === null) {
    for (let chunkNo = first; chunkNo <= last; chunkNo++) yield chunkNo;
  } else {
    for (const chunkNo of driver.chunkNumbers) if (chunkNo >= first) yield chunkNo;
  }
}

/** Turns the parts of a query into sets. */
class FilterSets {
  readonly #queryable: Queryable;
  readonly #accountNo: number;
  readonly #isCaseInsensitive: boolean;

  constructor(queryable: Queryable, accountNo: number, isCaseInsensitive: boolean) {
    this.#queryable = queryable;
    this.#accountNo = accountNo;
    this.#isCaseInsensitive = isCaseInsensitive;
  }

  /** What the filter names; for a negative filter that is what must be taken away. */
  async ofFilter(filter: TagFilter): Promise<ResourceSet> {
    const sets: ResourceSet[] = [];
    for (const key of await this.#keys(filter.key)) {
      if (filter.kind === "has" || filter.kind === "lacks") {
        sets.push(await this.#ofKey(key));
      } else {
        for (const value of new Set(filter.values)) {
          for (const row of await this.#values(key.key_no, value)) {
            sets.push(await this.#ofValue(key.key_no, row));
          }
        }
      }
    }
    return unionSet(sets);
  }

  async ofTypes(types: readonly string[]): Promise<ResourceSet> {
    const sets: ResourceSet[] = [];
    for (const type of new Set(types)) {
      const row = await findValue(this.#queryable, this.#accountNo, TYPE_KEY_NO, type);
      if (row !== undefined) sets.push(await this.#ofValue(TYPE_KEY_NO, row));
    }
    return unionSet(sets);
  }

  async ofIds(ids: readonly string[]): Promise<ResourceSet> {
    const rows = await this.#queryable.all<{ resource_no: number }>(
      sql`SELECT resource_no FROM tag_resource
          WHERE account_no = ${this.#accountNo} AND id IN (${sqlList([...new Set(ids)])}) ORDER BY resource_no`,
    );
    return listSet(rows.map((row) => row.resource_no));
  }

  async all(): Promise<ResourceSet> {
    const key = await findTypeKey(this.#queryable, this.#accountNo);
    return key === undefined ? listSet([]) : this.#ofKey(key);
  }

  async #keys(key: string): Promise<KeyRow[]> {
    if (this.#isCaseInsensitive) return findFoldedKeys(this.#queryable, this.#accountNo, key);
    const row = await findKey(this.#queryable, this.#accountNo, key);
    return row === undefined ? [] : [row];
  }

  async #values(keyNo: number, value: string): Promise<ValueRow[]> {
    if (this.#isCaseInsensitive) return findFoldedValues(this.#queryable, this.#accountNo, keyNo, value);
    const row = await findValue(this.#queryable, this.#accountNo, keyNo, value);
    return row === undefined ? [] : [row];
  }

  async #ofKey(key: KeyRow): Promise<ResourceSet> {
    if (key.has_bitmap === 1) {
      return bitmapSet(this.#queryable, this.#accountNo, key.key_no, ANY_VALUE_NO, key.uses);
    }
    const rows = await this.#queryable.all<{ resource_no: number }>(
      sql`SELECT resource_no FROM tag_posting WHERE account_no = ${this.#accountNo} AND key_no = ${key.key_no}`,
    );
    return listSet(rows.map((row) => row.resource_no).sort((a, b) => a - b));
  }

  async #ofValue(keyNo: number, value: ValueRow): Promise<ResourceSet> {
    if (value.has_bitmap === 1) {
      return bitmapSet(this.#queryable, this.#accountNo, keyNo, value.value_no, value.uses);
    }
    const rows = await this.#queryable.all<{ resource_no: number }>(
      sql`SELECT resource_no FROM tag_posting
          WHERE account_no = ${this.#accountNo} AND key_no = ${keyNo} AND value_no = ${value.value_no}
          ORDER BY resource_no`,
    );
    return listSet(rows.map((row) => row.resource_no));
  }
}
