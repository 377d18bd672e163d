/**
 * Replays dead letters at the nodes that own their instances: those of one instance, and those of all instances of an agent, instance by instance.
 *
 * Invariants of the latter:
 * 1. One call visits a bounded number of instances in a bounded time. Its cursor is the last instance that it has visited, so that a call that ends early,
 *    or a process that dies, loses nothing: the next call goes on.
 * 2. An instance is visited once in a pass, also if its letters fail again.
 */
import { z } from "zod";
import { storedErrorText, toStoredError } from "../../core/stored-error.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { InstanceCatalog } from "../instance/instance-catalog.ts";
import type { InstancePages } from "../instance/instance-pages.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";
import type { ProblemIndex } from "../instance/problem-index.ts";
import { changeLetters } from "./change-letters.ts";
import type { InstanceAccess } from "./instance-access.ts";
import { AGENTS, INSTANCE } from "./instance-route.ts";
import type { ManagementReach } from "./reach.ts";

/** No instance is visited later than this after the call. */
const MAX_MS = 20_000;
/** Instances that are visited side by side: each may have to be loaded. */
const SIDE_BY_SIDE = 8;

export interface ReplayLetterParts {
  readonly access: InstanceAccess;
  readonly catalog: InstanceCatalog;
  readonly pages: InstancePages;
  readonly problems: ProblemIndex;
  readonly reach: ManagementReach;
}

/** Replays the letters with these ids, or all. */
type Replay = (ref: InstanceRef, ids: readonly string[] | null, signal: AbortSignal) => Promise<Replayed>;

interface Replayed {
  readonly replayed: number;
  readonly remaining: number;
}

export function replayRoutes(parts: ReplayLetterParts): Route[] {
  const { access, reach } = parts;
  const replay: Replay = reach.workAtOwner("replay dead letters", async (ref, ids) => {
    const { count, remaining } = await changeLetters(access, ref, "replay", ids ?? undefined, (letters, id) =>
      letters.replay(id),
    );
    return { replayed: count, remaining };
  });
  return [replayOne(access, replay), replayAll(parts, replay)];
}

function replayOne(access: InstanceAccess, replay: Replay): Route {
  return defineRoute({
    method: "POST",
    effect: "action",
    path: `${INSTANCE}/dead-letters/replay`,
    access: "agents.edit",
    summary: "Return dead letters to the queue: those named in `ids`, or all, at most 10,000 with each call.",
    body: z.strictObject({ ids: z.array(z.string()).max(1000).optional() }),
    result: z.object({ replayed: z.int(), remaining: z.int() }),
    handler: async ({ params, body, signal }) => ({
      result: await replay(access.ref(params), body.ids ?? null, signal),
    }),
  });
}

function replayAll({ access, catalog, pages, problems }: ReplayLetterParts, replay: Replay): Route {
  return defineRoute({
    method: "POST",
    effect: "action",
    path: `${AGENTS}/{agent_name}/dead-letters/replay`,
    access: "agents.edit",
    summary:
      "Return the dead letters of all instances of an agent to their queues, `limit` instances with each call; call again with `cursor` until it is null.",
    body: z.strictObject({
      limit: z.int().min(1).max(1000).default(100),
      cursor: z.string().max(1024).optional(),
    }),
    result: z.object({
      replayed: z.int(),
      instances: z.int(),
      failed: z.array(z.object({ name: z.string(), error: z.string() })),
      remaining_instances: z.int(),
      cursor: z.string().nullable(),
    }),
    handler: async ({ params, body, signal }) => {
      const agent = access.definition(params.agent_name).kebab;
      const { account_id: account } = params;
      const { limit, cursor } = body;
      await Promise.all([catalog.flush(), problems.settle()]);
      const startedAt = performance.now();
      const failed: { name: string; error: string }[] = [];
      let after = cursor ?? "";
      let visited = 0;
      let replayed = 0;
      while (visited < limit && !signal.aborted && performance.now() - startedAt < MAX_MS) {
        const count = Math.min(SIDE_BY_SIDE, limit - visited);
        const names = await pages.withDeadLetters(account, agent, after, count);
        if (names.length === 0) break;
        const counts = await Promise.all(
          names.map(async (name) => {
            try {
              return (await replay({ account, agent, name }, null, signal)).replayed;
            } catch (error) {
              failed.push({ name, error: storedErrorText(toStoredError(error)) });
              return 0;
            }
          }),
        );
        replayed += counts.reduce((sum, one) => sum + one, 0);
        visited += names.length;
        after = names.at(-1) ?? after;
      }
      const remaining = await pages.countWithDeadLetters(account, agent, after);
      return {
        result: {
          replayed,
          instances: visited,
          failed,
          remaining_instances: remaining,
          cursor: remaining === 0 ? null : after,
        },
      };
    },
  });
}
