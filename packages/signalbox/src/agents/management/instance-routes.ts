/** Agents, and the instances themselves: list, read, destroy, move. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import type { TagLookup } from "../../contracts/tag-lookup.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { Directory } from "../instance/directory.ts";
import type { CatalogEntry, InstanceCatalog } from "../instance/instance-catalog.ts";
import { INSTANCE_ORDERS, type InstancePages } from "../instance/instance-pages.ts";
import type { ProblemIndex } from "../instance/problem-index.ts";
import { addPulses } from "../instance/agent-pulse.ts";
import type { Timeline } from "../instance/timeline.ts";
import { type InstanceAccess, pageQuery, problemQuery } from "./instance-access.ts";
import { AGENTS, defineInstanceRoute, INSTANCE, type InstanceRoute, INSTANCES } from "./instance-route.ts";
import type { ManagedObjects } from "./managed-objects.ts";
import type { InstanceNodes } from "../placement/instance-nodes.ts";
import { moveRoute, targetsRoute, withNodes } from "./node-routes.ts";
import { listInstances } from "./instance-list.ts";
import { showAll } from "./show-page.ts";
import { type FindPulses, findResidents, type FindResidents, type ResidentsParts } from "./residents.ts";
import type { FindStuck } from "./stuck.ts";
import * as show from "./show-instance.ts";

export interface InstanceRouteParts extends ResidentsParts {
  readonly access: InstanceAccess;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly directory: Directory;
  readonly catalog: InstanceCatalog;
  readonly tags: TagLookup | undefined;
  readonly objects: ManagedObjects;
  /** On all nodes. */
  readonly findResidents: FindResidents;
  /** Null for a process that is alone. */
  readonly nodes: InstanceNodes | null;
  readonly pages: InstancePages;
  readonly problems: ProblemIndex;
  /** On all nodes. */
  readonly findStuck: FindStuck;
  readonly findPulses: FindPulses;
  /** Null if turns are not recorded. */
  readonly timeline: Timeline | null;
  now(): number;
}

export function listRoutes(parts: InstanceRouteParts): Route[] {
  return [listAgents(parts), list(parts)];
}

export function instanceRoutes(parts: InstanceRouteParts): InstanceRoute[] {
  const { access, nodes } = parts;
  return [read(parts), destroy(parts), targetsRoute(access, nodes), moveRoute(access, nodes)];
}

function listAgents({ catalog, definitions, objects, findPulses }: InstanceRouteParts): Route {
  return defineRoute({
    method: "GET",
    path: AGENTS,
    access: "agents.read",
    summary:
      "List the agents (classes), with their callable methods, number of instances and turns of the last hour; the classes of a worker program are objects.",
    result: z.array(show.agentResult),
    handler: async ({ params }) => {
      const { account_id: account } = params;
      await catalog.flush();
      const pulses = addPulses(await findPulses(account));
      const result = await Promise.all([
        ...[...definitions.values()].map(async (definition) =>
          show.agent(
            definition,
            await catalog.count(account, definition.kebab),
            show.pulse(pulses.get(definition.kebab)),
          ),
        ),
        ...objects
          .classes()
          .map(async ({ agent, exportName }) =>
            show.objectClass(
              agent,
              exportName,
              await catalog.count(account, agent),
              show.pulse(pulses.get(agent)),
            ),
          ),
      ]);
      return { result, resultInfo: { count: result.length } };
    },
  });
}

