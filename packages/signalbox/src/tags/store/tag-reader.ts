/** Reads one resource, pages of matching resources, and the data that other areas use (`TagLookup`). */
import { matchesTags, parseCanonicalTags, parseTagFilters } from "@signalbox/protocol";
import type { Database } from "../../database/database.ts";
import { LoopShare } from "../../core/loop-share.ts";
import { sql } from "../../core/sql.ts";
import type { TagLookup } from "../../contracts/tag-lookup.ts";
import type { AccountNumbers } from "./account-numbers.ts";
import { cacheKey, type ResourceCache, type ResourceText } from "./resource-cache.ts";
import {
  readResourceRows,
  type ResourceKey,
  type ResourceRow,
  type TaggedResource,
  toTaggedResource,
} from "./resource-row.ts";
import { type PositiveTagFilter, type ResourceQuery, Selection } from "../../engines/tag-index/index.ts";

export interface ResourcePage {
  readonly resources: readonly TaggedResource[];
  /** The next page begins after this resource number; null on the last page. */
  readonly next: number | null;
}

/** Resources that are read at a time when all matching resources are read. */
const READ_STEP = 1010;

export class TagReader implements TagLookup {
  readonly #database: Database;
  readonly #accounts: AccountNumbers;
  readonly #cache: ResourceCache;
  readonly #render: (resource: TaggedResource) => ResourceText;
  /** Of all evaluations: on SQLite they compute in the event loop, and an account may ask for hundreds at once. */
  readonly #share = new LoopShare();

  constructor(
    database: Database,
    accounts: AccountNumbers,
    cache: ResourceCache,
    render: (resource: TaggedResource) => ResourceText,
  ) {
    this.#database = database;
    this.#accounts = accounts;
    this.#cache = cache;
    this.#render = render;
  }

  /** The result of `findText` if it is cached, otherwise undefined. */
  peek(accountId: string, key: ResourceKey): ResourceText | undefined {
    const accountNo = this.#accounts.known(accountId);
    return accountNo === undefined ? undefined : this.#cache.get(cacheKey(accountNo, key));
  }

  /** Null if the resource was never tagged or its tags were deleted. */
  async find(accountId: string, key: ResourceKey): Promise<TaggedResource | null> {
    const accountNo = await this.#accounts.find(accountId);
    return accountNo === null ? null : this.#read(accountNo, key);
  }

  /** The rendered resource; the result is cached. */
  async findText(accountId: string, key: ResourceKey): Promise<ResourceText | null> {
    const accountNo = this.#accounts.known(accountId) ?? (await this.#accounts.find(accountId));
    if (accountNo === null) return null;
    const { generation } = this.#cache;
    const resource = await this.#read(accountNo, key);
    if (resource === null) return null;
    const text = this.#render(resource);
    this.#cache.put(cacheKey(accountNo, key), text, generation);
    return text;
  }

