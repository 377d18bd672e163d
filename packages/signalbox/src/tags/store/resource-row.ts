/** Tagged resources and their rows in the table `tag_resource`. */
import { LookUps } from "../../core/look-ups.ts";
import type { Queryable } from "../../database/database.ts";
import { sql, SqlQuery, type SqlValue } from "../../core/sql.ts";

/** Identifies a resource within its account. */
export interface ResourceKey {
  readonly type: string;
  readonly id: string;
  /** Empty for resources of the account itself. */
  readonly zoneId: string;
  /** The id of the parent, for types that have one; otherwise empty. */
  readonly parentId: string;
}

export interface TaggedResource extends ResourceKey {
  readonly name: string;
  readonly etag: string;
  /** Canonical JSON. */
  readonly tags: string;
  readonly updatedAt: number;
}

export interface ResourceRow {
  readonly resource_no: number;
  readonly type: string;
  readonly id: string;
  readonly zone_id: string;
  readonly parent_id: string;
  readonly name: string;
  /** Null if the tags were deleted; the row is kept for the history. */
  readonly tags: string | null;
  readonly etag: string;
  readonly updated_at: number;
}

/** Rows that one statement reads: a page, and one more to know whether another page follows. */
const NUMBERS_PER_STATEMENT = 101;

export function findResourceRow(
  queryable: Queryable,
  accountNo: number,
  key: ResourceKey,
): Promise<ResourceRow | undefined> {
  return queryable.get<ResourceRow>(
    sql`SELECT resource_no, type, id, zone_id, parent_id, name, tags, etag, updated_at FROM tag_resource
        WHERE account_no = ${accountNo} AND id = ${key.id} AND type = ${key.type}
          AND zone_id = ${key.zoneId} AND parent_id = ${key.parentId}`,
  );
}

/** A text that two keys of an account share only if they are equal. NUL separates the parts; none of them can contain NUL. */
export function identityOf({ type, id, zoneId, parentId }: ResourceKey): string {
  return `${type}\0${id}\0${zoneId}\0${parentId}`;
}

const BY_KEY = new LookUps<ResourceRow>(
  "resource_no, type, id, zone_id, parent_id, name, tags, etag, updated_at",
  "tag_resource",
  ["account_no", "id", "type", "zone_id", "parent_id"],
);

/** The rows of several resources, by identity; those of resources without a row are missing. */
export async function findResourceRows(
  queryable: Queryable,
  accountNo: number,
  keys: readonly ResourceKey[],
): Promise<Map<string, ResourceRow>> {
  const unique = new Map(keys.map((key) => [identityOf(key), key]));
  const columns: SqlValue[] = [];
  for (const { type, id, zoneId, parentId } of unique.values())
    columns.push(accountNo, id, type, zoneId, parentId);
  const found = await BY_KEY.find(queryable, columns);
  const rows = new Map<string, ResourceRow>();
  for (const [i, identity] of [...unique.keys()].entries()) {
    const row = found[i];
    if (row !== undefined) rows.set(identity, row);
  }
  return rows;
}

/** The rows with these numbers, in ascending order of number. */
export async function readResourceRows(
  queryable: Queryable,
  accountNo: number,
  numbers: readonly number[],
): Promise<ResourceRow[]> {
  const rows: ResourceRow[] = [];
  for (let at = 0; at < numbers.length; at += NUMBERS_PER_STATEMENT) {
    const part: SqlValue[] = numbers.slice(at, at + NUMBERS_PER_STATEMENT);
    // Padded with a number that no resource has, so that all lengths use the same prepared statement.
    while (part.length < NUMBERS_PER_STATEMENT) part.push(-1);
    rows.push(...(await queryable.all<ResourceRow>(new SqlQuery(BY_NUMBERS, [accountNo, ...part]))));
  }
  return rows;
}

const BY_NUMBERS: readonly string[] = Object.freeze([
  "SELECT resource_no, type, id, zone_id, parent_id, name, tags, etag, updated_at FROM tag_resource WHERE account_no = ",
  " AND resource_no IN (",
  ...Array.from({ length: NUMBERS_PER_STATEMENT - 1 }, () => ", "),
  ") ORDER BY resource_no",
]);

/** Null if the tags were deleted. */
export function toTaggedResource(row: ResourceRow): TaggedResource | null {
  if (row.tags === null) return null;
  return {
    type: row.type,
    id: row.id,
    zoneId: row.zone_id,
    parentId: row.parent_id,
    name: row.name,
    etag: row.etag,
    tags: row.tags,
    updatedAt: row.updated_at,
  };
}
