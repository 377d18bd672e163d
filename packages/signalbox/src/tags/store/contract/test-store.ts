/** For tests: a tag store on a fresh database, with short functions for writes and queries. */
import { parseTagFilters } from "@signalbox/protocol";
import type { Clock } from "../../../core/clock.ts";
import type { Database } from "../../../database/database.ts";
import type { ResourceQuery } from "../../../engines/tag-index/index.ts";
import { resourceText } from "../../show-resource.ts";
import { AccountNumbers } from "../account-numbers.ts";
import { ChangeLog } from "../change-log.ts";
import { ResourceCache } from "../resource-cache.ts";
import { TagReader } from "../tag-reader.ts";
import { TagVocabulary } from "../tag-vocabulary.ts";
import type { TagWrite } from "../tag-write.ts";
import { TagWriter } from "../tag-writer.ts";

export interface ContractEngine {
  /** Opens a fresh, migrated database. */
  open(): Promise<Database>;
  /** Runs of the property test. */
  readonly runs: number;
  /** Half of the resources of the large data set; enough to make some values frequent. */
  readonly resources: number;
}

export interface Store {
  readonly database: Database;
  readonly reader: TagReader;
  readonly writer: TagWriter;
  readonly vocabulary: TagVocabulary;
  readonly log: ChangeLog;
  readonly clock: { time: number };
}

/** The account of most tests. */
export const A = "acct";

export async function withStore(
  engine: ContractEngine,
  work: (store: Store) => Promise<void>,
  bitmapMinUses?: number,
): Promise<void> {
  const database = await engine.open();
  try {
    await work(buildStore(database, bitmapMinUses));
  } finally {
    await database.close();
  }
}

export function buildStore(database: Database, bitmapMinUses?: number): Store {
  const clock = { time: 1_000_000 };
  const readClock: Clock = { now: () => clock.time };
  const accounts = new AccountNumbers(database);
  const log = new ChangeLog(database, readClock, accounts, { maxAgeMs: 1000, maxChanges: 50 });
  const cache = new ResourceCache(database);
  const writer = new TagWriter(database, readClock, accounts, {
    maxTagsPerResource: 100,
    ...(bitmapMinUses === undefined ? {} : { bitmapMinUses }),
    cache,
    changes: log,
  });
  return {
    database,
    reader: new TagReader(database, accounts, cache, resourceText),
    writer,
    vocabulary: new TagVocabulary(database, accounts),
    log,
    clock,
  };
}

export function write(
  id: string,
  tags: Record<string, string | null>,
  rest: Partial<TagWrite> = {},
): TagWrite {
  return {
    action: "set",
    resource: { type: "worker", id, zoneId: "", parentId: "" },
    tags: new Map(Object.entries(tags)),
    condition: null,
    actor: "root",
    ...rest,
  };
}

export function query(tags: readonly string[], rest: Partial<ResourceQuery> = {}): ResourceQuery {
  return {
    filters: parseTagFilters(tags),
    isCaseInsensitive: false,
    types: [],
    ids: [],
    name: null,
    ...rest,
  };
}

/** Reads all pages of a list. */
export async function idsOf(store: Store, wanted: ResourceQuery, account = A): Promise<string[]> {
  const ids: string[] = [];
  for (let after = -1; ;) {
    const page = await store.reader.list(account, wanted, after, 7);
    ids.push(...page.resources.map((resource) => resource.id));
    if (page.next === null) return ids;
    after = page.next;
  }
}
