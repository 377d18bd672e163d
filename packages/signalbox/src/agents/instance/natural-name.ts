/** Names in the order that people expect: numbers in them by value, so that `ticket-2` is before `ticket-10`. */

interface Keyed {
  readonly name: string;
  readonly key: string;
}

export interface SortedNames {
  /** The names after a name, which need not exist; from the beginning without one. */
  after(cursor: string | undefined, limit: number): string[];
}

export function byNaturalName(names: readonly string[]): SortedNames {
  const sorted = names.map(keyed).toSorted(compare);
  return {
    after(cursor, limit) {
      const last = cursor === undefined ? null : keyed(cursor);
      const start = last === null ? 0 : sorted.findIndex((one) => compare(one, last) > 0);
      return start < 0 ? [] : sorted.slice(start, start + limit).map(({ name }) => name);
    },
  };
}

/** A number is preceded by its length, so that texts are ordered like numbers. Names have at most 256 characters. */
function keyed(name: string): Keyed {
  const key = name.replaceAll(/\d+/g, (digits) => {
    const number = digits.replace(/^0+(?=\d)/, "");
    return `0${String.fromCharCode(0x100 + number.length)}${number}`;
  });
  return { name, key };
}

/** `01` and `1` have one key: then the names decide. */
function compare(a: Keyed, b: Keyed): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}
