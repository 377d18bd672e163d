/** Pages of an agent's instances by name, with search and tag filters. */
import type { TagLookup } from "../../contracts/tag-lookup.ts";
import type { CatalogEntry, InstanceCatalog } from "../instance/instance-catalog.ts";

export interface ListQuery {
  readonly search?: string | undefined;
  /** Name of the last instance of the previous page. */
  readonly cursor?: string | undefined;
  readonly limit: number;
  /** Values of the `tag` parameters. */
  readonly tags: readonly string[];
}

export interface InstancePage {
  readonly entries: readonly CatalogEntry[];
  readonly next: string | null;
}

export async function listInstances(
  catalog: InstanceCatalog,
  tags: TagLookup | undefined,
  account: string,
  agent: string,
  query: ListQuery,
): Promise<InstancePage> {
  const ids =
    tags === undefined || query.tags.length === 0
      ? null
      : await tags.matchingIds(account, "agent", query.tags);
  const wanted = query.limit + 1;
  const found =
    ids === null
      ? await catalog.list(account, agent, { search: query.search, after: query.cursor, limit: wanted })
      : await listTagged(catalog, account, agent, ids, query, wanted);
  const entries = found.slice(0, query.limit);
  return { entries, next: found.length > query.limit ? (entries.at(-1)?.name ?? null) : null };
}

/** Tags may exist for instances that do not, so matching names are looked up in the catalog until the page is full. */
async function listTagged(
  catalog: InstanceCatalog,
  account: string,
  agent: string,
  ids: ReadonlySet<string>,
  query: ListQuery,
  wanted: number,
): Promise<CatalogEntry[]> {
  const prefix = `${agent}/`;
  const search = query.search?.toLowerCase();
  const names = [...ids]
    .filter((id) => id.startsWith(prefix))
    .map((id) => id.slice(prefix.length))
    .filter((name) => query.cursor === undefined || compareUtf8(name, query.cursor) > 0)
    .filter((name) => search === undefined || name.toLowerCase().includes(search))
    .sort(compareUtf8);
  const found: CatalogEntry[] = [];
  for (let i = 0; i < names.length && found.length < wanted; i += wanted) {
    const entries = await catalog.findMany(account, agent, names.slice(i, i + wanted));
    found.push(...entries);
  }
  return found.slice(0, wanted);
}

/** The order of the catalog, so that cursors are the same with and without filters. */
function compareUtf8(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
