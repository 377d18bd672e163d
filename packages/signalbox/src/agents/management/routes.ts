/** Management of agents and their instances. Classes are the operator's and the same for every account; instances belong to an account. */
import type { TagLookup } from "../../contracts/tag-lookup.ts";
import type { InstanceStore } from "../../engines/instance-store/index.ts";
import type { Route, RouteRequest } from "../../http/route.ts";
import type { SocketHub } from "../connections/socket-hub.ts";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { Directory } from "../instance/directory.ts";
import type { InstanceCatalog } from "../instance/instance-catalog.ts";
import type { InstancePages } from "../instance/instance-pages.ts";
import type { ProblemIndex } from "../instance/problem-index.ts";
import type { InstanceNodes } from "../placement/instance-nodes.ts";
import type { ActivityStreams } from "./activity-stream.ts";
import type { ManagedObjects } from "./managed-objects.ts";
import { INSTANCE, InstanceAccess } from "./instance-access.ts";
import { bulkReplayRoute } from "./bulk-letters.ts";
import { instanceRoutes } from "./instance-routes.ts";
import { problemRoutes } from "./problem-routes.ts";
import { findStuck, type FindStuck } from "./stuck.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";
import { observationRoutes } from "./observation-routes.ts";
import { findResidents, type FindResidents, type ResidentsParts } from "./residents.ts";
import { SqlConsole } from "./sql-console.ts";
import { REPLAY_LETTERS, workRoutes } from "./work-routes.ts";

export interface RouteParts {
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly directory: Directory;
  readonly catalog: InstanceCatalog;
  readonly hub: SocketHub;
  readonly streams: ActivityStreams;
  readonly store: InstanceStore;
  readonly tags: TagLookup | undefined;
  readonly objects: ManagedObjects;
  /** Null for a process that is alone. */
  readonly nodes: InstanceNodes | null;
  readonly reach: ManagementReach;
  readonly pages: InstancePages;
  readonly problems: ProblemIndex;
  now(): number;
}

/** Management of instances, wherever they run. */
export interface ManagementReach {
  readonly findResidents: FindResidents;
  readonly findStuck: FindStuck;
  /** The route with a handler that runs where the instance is. */
  atOwner(route: Route, refOf: (request: RouteRequest) => InstanceRef): Route;
}

/** All instances are in this process. */
export function manageHere(parts: ResidentsParts & { now(): number }): ManagementReach {
  return {
    findResidents: (query) => findResidents(parts, query),
    findStuck: async (query) => findStuck(parts, query),
    atOwner: (route) => route,
  };
}

export function agentRoutes(parts: RouteParts): Route[] {
  const access = new InstanceAccess(parts.definitions, parts.directory, parts.catalog, parts.objects);
  const { reach } = parts;
  const everywhere = { ...parts, ...reach, access };
  const routes = [
    ...instanceRoutes(everywhere),
    ...workRoutes(access),
    ...observationRoutes({ ...parts, access, sqlConsole: new SqlConsole(parts.directory, parts.store) }),
  ].map((route) =>
    route.path.startsWith(INSTANCE) ? reach.atOwner(route, (request) => access.ref(request)) : route,
  );
  const replay = routes.find(({ method, path }) => method === "POST" && path === REPLAY_LETTERS);
  if (replay === undefined) throw new Error("dead letters have a route to replay them");
  return [...routes, ...problemRoutes(everywhere), bulkReplayRoute({ ...everywhere, replay })];
}
