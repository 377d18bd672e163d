/** The keys and values in use, of all resources or of those that filters find. */
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

  /** Null: of all. The signal ends what may take long. */
  among(query: ResourceQuery | null, signal: () => AbortSignal): Vocabulary {
    return query === null ? this.#all : new FilteredVocabulary(this.#all, this.#reader, query, signal());
  }
}
