/** What is wrong, over all agents of an account. */
import { z } from "zod";
import { defineRoute, type Route } from "../../http/route.ts";
import type { CatalogEntry, InstanceCatalog } from "../instance/instance-catalog.ts";
import { type InstancePages, type ProblemRule, problemsOf } from "../instance/instance-pages.ts";
import { type InstanceRef, keyOf } from "../instance/instance-ref.ts";
import type { ProblemIndex } from "../instance/problem-index.ts";
import type { InstanceNodes } from "../placement/instance-nodes.ts";
import { pageQuery, problemQuery } from "./instance-access.ts";
import { AGENTS } from "./instance-route.ts";
import type { ManagedObjects } from "./managed-objects.ts";
import type { FindResidents } from "./residents.ts";
import { addTotals, agentProblemTotals, problemTotals, totalsOfAgents } from "./problem-totals.ts";
import { showAll } from "./show-page.ts";
import * as show from "./show-instance.ts";
import type { FindStuck } from "./stuck.ts";

export interface ProblemRouteParts {
  readonly catalog: InstanceCatalog;
  readonly pages: InstancePages;
  readonly problems: ProblemIndex;
  readonly objects: ManagedObjects;
  readonly findResidents: FindResidents;
  readonly findStuck: FindStuck;
  readonly nodes: InstanceNodes | null;
  now(): number;
}

export function problemRoutes(parts: ProblemRouteParts): Route[] {
  return [listProblems(parts)];
}

function listProblems(parts: ProblemRouteParts): Route {
  const { catalog, pages, problems } = parts;
  return defineRoute({
    method: "GET",
    path: `${AGENTS}/problems`,
    access: "agents.read",
    summary:
      "List instances of all agents that have dead letters, queue items that are retried, a stuck turn or an error of the last `within` seconds, with totals: of all, and of each agent that has problems.",
    query: pageQuery.extend({ agent: z.string().max(256).optional(), ...problemQuery }),
    result: z.object({
      totals: problemTotals,
      by_agent: z.array(agentProblemTotals),
      instances: z.array(show.problemInstanceResult),
    }),
    handler: async (request) => {
      const { agent, problem = "any", cursor, limit, within, stuck_seconds: seconds } = request.query;
      const { account_id: account } = request.params;
      const since = parts.now() - within * 1000;
      const rule: ProblemRule = { problem, since };
      await Promise.all([catalog.flush(), problems.settle()]);
      const stuckRefs = await parts.findStuck({ account, agent, seconds });
      const stuckKeys = new Set(stuckRefs.map(keyOf));
      const stuck = await findAll(catalog, account, stuckRefs);
      const isKnown = (entry: CatalogEntry) => problemsOf(entry, since, false).length > 0;
      const byAgent = totalsOfAgents(
        await pages.problemsByAgent(account, agent, since),
        stuckRefs,
        stuck
          .filter((entry) => !isKnown(entry))
          .map(({ agent: ofAgent, name }) => ({ account, agent: ofAgent, name })),
      );
      const { entries, next } =
        problem === "stuck"
          ? { entries: [], next: null }
          : await pages.problems(account, agent, rule, cursor, limit);
      const others = entries.filter((entry) => !stuckKeys.has(keyOf(entry)));
      // All of them, on the first page: they are few.
      const showsStuck = cursor === undefined && (problem === "any" || problem === "stuck");
      const shown = [...(showsStuck ? stuck : []), ...(problem === "any" ? others : entries)];
      return {
        result: {
          totals: addTotals(byAgent),
          by_agent: byAgent,
          instances: await showProblems(parts, account, shown, since, stuckKeys),
        },
        resultInfo: show.pageInfo(shown.length, next),
      };
    },
  });
}

async function findAll(
  catalog: InstanceCatalog,
  account: string,
  refs: readonly InstanceRef[],
): Promise<CatalogEntry[]> {
  const found: CatalogEntry[] = [];
  for (const [agent, group] of Map.groupBy(refs, (ref) => ref.agent)) {
    const names = group.map(({ name }) => name);
    found.push(...(await catalog.findMany(account, agent, names)));
  }
  return found;
}

/** In the order of the entries, which are of several agents. */
async function showProblems(
  { findResidents, objects, nodes }: ProblemRouteParts,
  account: string,
  entries: readonly CatalogEntry[],
  since: number,
  stuckKeys: ReadonlySet<string>,
): Promise<z.input<typeof show.problemInstanceResult>[]> {
  const classes = new Set(objects.classes().map(({ agent }) => agent));
  const shown = new Map<CatalogEntry, z.input<typeof show.instanceResult>>();
  for (const [agent, group] of Map.groupBy(entries, (entry) => entry.agent)) {
    const rows = await showAll(findResidents, agent, group, classes.has(agent));
    rows.forEach((row, i) => shown.set(group[i] as CatalogEntry, row));
  }
  const names = (await nodes?.namesOf(entries.map(({ agent, name }) => ({ account, agent, name })))) ?? [];
  return entries.flatMap((entry, i) => {
    const row = shown.get(entry);
    if (row === undefined) return [];
    const found = problemsOf(entry, since, stuckKeys.has(keyOf(entry)));
    return [{ ...row, node: names[i] ?? null, problems: found }];
  });
}
