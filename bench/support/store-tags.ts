/** Stores generated resources in the control plane's database of a server that does not run. */
import { systemClock } from "../../packages/signalbox/src/core/clock.ts";
import { migrate } from "../../packages/signalbox/src/database/migrate.ts";
import { SqliteDatabase } from "../../packages/signalbox/src/database/sqlite/sqlite-database.ts";
import { AccountNumbers } from "../../packages/signalbox/src/tags/store/account-numbers.ts";
import { ResourceCache } from "../../packages/signalbox/src/tags/store/resource-cache.ts";
import { TagWriter } from "../../packages/signalbox/src/tags/store/tag-writer.ts";
import type { TagData } from "./tag-data.ts";

const ACCOUNT = "default";

export async function storeTags(path: string, data: TagData): Promise<void> {
  const startedAt = performance.now();
  const database = await SqliteDatabase.open(path, (error) => {
    throw error;
  });
  await migrate(database);
  const writer = new TagWriter(database, systemClock, new AccountNumbers(database), {
    maxTagsPerResource: 1000,
    cache: new ResourceCache(),
    changes: { notify: () => undefined },
  });
  await writer.load(ACCOUNT, toWrites(data));
  await database.close();
  console.error(`loaded ${data.size} resources in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
}

function* toWrites(data: TagData) {
  for (const { type, id, tags } of data.resources()) {
    const resource = { type, id, zoneId: "", parentId: "" };
    yield { action: "set" as const, resource, tags, condition: null, actor: "load" };
  }
}
