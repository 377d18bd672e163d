/** What operators observe of an instance: its connections, its activity, and its tables by SQL. */
import { z } from "zod";
import type { SocketHub } from "../connections/socket-hub.ts";
import type { Directory } from "../instance/directory.ts";
import { keyOf } from "../instance/instance-ref.ts";
import type { ProblemIndex } from "../instance/problem-index.ts";
import type { ActivityStreams } from "./activity-stream.ts";
import type { InstanceAccess } from "./instance-access.ts";
import { defineInstanceRoute, INSTANCE, type InstanceRoute } from "./instance-route.ts";
import * as show from "./show-instance.ts";
import type { SqlConsole } from "./sql-console.ts";

export interface ObservationRouteParts {
  readonly access: InstanceAccess;
  readonly directory: Directory;
  readonly hub: SocketHub;
  readonly streams: ActivityStreams;
  readonly sqlConsole: SqlConsole;
  readonly problems: ProblemIndex;
}

export function observationRoutes(parts: ObservationRouteParts): InstanceRoute[] {
  return [listConnections(parts), listActivity(parts), runQuery(parts)];
}

function listConnections({ access, hub }: ObservationRouteParts): InstanceRoute {
  return defineInstanceRoute({
    method: "GET",
    path: `${INSTANCE}/connections`,
    access: "agents.read",
    summary: "List the instance's live connections.",
    result: z.array(show.connectionResult),
    handler: async (request) => {
      const connections = hub.find(keyOf(await access.entry(request.ref)))?.list() ?? [];
      return { result: connections.map(show.connection), resultInfo: { count: connections.length } };
    },
  });
}

function listActivity({ access, directory, streams, problems }: ObservationRouteParts): InstanceRoute {
  return defineInstanceRoute({
    method: "GET",
    path: `${INSTANCE}/events`,
    access: "agents.read",
    summary:
      "List the instance's recent activity and its stored failures, newest first; with `Accept: text/event-stream`, stream its activity from now on.",
    result: z.array(show.activityResult),
    handler: async (request) => {
      if (request.accept?.includes("text/event-stream") === true) {
        // A stream may be opened before the instance exists: it then shows the creation.
        return {
          raw: { contentType: "text/event-stream", body: streams.open(keyOf(request.ref)) },
          headers: { "cache-control": "no-store" },
        };
      }
      const entry = await access.entry(request.ref);
      const recent = directory.find(entry)?.activity.recent() ?? [];
      const result = show.withFailures(recent, await problems.failuresOf(entry), entry);
      return { result, resultInfo: { count: result.length } };
    },
  });
}

function runQuery({ access, sqlConsole }: ObservationRouteParts): InstanceRoute {
  return defineInstanceRoute({
    method: "POST",
    effect: "action",
    path: `${INSTANCE}/sql`,
    acceptsNul: true,
    changesNothing: true,
    access: "agents.edit",
    summary: "Run one reading statement on a copy of the instance's database; at most 1,000 rows and 4 MiB.",
    body: z.strictObject({ sql: z.string().min(1).max(100_000) }),
    result: z.object({ rows: z.array(z.record(z.string(), z.unknown())), truncated: z.boolean() }),
    handler: async (request) => {
      const { rows, isCut } = await sqlConsole.query(await access.entry(request.ref), request.body.sql);
      return { result: { rows: rows.map(show.row), truncated: isCut } };
    },
  });
}
