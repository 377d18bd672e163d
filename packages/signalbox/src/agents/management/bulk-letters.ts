/**
 * Replays the dead letters of all instances of an agent, instance by instance, each at the node that owns it.
 *
 * Invariants:
 * 1. One call visits a bounded number of instances in a bounded time. Its cursor is the last instance that it has visited, so that a call that ends early,
 *    or a process that dies, loses nothing: the next call goes on.
 * 2. An instance is visited once in a pass, also if its letters fail again.
 */
import type { IncomingHttpHeaders } from "node:http";
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { storedErrorText, toStoredError } from "../../core/stored-error.ts";
import { defineRoute, type Route, type RouteRequest } from "../../http/route.ts";
import type { InstanceCatalog } from "../instance/instance-catalog.ts";
import type { InstancePages } from "../instance/instance-pages.ts";
import type { ProblemIndex } from "../instance/problem-index.ts";
import { accountOf, AGENTS, type InstanceAccess } from "./instance-access.ts";

/** No instance is visited later than this after the call. */
const MAX_MS = 20_000;
/** Instances that are visited side by side: each may have to be loaded. */
const SIDE_BY_SIDE = 8;

export interface BulkReplayParts {
  readonly access: InstanceAccess;
  readonly catalog: InstanceCatalog;
  readonly pages: InstancePages;
  readonly problems: ProblemIndex;
  /** The route of one instance. */
  readonly replay: Route;
}

export function bulkReplayRoute(parts: BulkReplayParts): Route {
  const { access, catalog, pages, problems } = parts;
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
    handler: async (request) => {
      const agent = access.definition(request).kebab;
      const account = accountOf(request);
      const { limit, cursor } = request.body;
      await Promise.all([catalog.flush(), problems.settle()]);
      const startedAt = performance.now();
      const failed: { name: string; error: string }[] = [];
      let after = cursor ?? "";
      let visited = 0;
      let replayed = 0;
      while (visited < limit && !request.signal.aborted && performance.now() - startedAt < MAX_MS) {
        const count = Math.min(SIDE_BY_SIDE, limit - visited);
        const names = await pages.withDeadLetters(account, agent, after, count);
        if (names.length === 0) break;
        const counts = await Promise.all(
          names.map((name) =>
            replayOne(parts.replay, request, name).catch((error: unknown) => {
              failed.push({ name, error: storedErrorText(toStoredError(error)) });
              return 0;
            }),
          ),
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

async function replayOne(route: Route, request: RouteRequest, name: string): Promise<number> {
  const reply = await route.handler(new InstanceRequest(request, name));
  const result =
    reply.result ?? (reply.resultJson === undefined ? {} : (JSON.parse(reply.resultJson) as unknown));
  return (result as { readonly replayed?: number }).replayed ?? 0;
}

/** The request for one instance of the agent. */
class InstanceRequest implements RouteRequest {
  readonly id: string;
  readonly params: Readonly<Record<string, string>>;
  readonly query = {};
  readonly rawQuery = new URLSearchParams();
  readonly body = {};
  readonly headers: IncomingHttpHeaders = {};
  readonly signal: AbortSignal;
  readonly #request: RouteRequest;

  constructor(request: RouteRequest, name: string) {
    this.#request = request;
    this.id = request.id;
    this.params = { ...request.params, instance_name: name };
    this.signal = request.signal;
  }

  get principal(): RouteRequest["principal"] {
    return this.#request.principal;
  }

  get trafficOrigin(): string {
    return this.#request.trafficOrigin;
  }

  parameter(): null {
    return null;
  }

  allowParameters(): void {}

  readBody(): Promise<Buffer> {
    return Promise.reject(new SignalboxError("internal"));
  }
}
