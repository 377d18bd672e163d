/** Management of agents and their instances: classes are the operator's and the same for every account, instances are the account's own. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { defineRoute, type Route, type RouteRequest } from "../../http/route.ts";
import type { InstanceRef, InstanceStore } from "../../engines/instance-store/index.ts";
import type { TagLookup } from "../../contracts/tag-lookup.ts";
import type { ActivityStreams } from "./activity-stream.ts";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { Directory } from "../instance/directory.ts";
import type { CatalogEntry, InstanceCatalog } from "../instance/instance-catalog.ts";
import { keyOf } from "../instance/instance-key.ts";
import { listInstances } from "./instance-list.ts";
import type { SocketHub } from "../connections/socket-hub.ts";
import { SqlConsole } from "./sql-console.ts";
import * as show from "./show-instance.ts";

export interface RouteParts {
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly directory: Directory;
  readonly catalog: InstanceCatalog;
  readonly hub: SocketHub;
  readonly streams: ActivityStreams;
  readonly store: InstanceStore;
  readonly tags: TagLookup | undefined;
}

const AGENTS = "/accounts/{account_id}/agents";
const INSTANCES = `${AGENTS}/{agent_name}/instances`;
const INSTANCE = `${INSTANCES}/{instance_name}`;

const PAGE_SIZE = 100;

const page = z.object({
  cursor: z.string().max(1024).optional(),
  limit: z.coerce.number().int().min(1).max(1000).default(PAGE_SIZE),
});
const search = page.extend({ search: z.string().max(256).optional() });

export function agentRoutes(parts: RouteParts): Route[] {
  const { definitions, directory, catalog, hub, store, streams } = parts;
  const sqlConsole = new SqlConsole(directory, store);

  const definitionOf = ({ params }: RouteRequest): AgentDefinition => {
    const definition = definitions.get(params["agent_name"] ?? "");
    if (definition === undefined) throw new SignalboxError("agent_not_found");
    return definition;
  };
  const refOf = (request: RouteRequest): InstanceRef => ({
    account: accountOf(request),
    agent: definitionOf(request).kebab,
    name: request.params["instance_name"] ?? "",
  });
  const entryOf = async (request: RouteRequest): Promise<CatalogEntry> => {
    await catalog.flush();
    const entry = await catalog.find(refOf(request));
    if (entry === undefined) throw new SignalboxError("agent_instance_not_found");
    return entry;
  };
  /** Changes go through the instance, which then runs what has become due. */
  const change = async <T>(
    request: RouteRequest,
    label: string,
    work: Parameters<typeof directory.change<T>>[3],
  ) => {
    const entry = await entryOf(request);
    return directory.change(definitionOf(request), entry, label, work);
  };

  return [
    defineRoute({
      method: "GET",
      path: AGENTS,
      access: "agents.read",
      summary: "List the agents (classes), with their callable methods and number of instances.",
      result: z.array(show.agentResult),
      handler: async (request) => {
        const account = accountOf(request);
        await catalog.flush();
        const result = await Promise.all(
          [...definitions.values()].map(async (definition) =>
            show.agent(definition, await catalog.count(account, definition.kebab)),
          ),
        );
        return { result, resultInfo: { count: result.length } };
      },
    }),
    defineRoute({
      method: "GET",
      path: INSTANCES,
      access: "agents.read",
      summary: "List an agent's instances by name; `search` is a part of the name, `tag` filters repeat.",
      query: search,
      parameters: ["tag"],
      result: z.array(show.instanceResult),
      handler: async (request) => {
        const { kebab } = definitionOf(request);
        await catalog.flush();
        const tags = request.rawQuery.getAll("tag");
        const { entries, next } = await listInstances(catalog, parts.tags, accountOf(request), kebab, {
          ...request.query,
          tags,
        });
        return {
          result: entries.map((entry) => show.instance(entry, directory.find(entry), hub)),
          resultInfo: show.pageInfo(entries.length, next),
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: INSTANCE,
      access: "agents.read",
      summary: "Read one instance: state, counts, last activity.",
      result: show.instanceDetailResult,
      handler: async (request) => {
        const entry = await entryOf(request);
        const detail = await directory.read(entry, "show", show.readDetail);
        return { result: { ...show.instance(entry, directory.find(entry), hub), ...detail } };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: INSTANCE,
      access: "agents.edit",
      summary: "Destroy an instance and everything it stored.",
      result: z.object({ agent: z.string(), name: z.string() }),
      handler: async (request) => {
        const { account, agent, name } = await entryOf(request);
        await directory.destroy({ account, agent, name });
        return { result: { agent, name } };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${INSTANCE}/queue`,
      access: "agents.read",
      summary: "List the instance's waiting queue items, first in first.",
      query: page,
      result: z.array(show.queueItemResult),
      handler: async (request) => {
        const after = parsePosition(request.query.cursor);
        const { items, next } = await directory.read(await entryOf(request), "queue", ({ workQueue }) =>
          workQueue.list(request.query.limit, after),
        );
        return {
          result: items.map(show.queueItem),
          resultInfo: show.pageInfo(items.length, next === null ? null : String(next)),
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${INSTANCE}/dead-letters`,
      access: "agents.read",
      summary: "List work that used up its attempts, oldest first.",
      query: page,
      result: z.array(show.deadLetterResult),
      handler: async (request) => {
        const { items, next } = await directory.read(
          await entryOf(request),
          "dead letters",
          ({ deadLetters }) => deadLetters.list(request.query.limit, request.query.cursor),
        );
        return { result: items.map(show.deadLetter), resultInfo: show.pageInfo(items.length, next) };
      },
    }),
    defineRoute({
      method: "POST",
      path: `${INSTANCE}/dead-letters/replay`,
      access: "agents.edit",
      summary: "Put dead letters back in the queue: those named in `ids`, or all.",
      body: z.strictObject({ ids: z.array(z.string()).max(1000).optional() }),
      result: z.object({ replayed: z.int() }),
      handler: async (request) => {
        const replayed = await change(request, "replay", ({ deadLetters }) => {
          const ids =
            request.body.ids ?? deadLetters.list(Number.MAX_SAFE_INTEGER - 1).items.map(({ id }) => id);
          return ids.filter((id) => deadLetters.replay(id)).length;
        });
        return { result: { replayed } };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${INSTANCE}/dead-letters/{dead_letter_id}`,
      access: "agents.read",
      summary: "Read one dead letter.",
      result: show.deadLetterResult,
      handler: async (request) => {
        const id = request.params["dead_letter_id"] ?? "";
        const letter = await directory.read(await entryOf(request), "dead letter", ({ deadLetters }) =>
          deadLetters.find(id),
        );
        if (letter === undefined) throw new SignalboxError("not_found", { message: "Dead letter not found" });
        return { result: show.deadLetter(letter) };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: `${INSTANCE}/dead-letters/{dead_letter_id}`,
      access: "agents.edit",
      summary: "Discard one dead letter.",
      result: z.object({ id: z.string() }),
      handler: async (request) => {
        const id = request.params["dead_letter_id"] ?? "";
        if (!(await change(request, "discard", ({ deadLetters }) => deadLetters.remove(id)))) {
          throw new SignalboxError("not_found", { message: "Dead letter not found" });
        }
        return { result: { id } };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${INSTANCE}/schedules`,
      access: "agents.read",
      summary: "List the instance's schedules, next first.",
      result: z.array(show.scheduleResult),
      handler: async (request) => {
        const schedules = await directory.read(await entryOf(request), "schedules", (reader) =>
          reader.schedules.list(),
        );
        return { result: schedules.map(show.schedule), resultInfo: { count: schedules.length } };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${INSTANCE}/connections`,
      access: "agents.read",
      summary: "List the instance's live connections.",
      result: z.array(show.connectionResult),
      handler: async (request) => {
        const connections = hub.find(keyOf(await entryOf(request)))?.list() ?? [];
        return { result: connections.map(show.connection), resultInfo: { count: connections.length } };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${INSTANCE}/events`,
      access: "agents.read",
      summary:
        "What the instance did lately, newest first; with `Accept: text/event-stream`, a live tail of what it does from now on.",
      result: z.array(show.activityResult),
      handler: async (request) => {
        if (request.headers.accept?.includes("text/event-stream") === true) {
          // A tail may be opened before the instance exists: it shows how that begins.
          return {
            raw: { contentType: "text/event-stream", body: streams.open(keyOf(refOf(request))) },
            headers: { "cache-control": "no-store" },
          };
        }
        const result = directory.find(await entryOf(request))?.activity.recent() ?? [];
        return { result, resultInfo: { count: result.length } };
      },
    }),
    defineRoute({
      method: "POST",
      path: `${INSTANCE}/sql`,
      access: "agents.edit",
      summary:
        "Run one reading statement on a copy of the instance's database; at most 1,000 rows and 4 MiB.",
      body: z.strictObject({ sql: z.string().min(1).max(100_000) }),
      result: z.object({ rows: z.array(z.record(z.string(), z.unknown())), truncated: z.boolean() }),
      handler: async (request) => {
        const { rows, isCut } = await sqlConsole.query(await entryOf(request), request.body.sql);
        return { result: { rows: rows.map(show.row), truncated: isCut } };
      },
    }),
  ];
}

function accountOf({ params }: RouteRequest): string {
  return params["account_id"] ?? "";
}

function parsePosition(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  if (!/^\d{1,15}$/.test(cursor))
    throw new SignalboxError("invalid_request", { message: "cursor: not one of ours" });
  return Number(cursor);
}
