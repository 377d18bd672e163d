/** Management of agents and their instances. Classes are the operator's and the same for every account; instances belong to an account. */
import type { TagLookup } from "../../contracts/tag-lookup.ts";
import type { InstanceStore } from "../../engines/instance-store/index.ts";
import type { Route } from "../../http/route.ts";
import type { SocketHub } from "../connections/socket-hub.ts";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { Directory } from "../instance/directory.ts";
import type { InstanceCatalog } from "../instance/instance-catalog.ts";
import type { InstancePages } from "../instance/instance-pages.ts";
import type { ProblemIndex } from "../instance/problem-index.ts";
import type { AgentPulses } from "../instance/agent-pulse.ts";
import type { Timeline } from "../instance/timeline.ts";
import type { InstanceNodes } from "../placement/instance-nodes.ts";
import type { ActivityStreams } from "./activity-stream.ts";
import type { ManagedObjects } from "./managed-objects.ts";
import { InstanceAccess } from "./instance-access.ts";
import { instanceRoutes, listRoutes } from "./instance-routes.ts";
import { problemRoutes } from "./problem-routes.ts";
import { observationRoutes } from "./observation-routes.ts";
import type { ManagementReach } from "./reach.ts";
import { replayRoutes } from "./replay-routes.ts";
import { SqlConsole } from "./sql-console.ts";
import { timelineRoutes } from "./timeline-routes.ts";
import { workRoutes } from "./work-routes.ts";

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
  readonly timeline: Timeline | null;
  readonly pulses: AgentPulses;
  now(): number;
}

export function agentRoutes(parts: RouteParts): Route[] {
  const access = new InstanceAccess(parts.definitions, parts.directory, parts.catalog, parts.objects);
  const { reach } = parts;
  const everywhere = { ...parts, ...reach, access };
  const ofInstances = [
    ...instanceRoutes(everywhere),
    ...workRoutes(access),
    ...timelineRoutes({ ...parts, access }),
    ...observationRoutes({ ...parts, access, sqlConsole: new SqlConsole(parts.directory, parts.store) }),
  ];
  return [
    ...listRoutes(everywhere),
    ...ofInstances.map((route) => reach.atOwner(route, (params) => access.ref(params))),
    ...problemRoutes(everywhere),
    ...replayRoutes({ ...parts, access }),
  ];
}