  /** All resources with this type and id, in any zone and with any parent. */
  async findAll(accountId: string, type: string, id: string): Promise<TaggedResource[]> {
    const accountNo = await this.#accounts.find(accountId);
    if (accountNo === null) return [];
    const rows = await this.#database.all<ResourceRow>(
      sql`SELECT resource_no, type, id, zone_id, parent_id, name, tags, etag, updated_at FROM tag_resource
          WHERE account_no = ${accountNo} AND id = ${id} AND type = ${type}`,
    );
    return rows.map(toTaggedResource).filter((resource) => resource !== null);
  }

  /** The signal ends an evaluation, with an incomplete result: the caller has left. */
  async list(
    accountId: string,
    query: ResourceQuery,
    after: number,
    limit: number,
    signal?: AbortSignal,
  ): Promise<ResourcePage> {
    const selected = await this.#select(accountId, query, { signal });
    if (selected === null) return { resources: [], next: null };
    const numbers = await selected.selection.page(after, limit + 1);
    const next = numbers.length > limit ? (numbers[limit - 1] ?? null) : null;
    return { resources: await this.#readMatching(selected.accountNo, numbers.slice(0, limit), query), next };
  }

  /** The numbers of the next matching resources. Those that are changed meanwhile may be missing or no longer match. */
  async numbers(
    accountId: string,
    query: ResourceQuery,
    after: number,
    limit: number,
  ): Promise<readonly number[]> {
    return (await (await this.#select(accountId, query))?.selection.page(after, limit)) ?? [];
  }

  /** The exact number of matching resources, and the highest number that a resource of the account has; -1 without resources. */
  async extent(accountId: string, query: ResourceQuery): Promise<{ total: number; last: number }> {
    const selected = await this.#select(accountId, query);
    if (selected === null) return { total: 0, last: -1 };
    return { total: await selected.selection.total(), last: selected.lastResource };
  }

  async total(accountId: string, query: ResourceQuery, signal?: AbortSignal): Promise<number> {
    return (await (await this.#select(accountId, query, { signal }))?.selection.total()) ?? 0;
  }

  /** The number of matching resources that also match a case-sensitive filter. */
  async totalWith(accountId: string, query: ResourceQuery, exact: PositiveTagFilter): Promise<number> {
    return (await (await this.#select(accountId, query, { exact }))?.selection.total()) ?? 0;
  }

  /** Resolves when a list of the account may take the event loop for some milliseconds. */
  turn(accountId: string): Promise<void> {
    return this.#share.step(accountId);
  }

  async matchingIds(
    accountId: string,
    type: string,
    filters: readonly string[],
  ): Promise<ReadonlySet<string> | null> {
    const parsed = parseTagFilters(filters);
    if (parsed.length === 0) return null;
    const ids = new Set<string>();
    const query = { ...EVERYTHING, filters: parsed, types: [type] };
    for await (const resource of this.#readAll(accountId, query)) ids.add(resource.id);
    return ids;
  }

  async valuesOf(accountId: string, type: string, key: string): Promise<ReadonlyMap<string, string>> {
    const values = new Map<string, string>();
    const query = { ...EVERYTHING, filters: [{ kind: "has" as const, key }], types: [type] };
    for await (const resource of this.#readAll(accountId, query)) {
      const value = parseCanonicalTags(resource.tags).get(key);
      if (value !== undefined) values.set(resource.id, value);
    }
    return values;
  }

  async #read(accountNo: number, key: ResourceKey): Promise<TaggedResource | null> {
    // Only the columns that are not part of the key: reading a column takes about as long as reading a page of the index.
    const row = await this.#database.get<Pick<ResourceRow, "name" | "tags" | "etag" | "updated_at">>(
      sql`SELECT name, tags, etag, updated_at FROM tag_resource
          WHERE account_no = ${accountNo} AND id = ${key.id} AND type = ${key.type}
            AND zone_id = ${key.zoneId} AND parent_id = ${key.parentId}`,
    );
    if (row === undefined || row.tags === null) return null;
    const { name, tags, etag, updated_at: updatedAt } = row;
    return { ...key, name, tags, etag, updatedAt };
  }

  async *#readAll(accountId: string, query: ResourceQuery): AsyncGenerator<TaggedResource> {
    const selected = await this.#select(accountId, query);
    if (selected === null) return;
    for (let after = -1; ;) {
      const numbers = await selected.selection.page(after, READ_STEP);
      yield* await this.#readMatching(selected.accountNo, numbers, query);
      const last = numbers.at(-1);
      if (numbers.length < READ_STEP || last === undefined) return;
      after = last;
    }
  }

  async #select(
    accountId: string,
    query: ResourceQuery,
    { exact = null, signal }: { exact?: PositiveTagFilter | null; signal?: AbortSignal | undefined } = {},
  ): Promise<{ accountNo: number; lastResource: number; selection: Selection } | null> {
    const accountNo = await this.#accounts.find(accountId);
    if (accountNo === null) return null;
    const row = await this.#database.get<{ next_resource: number }>(
      sql`SELECT next_resource FROM tag_account WHERE account_no = ${accountNo}`,
    );
    const account = { accountNo, lastResource: (row?.next_resource ?? 0) - 1 };
    const turn = () => this.turn(accountId);
    return {
      ...account,
      selection: await Selection.of(this.#database, account, query, { exact, turn, signal }),
    };
  }

  /** Omits rows that changed after their number was found and no longer match, so that a response never contradicts its filter. */
  async #readMatching(
    accountNo: number,
    numbers: readonly number[],
    query: ResourceQuery,
  ): Promise<TaggedResource[]> {
    const rows = await readResourceRows(this.#database, accountNo, numbers);
    return rows.map(toTaggedResource).filter((resource): resource is TaggedResource => {
      if (resource === null) return false;
      const tags = parseCanonicalTags(resource.tags);
      return tags.size > 0 && matchesTags(query.filters, tags, query.isCaseInsensitive);
    });
  }
}

const EVERYTHING: ResourceQuery = {
  filters: [],
  isCaseInsensitive: false,
  types: [],
  ids: [],
  name: null,
};
