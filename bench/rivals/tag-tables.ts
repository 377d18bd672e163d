/**
 * Two simple schemas on the same SQLite: tags as text in an inverted table with an index in each direction, or as JSON in the resource's
 * row. Both use plain SQL, the same cache, pages of 100 in row order, and an exact count.
 */
import { DatabaseSync } from "node:sqlite";
import type { TagFilter } from "@signalbox/protocol";
import type { TagData } from "../support/tag-data.ts";

export class TagTables {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  static load(path: string, data: TagData, hasTextIndex: boolean): TagTables {
    const database = new DatabaseSync(path);
    database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -65536;
      CREATE TABLE resource (no INTEGER PRIMARY KEY, type TEXT NOT NULL, id TEXT NOT NULL, tags TEXT NOT NULL);
      CREATE TABLE tag (key TEXT NOT NULL, value TEXT NOT NULL, no INTEGER NOT NULL);
      BEGIN`);
    const insertResource = database.prepare("INSERT INTO resource VALUES (?, ?, ?, ?)");
    const insertTag = database.prepare("INSERT INTO tag VALUES (?, ?, ?)");
    let no = 0;
    for (const { type, id, tags } of data.resources()) {
      insertResource.run(no, type, id, JSON.stringify(Object.fromEntries(tags)));
      if (hasTextIndex) for (const [key, value] of tags) insertTag.run(key, value, no);
      no += 1;
    }
    if (hasTextIndex) {
      database.exec(
        "CREATE UNIQUE INDEX tag_by_value ON tag (key, value, no); CREATE UNIQUE INDEX tag_by_resource ON tag (no, key, value);",
      );
    }
    database.exec("COMMIT; ANALYZE;");
    return new TagTables(database);
  }

  page(condition: Condition, after: number): number {
    return this.#database
      .prepare(
        `SELECT no, type, id, tags FROM resource r WHERE no > ? AND ${condition.text} ORDER BY no LIMIT 100`,
      )
      .all(after, ...condition.values).length;
  }

  total(condition: Condition): number {
    const row = this.#database
      .prepare(`SELECT COUNT(*) AS n FROM resource r WHERE ${condition.text}`)
      .get(...condition.values);
    return Number(row?.["n"]);
  }

  close(): void {
    this.#database.close();
  }
}

export interface Condition {
  readonly text: string;
  readonly values: readonly string[];
}

/** Positive filters as `IN (subquery)`, which lets SQLite start from the index; negative ones as `NOT EXISTS`. */
export function textCondition(filters: readonly TagFilter[]): Condition {
  const values: string[] = [];
  const parts = filters.map((filter) => {
    values.push(filter.key);
    if (filter.kind === "has") return "r.no IN (SELECT no FROM tag WHERE key = ?)";
    if (filter.kind === "lacks") return "NOT EXISTS (SELECT 1 FROM tag t WHERE t.no = r.no AND t.key = ?)";
    values.push(...filter.values);
    const list = filter.values.map(() => "?").join(", ");
    return filter.kind === "in"
      ? `r.no IN (SELECT no FROM tag WHERE key = ? AND value IN (${list}))`
      : `NOT EXISTS (SELECT 1 FROM tag t WHERE t.no = r.no AND t.key = ? AND t.value IN (${list}))`;
  });
  return { text: parts.join(" AND "), values };
}

export function jsonCondition(filters: readonly TagFilter[]): Condition {
  const values: string[] = [];
  const parts = filters.map((filter) => {
    values.push(`$."${filter.key}"`);
    if (filter.kind === "has") return "json_extract(tags, ?) IS NOT NULL";
    if (filter.kind === "lacks") return "json_extract(tags, ?) IS NULL";
    values.push(...filter.values);
    const list = filter.values.map(() => "?").join(", ");
    return filter.kind === "in"
      ? `json_extract(tags, ?) IN (${list})`
      : `COALESCE(json_extract(tags, ?) NOT IN (${list}), 1)`;
  });
  return { text: parts.join(" AND "), values };
}
