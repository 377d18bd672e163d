/**
 * Finds the resources that match a query. Each filter becomes a set; sets are intersected and subtracted chunk by chunk in order of resource
 * number, the smallest set first. Resources without tags never match.
 *
 * The sets of one selection are read at different times, without a snapshot; see promise 3 in README.md.
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
  type StoredSetId,
  TYPE_KEY_NO,
  type ValueRow,
} from "./dictionary.ts";
import { listSet, nameSet, type ResourceSet, storedSet, unionSet } from "./resource-set.ts";

/** All conditions must hold. An empty list or null is no condition. */
export interface ResourceQuery {
  readonly filters: readonly TagFilter[];
  readonly isCaseInsensitive: boolean;
  readonly types: readonly string[];
  readonly ids: readonly string[];
  /** Part of the name, compared case-insensitively. */
  readonly name: string | null;
}

/** A filter for resources that have a key or a value. */
export type PositiveTagFilter = Extract<TagFilter, { readonly kind: "has" | "in" }>;

export interface IndexedAccount {
  readonly accountNo: number;
  /** The highest resource number in use; -1 if there is none. */
  readonly lastResource: number;
}

/** After so many milliseconds an evaluation lets others go on. */
const TURN_MS = 4;

export interface SelectionOptions {
  /** A further filter, which is case-sensitive even if the query is not. */
  readonly exact?: PositiveTagFilter | null;
  /** Awaited before an evaluation begins and whenever it has taken the event loop for `TURN_MS`. Default: the next iteration of the event loop. */
  readonly turn?: () => Promise<void>;
  /** Ends the evaluation, with an incomplete result: the caller has left. */
  readonly signal?: AbortSignal | undefined;
}

export class Selection {
  readonly #included: readonly ResourceSet[];
  readonly #excluded: readonly ResourceSet[];
  readonly #lastChunk: number;
  readonly #turn: () => Promise<void>;
  readonly #signal: AbortSignal | undefined;

  private constructor(
    included: readonly ResourceSet[],
    excluded: readonly ResourceSet[],
    lastResource: number,
    turn: () => Promise<void>,
    signal: AbortSignal | undefined,
  ) {
    this.#turn = turn;
    this.#signal = signal;
    this.#included = included.toSorted((a, b) => a.size - b.size);
    this.#excluded = excluded;
    this.#lastChunk = Math.floor(lastResource / CHUNK_SPAN);
  }

  static async of(
    queryable: Queryable,
    { accountNo, lastResource }: IndexedAccount,
    query: ResourceQuery,
    { exact = null, turn = nextTurn, signal }: SelectionOptions = {},
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
    // The other sets also contain resources without tags.
    const hasTagSet =
      exact !== null ||
      query.types.length > 0 ||
      query.filters.some(({ kind }) => kind === "has" || kind === "in");
    if (!hasTagSet) included.push(await sets.all());
    if (query.name !== null) included.push(nameSet(queryable, accountNo, foldCase(query.name)));
    return new Selection(included, excluded, lastResource, turn, signal);
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

  /** The exact number of matching resources. */
  async total(): Promise<number> {
    const [only] = this.#included;
    if (only?.isExact === true && this.#included.length === 1 && this.#excluded.length === 0)
      return only.size;
    let total = 0;
    for await (const { members } of this.#chunks(0)) total += countChunk(members);
    return total;
  }

  /** Waits for a turn; false if the caller has left. */
  async #begins(): Promise<boolean> {
    await this.#turn();
    return this.#signal?.aborted !== true;
  }

  async *#chunks(firstChunk: number): AsyncGenerator<{ chunkNo: number; members: Chunk }> {
    const [smallest, ...others] = this.#included;
    if (smallest === undefined || smallest.size === 0) return;
    if (!(await this.#begins())) return;
    let yieldedAt = performance.now();
    for (const chunkNo of chunkNumbers(smallest, firstChunk, this.#lastChunk)) {
      let members = await smallest.chunk(chunkNo);
      for (const set of others) {
        if (members === null) break;
        members = intersectChunks(members, await set.chunk(chunkNo));
      }
      for (const set of this.#excluded) {
        if (members === null) break;
        members = subtractChunk(members, await set.chunk(chunkNo));
      }
      if (members !== null) yield { chunkNo, members };
      if (performance.now() - yieldedAt < TURN_MS) continue;
      if (!(await this.#begins())) return;
      yieldedAt = performance.now();
    }
  }
}

function* chunkNumbers(set: ResourceSet, first: number, last: number): Generator<number> {
  if (set.chunkNumbers === null) {
    for (let chunkNo = first; chunkNo <= last; chunkNo++) yield chunkNo;
  } else {
    for (const chunkNo of set.chunkNumbers) if (chunkNo >= first) yield chunkNo;
  }
}

/** Creates the sets of the conditions of a query. */
class FilterSets {
  readonly #queryable: Queryable;
  readonly #accountNo: number;
  readonly #isCaseInsensitive: boolean;

  constructor(queryable: Queryable, accountNo: number, isCaseInsensitive: boolean) {
    this.#queryable = queryable;
    this.#accountNo = accountNo;
    this.#isCaseInsensitive = isCaseInsensitive;
  }

  /** For a negative filter, the set to subtract. */
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

  #ofKey(key: KeyRow): Promise<ResourceSet> {
    return storedSet(this.#queryable, this.#idOf(key.key_no, ANY_VALUE_NO), key);
  }

  #ofValue(keyNo: number, value: ValueRow): Promise<ResourceSet> {
    return storedSet(this.#queryable, this.#idOf(keyNo, value.value_no), value);
  }

  #idOf(keyNo: number, valueNo: number): StoredSetId {
    return { accountNo: this.#accountNo, keyNo, valueNo };
  }
}
