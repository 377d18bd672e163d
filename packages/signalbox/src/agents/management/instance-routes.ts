/** Agents, and the instances themselves: list, read, destroy. */
import { z } from "zod";
import type { TagLookup } from "../../contracts/tag-lookup.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { SocketHub } from "../connections/socket-hub.ts";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { Directory } from "../instance/directory.ts";
import type { InstanceCatalog } from "../instance/instance-catalog.ts";
import { accountOf, AGENTS, INSTANCE, type InstanceAccess, INSTANCES, pageQuery } from "./instance-access.ts";
import { listInstances } from "./instance-list.ts";
import * as show from "./show-instance.ts";

export interface InstanceRouteParts {
  readonly access: InstanceAccess;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly directory: Directory;
  readonly catalog: InstanceCatalog;
  readonly hub: SocketHub;
  readonly tags: TagLookup | undefined;
}

export function instanceRoutes(parts: InstanceRouteParts): Route[] {
  return [listAgents(parts), list(parts), read(parts), destroy(parts)];
}

function listAgents({ catalog, definitions }: InstanceRouteParts): Route {
  return defineRoute({
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
  });
}

function list({ access, catalog, directory, hub, tags }: InstanceRouteParts): Route {
  return defineRoute({
    method: "GET",
    path: INSTANCES,
    access: "agents.read",
    summary: "List an agent's instances by name; `search` is a part of the name, `tag` filters repeat.",
    query: pageQuery.extend({ search: z.string().max(256).optional() }),
    parameters: ["tag"],
    result: z.array(show.instanceResult),
    handler: async (request) => {
      const { kebab } = access.definition(request);
      await catalog.flush();
      const { entries, next } = await listInstances(catalog, tags, accountOf(request), kebab, {
        ...request.query,
        tags: request.rawQuery.getAll("tag"),
      });
      return {
        result: entries.map((entry) => show.instance(entry, directory.find(entry), hub)),
        resultInfo: show.pageInfo(entries.length, next),
      };
    },
  });
}

function read({ access, directory, hub }: InstanceRouteParts): Route {
  return defineRoute({
    method: "GET",
    path: INSTANCE,
    access: "agents.read",
    summary: "Read one instance: state, counts, last activity.",
    result: show.instanceDetailResult,
    handler: async (request) => {
      const entry = await access.entry(request);
      const detail = await directory.read(entry, "show", show.readDetail);
      return { result: { ...show.instance(entry, directory.find(entry), hub), ...detail } };
    },
  });
}

function destroy({ access, directory }: InstanceRouteParts): Route {
  return defineRoute({
    method: "DELETE",
    path: INSTANCE,
    access: "agents.edit",
    summary: "Destroy an instance and everything it stored.",
    result: z.object({ agent: z.string(), name: z.string() }),
    handler: async (request) => {
      const { account, agent, name } = await access.entry(request);
      await directory.destroy({ account, agent, name });
      return { result: { agent, name } };
    },
  });
}
