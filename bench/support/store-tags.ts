/** Stores generated resources in the control plane's database of a server that does not run. */
import { systemClock } from "../../packages/signalbox/src/core/clock.ts";
import { migrate } from "../../packages/signalbox/src/database/migrate.ts";
import type { Database } from "../../packages/signalbox/src/database/database.ts";
import { SqliteDatabase } from "../../packages/signalbox/src/database/sqlite/sqlite-database.ts";
import { AccountNumbers } from "../../packages/signalbox/src/tags/store/account-numbers.ts";
import { ResourceCache } from "../../packages/signalbox/src/tags/store/resource-cache.ts";
import { TagWriter } from "../../packages/signalbox/src/tags/store/tag-writer.ts";
import type { TagWrite } from "../../packages/signalbox/src/tags/store/tag-write.ts";
import type { TagData } from "./tag-data.ts";

const ACCOUNT = "default";
const PART = 20_000;

export async function storeTags(path: string, data: TagData): Promise<void> {
  const database = await SqliteDatabase.open(path, (error) => {
    throw error;
  });
  await migrate(database);
  await storeTagsIn(database, data);
  await database.close();
}

export async function storeTagsIn(database: Database, data: TagData): Promise<void> {
  const startedAt = performance.now();
  const writer = new TagWriter(database, systemClock, new AccountNumbers(database), {
    maxTagsPerResource: 1000,
    cache: new ResourceCache(),
    changes: { notify: () => undefined },
  });
  // Parts, and arrays: a transaction that PostgreSQL ends begins again with the same writes.
  let part: TagWrite[] = [];
  for (const write of toWrites(data)) {
    part.push(write);
    if (part.length < PART) continue;
    await writer.load(ACCOUNT, part);
    part = [];
  }
  await writer.load(ACCOUNT, part);
  console.error(`loaded ${data.size} resources in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
}

function* toWrites(data: TagData): Generator<TagWrite> {
  for (const { type, id, tags } of data.resources()) {
    const resource = { type, id, zoneId: "", parentId: "" };
    yield { action: "set" as const, resource, tags, condition: null, actor: "load" };
  }
}