function list(parts: InstanceRouteParts): Route {
  const { access, catalog, problems, directory } = parts;
  return defineRoute({
    method: "GET",
    path: INSTANCES,
    access: "agents.read",
    summary:
      "List an agent's instances; `search` is a part of the name, or the whole name that a program gave its object; `tag` filters repeat; `order` is name, last_active, dead_letters or queued; `problem` keeps those with dead letters, items that are retried, a stuck turn, an error of the last `within` seconds, or any of them.",
    query: pageQuery.extend({
      search: z.string().max(256).optional(),
      order: z.enum(INSTANCE_ORDERS).default("name"),
      ...problemQuery,
    }),
    parameters: ["tag"],
    repeatable: ["tag"],
    result: z.array(show.listedInstanceResult),
    handler: async (request) => {
      const { account_id: account, agent_name: agentName } = request.params;
      const agent = access.agent(agentName);
      const { cursor, search, problem, within, stuck_seconds: seconds } = request.query;
      // The catalog learns of activity when an instance leaves memory.
      if (request.query.order === "last_active")
        for (const { ref, lastActiveAt } of directory.instances()) catalog.touch(ref, lastActiveAt);
      await Promise.all([catalog.flush(), problems.settle()]);
      const isStuckWanted = problem === "any" || problem === "stuck";
      const stuck = isStuckWanted ? await parts.findStuck({ account, agent, seconds }) : [];
      const { entries, next } = await listInstances(parts, account, agent, {
        ...request.query,
        rule: problem === undefined ? undefined : { problem, since: parts.now() - within * 1000 },
        stuck: stuck.map(({ name }) => name),
        tags: request.rawQuery.getAll("tag"),
      });
      const named =
        search === undefined || cursor !== undefined || problem !== undefined
          ? []
          : await findNamed(parts, account, agent, search);
      const others = entries.filter(({ name }) => name !== named[0]?.name);
      const isObject = access.isObjectClass(agent);
      const shown = await showAll(parts.findResidents, agent, [...named, ...others], isObject);
      const recent = await parts.timeline?.recent(
        { account, agent },
        shown.map(({ name }) => name),
      );
      const placed = await withNodes(parts.nodes, account, shown);
      return {
        result: placed.map((row) => ({ ...row, ...show.recent(recent?.get(row.name)) })),
        resultInfo: show.pageInfo(named.length + others.length, next),
      };
    },
  });
}

/** The catalog has the ids of objects, not their names. */
async function findNamed(
  { catalog, objects }: InstanceRouteParts,
  account: string,
  agent: string,
  name: string,
): Promise<CatalogEntry[]> {
  const ref = objects.named(agent, name);
  const entry = ref === null ? undefined : await catalog.find({ ...ref, account });
  return entry === undefined ? [] : [entry];
}

function read(parts: InstanceRouteParts): InstanceRoute {
  const { access, directory, problems, nodes } = parts;
  return defineInstanceRoute({
    method: "GET",
    path: INSTANCE,
    access: "agents.read",
    summary:
      "Read one instance: its committed state, counts, last activity, the running turn, and its last failure. Does not wait for a turn.",
    result: show.instanceDetailResult,
    handler: async ({ ref }) => {
      const found = await access.entry(ref);
      const detail = await directory.read(found, "show", show.readDetail);
      const [failures] = await Promise.all([problems.failuresOf(found), problems.settle()]);
      const entry = await access.entry(ref);
      const last_failure = failures[0] === undefined ? null : show.failure(failures[0]);
      const isObject = access.isObjectClass(ref.agent);
      // Runs where the instance is.
      const here: FindResidents = (query) => findResidents(parts, query);
      const [instance] = await showAll(here, entry.agent, [entry], isObject);
      if (instance === undefined) throw new SignalboxError("agent_instance_not_found");
      const shown = { ...instance, ...detail, last_failure, ...(isObject ? show.objectDetail(entry) : {}) };
      const [result] = await withNodes(nodes, ref.account, [shown]);
      return { result };
    },
  });
}

function destroy({ access, directory, objects }: InstanceRouteParts): InstanceRoute {
  return defineInstanceRoute({
    method: "DELETE",
    path: INSTANCE,
    access: "agents.edit",
    summary: "Destroy an instance and everything it stored.",
    result: z.object({ agent: z.string(), name: z.string() }),
    handler: async ({ ref }) => {
      const { account, agent, name } = await access.entry(ref);
      await (access.isObjectClass(agent) ? objects : directory).destroy({ account, agent, name });
      return { result: { agent, name } };
    },
  });
}
