/**
 * Keys and values of the resources that match a query, with exact counts. If few resources match, they are read and their tags are counted,
 * which costs as much as a few pages of the list of resources. Otherwise each key (or value) of the account is counted in the index, which costs
 * one total per entry.
 */
import { parseCanonicalTags, type Tags } from "@signalbox/protocol";
import {
  type PositiveTagFilter,
  prefixRange,
  type ResourceQuery,
  toSortKey,
} from "../../engines/tag-index/index.ts";
import type { TagReader } from "./tag-reader.ts";
import type { TagVocabulary, Vocabulary, VocabularyEntry, VocabularyQuery } from "./tag-vocabulary.ts";

/** Up to this many resources are read, which takes a few milliseconds. */
const MAX_READ = 1000;
/** Entries of the account that are read at a time. */
const PAGE = 100;

export interface FilteredVocabularyOptions {
  /** Ends the evaluation early, with an incomplete result. */
  readonly signal: AbortSignal;
  /** Default 1000. */
  readonly maxRead?: number;
}

/** What is listed: the keys, or the values of one key. */
interface EntryKind {
  readonly textsOf: (tags: Tags) => Iterable<string>;
  readonly readAll: (query: VocabularyQuery) => Promise<VocabularyEntry[]>;
  readonly filterOf: (text: string) => PositiveTagFilter;
}

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
    { signal, maxRead = MAX_READ }: FilteredVocabularyOptions,
  ) {
    this.#all = all;
    this.#reader = reader;
    this.#query = query;
    this.#signal = signal;
    this.#maxRead = maxRead;
  }

  keys(accountId: string, query: VocabularyQuery): Promise<VocabularyEntry[]> {
    return this.#entries(accountId, query, {
      textsOf: (tags) => tags.keys(),
      readAll: (page) => this.#all.keys(accountId, page),
      filterOf: (key) => ({ kind: "has", key }),
    });
  }

  values(
    accountId: string,
    key: string,
    type: string | null,
    query: VocabularyQuery,
  ): Promise<VocabularyEntry[]> {
    return this.#entries(accountId, query, {
      textsOf: (tags) => {
        const value = tags.get(key);
        return value === undefined ? [] : [value];
      },
      readAll: (page) => this.#all.values(accountId, key, type, page),
      filterOf: (value) => ({ kind: "in", key, values: [value] }),
    });
  }

  async #entries(accountId: string, query: VocabularyQuery, kind: EntryKind): Promise<VocabularyEntry[]> {
    const { resources, next } = await this.#reader.list(accountId, this.#query, -1, this.#maxRead);
    if (next !== null) return this.#countEach(accountId, query, kind);
    const uses = new Map<string, number>();
    for (const resource of resources) {
      for (const text of kind.textsOf(parseCanonicalTags(resource.tags)))
        uses.set(text, (uses.get(text) ?? 0) + 1);
    }
    return pageOf(uses, query);
  }

  async #countEach(accountId: string, query: VocabularyQuery, kind: EntryKind): Promise<VocabularyEntry[]> {
    const found: VocabularyEntry[] = [];
    for (let { after } = query; ;) {
      const page = await kind.readAll({ prefix: query.prefix, after, limit: PAGE });
      for (const entry of page) {
        // Entries are case-sensitive even if the query is not.
        const uses = await this.#reader.totalWith(accountId, this.#query, kind.filterOf(entry.text));
        if (uses > 0) found.push({ ...entry, uses });
        if (found.length === query.limit) return found;
        if (this.#signal.aborted) return found;
        await this.#reader.turn(accountId);
      }
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return found;
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
