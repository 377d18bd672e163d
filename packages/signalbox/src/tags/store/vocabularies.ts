/** Selects the vocabulary of all resources or of those that match a query. */
import type { TagReader } from "./tag-reader.ts";
import { FilteredVocabulary } from "./filtered-vocabulary.ts";
import type { ResourceQuery } from "../../engines/tag-index/index.ts";
import type { TagVocabulary, Vocabulary } from "./tag-vocabulary.ts";

export class Vocabularies {
  readonly #all: TagVocabulary;
  readonly #reader: TagReader;

  constructor(all: TagVocabulary, reader: TagReader) {
    this.#all = all;
    this.#reader = reader;
  }

  /** Null means all resources. The signal ends a long evaluation. */
  of(query: ResourceQuery | null, signal: () => AbortSignal): Vocabulary {
    if (query === null) return this.#all;
    return new FilteredVocabulary(this.#all, this.#reader, query, { signal: signal() });
  }
}
