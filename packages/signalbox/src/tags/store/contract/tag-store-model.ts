/** For tests: a naive model of the tag store, and random writes and queries. */
import { formatTagFilter, matchesTags, parseTagFilters, type TagFilter } from "@signalbox/protocol";
import * as fc from "fast-check";
import type { ResourceQuery } from "../../../engines/tag-index/index.ts";
import type { TagWrite } from "../tag-write.ts";

interface ModelResource {
  readonly type: string;
  readonly name: string;
  readonly tags: Map<string, string>;
  /** False after a deletion. The resource keeps its position in lists. */
  readonly hasRecord: boolean;
}

/** Keeps resources in the order of their first write, and evaluates filters on each of them. */
export class TagModel {
  readonly #resources = new Map<string, ModelResource>();

  apply(write: TagWrite): void {
    const { id, type } = write.resource;
    const known = this.#resources.get(id);
    if (write.action === "delete") {
      if (known !== undefined) this.#resources.set(id, { ...known, tags: new Map(), hasRecord: false });
      return;
    }
    const tags = write.action === "patch" ? new Map(known?.tags) : new Map<string, string>();
    for (const [key, value] of write.tags) {
      if (value === null) tags.delete(key);
      else tags.set(key, value);
    }
    const hadRecord = known?.hasRecord ?? false;
    if (write.action === "patch" && !hadRecord && tags.size === 0) return;
    const name = write.name ?? (hadRecord ? known?.name : undefined) ?? id;
    this.#resources.set(id, { type, name, tags, hasRecord: true });
  }

  find(wanted: ResourceQuery): string[] {
    return this.#matching(wanted).map(([id]) => id);
  }

  /** The keys, or the values of one key, of the matching resources, each with its number of resources. */
  countEntries(wanted: ResourceQuery, key?: string): Record<string, number> {
    const counts = new Map<string, number>();
    for (const [, { tags }] of this.#matching(wanted)) {
      const value = key === undefined ? undefined : tags.get(key);
      const texts = key === undefined ? tags.keys() : value === undefined ? [] : [value];
      for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
    }
    return Object.fromEntries(counts);
  }

  #matching(wanted: ResourceQuery): [string, ModelResource][] {
    return [...this.#resources].filter(
      ([id, { type, name, tags }]) =>
        tags.size > 0 &&
        matchesTags(wanted.filters, tags, wanted.isCaseInsensitive) &&
        (wanted.types.length === 0 || wanted.types.includes(type)) &&
        (wanted.ids.length === 0 || wanted.ids.includes(id)) &&
        (wanted.name === null || name.toLowerCase().includes(wanted.name.toLowerCase())),
    );
  }
}

// Few resources, keys and values, some of which differ only in case, so that writes overlap and filters match.
const key = fc.constantFrom("env", "Env", "ENV", "team", "a.b-c_d", "ключ", "__proto__");
const value = fc.constantFrom("", "prod", "PROD", "Prod", "a,b", "a\\", "ß", "É", "é", "x=y", "!z");
const number = fc.nat(15);
const typeNames = ["worker", "agent", "queue"] as const;

export const writesArbitrary: fc.Arbitrary<TagWrite[]> = fc.array(
  fc
    .record({
      number,
      action: fc.constantFrom("set", "set", "set", "patch", "patch", "delete" as const),
      entries: fc.array(fc.tuple(key, fc.option(value, { freq: 4 })), { maxLength: 5 }),
      name: fc.constantFrom("Alpha", "beta", "100%_x", "ALPHABET"),
    })
    .map(({ number, action, entries, name }) => ({
      action,
      resource: { type: typeNames[number % 3] ?? "worker", id: `r${number}`, zoneId: "", parentId: "" },
      // Null removes a key in a patch; a set has no nulls.
      tags: new Map(entries.filter(([, value]) => action === "patch" || value !== null)),
      ...(action === "delete" ? {} : { name }),
      condition: null,
      actor: "root",
    })),
  { minLength: 1, maxLength: 30 },
);

const values = fc.array(value, { minLength: 1, maxLength: 4 });
const filter: fc.Arbitrary<TagFilter> = fc.oneof(
  key.map((key): TagFilter => ({ kind: "has", key })),
  key.map((key): TagFilter => ({ kind: "lacks", key })),
  fc.tuple(key, values).map(([key, values]): TagFilter => ({ kind: "in", key, values })),
  fc.tuple(key, values).map(([key, values]): TagFilter => ({ kind: "not_in", key, values })),
);
const mostly = <T>(usual: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other });

export const queriesArbitrary: fc.Arbitrary<ResourceQuery[]> = fc.array(
  fc.record({
    // Formatted and parsed, so that the test covers the filter language.
    filters: fc
      .array(filter, { maxLength: 4 })
      .map((filters) => parseTagFilters(filters.map(formatTagFilter))),
    isCaseInsensitive: fc.boolean(),
    types: mostly<string[]>([], fc.array(fc.constantFrom(...typeNames), { maxLength: 2 })),
    ids: mostly<string[]>(
      [],
      fc.array(
        number.map((n) => `r${n}`),
        { maxLength: 6 },
      ),
    ),
    name: mostly<string | null>(null, fc.constantFrom("alpha", "BET", "%", "_x", "zz")),
  }),
  { minLength: 3, maxLength: 6 },
);
