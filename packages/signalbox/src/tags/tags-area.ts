/** Creates the tags area: its store, its routes, and the look-up and the change feed for other areas. */
import type { AreaModule } from "../area-module.ts";
import type { AuditTrail } from "../contracts/audit-trail.ts";
import type { ConfigFile } from "../config/index.ts";
import type { Clock } from "../core/clock.ts";
import { ulid } from "../core/ulid.ts";
import type { Database } from "../database/database.ts";
import type { ResourceEvents, ResourceRef } from "../contracts/resource-events.ts";
import type { TagFeed } from "../contracts/tag-feed.ts";
import type { TagLookup } from "../contracts/tag-lookup.ts";
import type { Logger } from "../telemetry/logger.ts";
import { bulkRoute } from "./bulk-route.ts";
import { changeRoutes } from "./change-routes.ts";
import { jobRoutes } from "./jobs/job-routes.ts";
import { JobRunner } from "./jobs/job-runner.ts";
import { JobTable } from "./jobs/job-table.ts";
import { TagJobs } from "./jobs/tag-jobs.ts";
import { listRoutes } from "./list-routes.ts";
import { resourceRoutes } from "./resource-routes.ts";
import { ResourceTypes } from "./payload.ts";
import { resourceText } from "./show-resource.ts";
import { AccountNumbers } from "./store/account-numbers.ts";
import { ChangeLog } from "./store/change-log.ts";
import { ResourceCache } from "./store/resource-cache.ts";
import { TagReader } from "./store/tag-reader.ts";
import { TagVocabulary } from "./store/tag-vocabulary.ts";
import { TagWriter } from "./store/tag-writer.ts";
import { Vocabularies } from "./store/vocabularies.ts";

export interface TagsAreaParts {
  readonly config: { readonly file: Pick<ConfigFile, "tags"> };
  readonly database: Database;
  readonly clock: Clock;
  readonly resourceEvents: ResourceEvents;
  readonly logger: Logger;
  readonly audit?: AuditTrail | undefined;
}

export interface TagsArea extends AreaModule {
  readonly lookup: TagLookup;
  readonly feed: TagFeed;
}

const PRUNE_INTERVAL_MS = 60_000;
const DAY_MS = 24 * 60 * 60 * 1000;

export function createTagsArea(parts: TagsAreaParts): TagsArea {
  const { database, clock, logger } = parts;
  const settings = parts.config.file.tags;
  const historyMs = settings.historyDays * DAY_MS;
  const accounts = new AccountNumbers(database);
  const log = new ChangeLog(database, clock, accounts, {
    maxAgeMs: historyMs,
    maxChanges: settings.historyChanges,
  });
  const cache = new ResourceCache(database);
  database.onLoss?.(() => {
    accounts.forget();
    cache.clear();
  });
  const reader = new TagReader(database, accounts, cache, resourceText);
  const writer = new TagWriter(database, clock, accounts, {
    maxTagsPerResource: settings.maxTagsPerResource,
    cache,
    changes: log,
    audit: parts.audit,
  });
  const vocabularies = new Vocabularies(new TagVocabulary(database, accounts), reader);
  const types = new ResourceTypes(settings.resourceTypes);
  const resourceParts = {
    reader,
    writer,
    types,
    missing: settings.missing,
    maxTagsPerResource: settings.maxTagsPerResource,
  };
  const table = new JobTable(database);
  const runner = new JobRunner({
    table,
    accounts,
    reader,
    writer,
    clock,
    logger,
    runner: database.isShared === true ? ulid() : "alone",
  });
  const jobs = new TagJobs({ table, runner, reader, clock });
  parts.resourceEvents.onDeleted((resource) => deleteTags(reader, writer, resource));

  const stopping = new AbortController();
  const prune = async (signal: AbortSignal) => {
    await log.prune(signal);
    await table.prune(clock.now() - historyMs, signal);
  };
  const pruning = createPruning(prune, stopping.signal, logger);

  return {
    mounts: [],
    routes: [
      ...resourceRoutes(resourceParts),
      bulkRoute(resourceParts),
      ...listRoutes({ reader, vocabularies, types }),
      ...jobRoutes({ jobs, types, maxTagsPerResource: settings.maxTagsPerResource }),
      ...changeRoutes({ log, types, stopping: stopping.signal }),
    ],
    lookup: reader,
    feed: log,
    async start() {
      pruning.start();
      runner.start();
    },
    async drain() {
      stopping.abort();
    },
    async stop() {
      stopping.abort();
      await runner.stop();
      await pruning.finished();
    },
    firstCommands: (_url, signalbox) => [
      {
        card: "tags",
        title: "Tag the default gateway",
        command: signalbox("tags set ai_gateway default env=dev"),
      },
    ],
  };
}

/** Prunes the history and the jobs at start and then every minute, until `stopping` aborts. */
function createPruning(
  work: (signal: AbortSignal) => Promise<void>,
  stopping: AbortSignal,
  logger: Logger,
): { start(): void; finished(): Promise<void> } {
  let running: Promise<void> | undefined;
  const prune = () => {
    running ??= work(stopping)
      .catch((error: unknown) =>
        logger.error({ err: error }, "pruning the tag history failed; the next attempt follows in a minute"),
      )
      .finally(() => {
        running = undefined;
      });
  };
  return {
    start() {
      prune();
      const timer = setInterval(prune, PRUNE_INTERVAL_MS).unref();
      stopping.addEventListener("abort", () => clearInterval(timer), { once: true });
    },
    async finished() {
      await running;
    },
  };
}

/** Deletes the tags of a deleted resource in every zone and with every parent. */
async function deleteTags(reader: TagReader, writer: TagWriter, deleted: ResourceRef): Promise<void> {
  for (const resource of await reader.findAll(deleted.accountId, deleted.type, deleted.id)) {
    const { type, id, zoneId, parentId } = resource;
    await writer.write(deleted.accountId, {
      action: "resource_deleted",
      resource: { type, id, zoneId, parentId },
      tags: new Map(),
      condition: null,
      actor: "system",
    });
  }
}
