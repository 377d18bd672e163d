/**
 * Compiled statements of one connection, found by the parts of their text. Parts that are constants of the code (a template's own array, which is
 * frozen) are found by identity, all others by their text.
 *
 * A thousand connections are open at a time, each with a cache of its own: what they have in common is kept once, and what few of them need is made
 * when they do. (Weak references would be looked through at each garbage collection, for nothing: constants never go away.)
 */

/** Texts of constants, for all connections. */
const constantTexts = new WeakMap<readonly string[], string>();

/** The statement's text, with a placeholder for each value. */
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

/** The oldest goes when there are too many. */
function add<K, T>(cache: Map<K, T>, key: K, statement: T, maxSize: number): void {
  cache.set(key, statement);
  if (cache.size <= maxSize) return;
  const oldest = cache.keys().next();
  if (!oldest.done) cache.delete(oldest.value);
}
