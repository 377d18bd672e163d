/** Pages of an agent's instances: in several orders, with search, tag filters and those with problems. */
import type { TagLookup } from "../../contracts/tag-lookup.ts";
import type { CatalogEntry, InstanceCatalog } from "../instance/instance-catalog.ts";
import {
  type EntryPage,
  type InstanceOrder,
  type InstancePages,
  type ProblemRule,
  parseCursor,
  problemsOf,
  toCursor,
  valueOf,
} from "../instance/instance-pages.ts";
import { byNaturalName } from "../instance/natural-name.ts";

export interface ListQuery {
  readonly search?: string | undefined;
  /** The `next` of the previous page. */
  readonly cursor?: string | undefined;
  readonly limit: number;
  readonly order: InstanceOrder;
  readonly rule?: ProblemRule | undefined;
  /** Names of instances of the agent that are stuck. */
  readonly stuck: readonly string[];
  /** Values of the `tag` parameters. */
  readonly tags: readonly string[];
}

export interface ListParts {
  readonly catalog: InstanceCatalog;
  readonly pages: InstancePages;
  readonly tags: TagLookup | undefined;
}

/** Names that are looked up in the catalog at once. */
const CHUNK = 500;

export async function listInstances(
  { catalog, pages, tags }: ListParts,
  account: string,
  agent: string,
  query: ListQuery,
): Promise<EntryPage> {
  const ids =
    tags === undefined || query.tags.length === 0
      ? null
      : await tags.matchingIds(account, "agent", query.tags);
  if (ids === null) return pages.page({ ...query, account, agent });
  return listTagged(catalog, account, agent, ids, query);
}

/** Tags may exist for instances that do not: all matching names are looked up. */
async function listTagged(
  catalog: InstanceCatalog,
  account: string,
  agent: string,
  ids: ReadonlySet<string>,
  query: ListQuery,
): Promise<EntryPage> {
  const prefix = `${agent}/`;
  const search = query.search?.toLowerCase();
  const names = [...ids]
    .filter((id) => id.startsWith(prefix))
    .map((id) => id.slice(prefix.length))
    .filter((name) => search === undefined || name.toLowerCase().includes(search));
  const entries = new Map<string, CatalogEntry>();
  for (let i = 0; i < names.length; i += CHUNK) {
    const found = await catalog.findMany(account, agent, names.slice(i, i + CHUNK));
    for (const entry of found) if (hasProblem(entry, query)) entries.set(entry.name, entry);
  }
  const sorted = inOrder([...entries.values()], query);
  const page = sorted.slice(0, query.limit);
  const last = page.at(-1);
  return {
    entries: page,
    next: sorted.length > query.limit && last !== undefined ? cursorOf(last, query.order) : null,
  };
}

function hasProblem(entry: CatalogEntry, { rule, stuck }: ListQuery): boolean {
  if (rule === undefined) return true;
  const found = problemsOf(entry, rule.since, stuck.includes(entry.name));
  return rule.problem === "any" ? found.length > 0 : found.includes(rule.problem);
}

/** Those after the cursor, whose instance need not exist any more. */
function inOrder(entries: readonly CatalogEntry[], { order, cursor }: ListQuery): CatalogEntry[] {
  if (order === "name") {
    const byName = new Map(entries.map((entry) => [entry.name, entry]));
    const names = byNaturalName([...byName.keys()]).after(cursor, entries.length);
    return names.flatMap((name) => byName.get(name) ?? []);
  }
  const place = (entry: CatalogEntry): Place => ({ value: valueOf(entry, order), name: entry.name });
  const sorted = entries.toSorted((a, b) => comparePlaces(place(a), place(b)));
  if (cursor === undefined) return sorted;
  const [value, name] = parseCursor(cursor, 2);
  const last = { value: Number(value), name: String(name) };
  return sorted.filter((entry) => comparePlaces(place(entry), last) > 0);
}

interface Place {
  readonly value: number;
  readonly name: string;
}

/** Large values first, then by name. */
function comparePlaces(a: Place, b: Place): number {
  if (a.value !== b.value) return b.value - a.value;
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

function cursorOf(entry: CatalogEntry, order: InstanceOrder): string {
  return order === "name" ? entry.name : toCursor([valueOf(entry, order), entry.name]);
}
