/**
 * Keys and values of the resources that filters find. Two ways, both exact: few resources are read and their tags counted; of many, the
 * account's keys (or values of a key) are walked in order, and the index says of each how many of the found resources carry it. The
 * first costs as much as a few pages of the list of resources, the second as much as one count for each entry walked.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { parseCanonicalTags, type TagFilter } from "@signalbox/protocol";
import { prefixRange, type ResourceQuery, toSortKey } from "../../engines/tag-index/index.ts";
import type { TagReader } from "./tag-reader.ts";
import type { TagVocabulary, Vocabulary, VocabularyEntry, VocabularyQuery } from "./tag-vocabulary.ts";

/** Up to this many resources are read: some milliseconds. */
const MAX_READ = 1000;
/** Entries of the account's vocabulary that are walked at a time. */
const WALK = 100;

export class FilteredVocabulary implements Vocabulary {
  readonly #all: TagVocabulary;
  readonly #reader: TagReader;
  readonly #query: ResourceQuery;
  readonly #signal: AbortSignal;
  readonly #maxRead: number;

  constructor(
    all: TagVocabulary,
    reader: TagReader,
    query: ResourceQuery,
    signal: AbortSignal,
    maxRead = MAX_READ,
  ) {
    this.#all = all;
    this.#reader = reader;
    this.#query = query;
    this.#signal = signal;
    this.#maxRead = maxRead;
  }

  keys(accountId: string, query: VocabularyQuery): Promise<VocabularyEntry[]> {
    return this.#entries(
      accountId,
      query,
      (tags) => tags.keys(),
      (part) => this.#all.keys(accountId, part),
      (key) => ({ kind: "has", key }),
    );
  }

  values(
    accountId: string,
    key: string,
    type: string | null,
    query: VocabularyQuery,
  ): Promise<VocabularyEntry[]> {
    return this.#entries(
      accountId,
      query,
      (tags) => {
        const value = tags.get(key);
        return value === undefined ? [] : [value];
      },
      (part) => this.#all.values(accountId, key, type, part),
      (value) => ({ kind: "in", key, values: [value] }),
    );
  }

  async #entries(
    accountId: string,
    query: VocabularyQuery,
    wordsOf: (tags: ReadonlyMap<string, string>) => Iterable<string>,
    walk: (part: VocabularyQuery) => Promise<VocabularyEntry[]>,
    filterOf: (word: string) => TagFilter,
  ): Promise<VocabularyEntry[]> {
    const { resources, next } = await this.#reader.list(accountId, this.#query, -1, this.#maxRead);
    if (next !== null) return this.#walk(accountId, query, walk, filterOf);
    const uses = new Map<string, number>();
    for (const resource of resources) {
      for (const word of wordsOf(parseCanonicalTags(resource.tags)))
        uses.set(word, (uses.get(word) ?? 0) + 1);
    }
    return pageOf(uses, query);
  }

  async #walk(
    accountId: string,
    query: VocabularyQuery,
    walk: (part: VocabularyQuery) => Promise<VocabularyEntry[]>,
    filterOf: (word: string) => TagFilter,
  ): Promise<VocabularyEntry[]> {
    const found: VocabularyEntry[] = [];
    for (let { after } = query; ;) {
      const part = await walk({ prefix: query.prefix, after, limit: WALK });
      for (const entry of part) {
        // The word stands as it is written: only the filters of the request may ignore case.
        const uses = await this.#reader.totalWith(accountId, this.#query, filterOf(entry.text));
        if (uses > 0) found.push({ ...entry, uses });
        if (found.length === query.limit) return found;
        // The caller has left; no one reads the rest.
        if (this.#signal.aborted) return found;
        await nextTurn();
      }
      const last = part.at(-1);
      if (last === undefined || part.length < WALK) return found;
      after = last.sortKey;
    }
  }
}

function pageOf(uses: ReadonlyMap<string, number>, query: VocabularyQuery): VocabularyEntry[] {
  const range = query.prefix === "" ? null : prefixRange(query.prefix);
  const entries: VocabularyEntry[] = [];
  for (const [text, count] of uses) {
    const sortKey = toSortKey(text);
    if (range !== null && (isBelow(sortKey, range.low) || !isBelow(sortKey, range.high))) continue;
    if (query.after === null || isBelow(query.after, sortKey)) entries.push({ text, uses: count, sortKey });
  }
  return entries.sort((a, b) => Buffer.compare(a.sortKey, b.sortKey)).slice(0, query.limit);
}

function isBelow(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) < 0;
}
