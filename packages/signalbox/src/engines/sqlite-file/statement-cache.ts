/**
 * Compiled statements of one connection, by the parts of their text. Parts that are constants of the code (the frozen array of a template) are found
 * by identity, all others by their text. The oldest statement is evicted.
 *
 * A thousand connections may be open, each with its own cache: the texts of constants are cached once per process, and the map by text is created
 * lazily. (Weak maps per connection would be scanned by every garbage collection, although constants are never collected.)
 */

/** Texts of constants, for all connections. */
const constantTexts = new WeakMap<readonly string[], string>();

/** The text of the statement, with a placeholder for each value. */
export function textOf(parts: readonly string[]): string {
  if (!Object.isFrozen(parts)) return parts.join("?");
  let text = constantTexts.get(parts);
  if (text === undefined) {
    text = parts.join("?");
    constantTexts.set(parts, text);
  }
  return text;
}

export class StatementCache<T> {
  readonly #byParts = new Map<readonly string[], T>();
  #byText: Map<string, T> | null = null;
  readonly #maxSize: number;

  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  get(parts: readonly string[]): T | undefined {
    const known = this.#byParts.get(parts);
    if (known !== undefined || this.#byText === null || Object.isFrozen(parts)) return known;
    return this.#byText.get(textOf(parts));
  }

  set(parts: readonly string[], statement: T): void {
    if (Object.isFrozen(parts)) add(this.#byParts, parts, statement, this.#maxSize);
    else {
      this.#byText ??= new Map();
      add(this.#byText, textOf(parts), statement, this.#maxSize);
    }
  }

  clear(): void {
    this.#byParts.clear();
    this.#byText = null;
  }
}

function add<K, T>(cache: Map<K, T>, key: K, statement: T, maxSize: number): void {
  cache.set(key, statement);
  if (cache.size <= maxSize) return;
  const oldest = cache.keys().next();
  if (!oldest.done) cache.delete(oldest.value);
}
