/** Walks through a route without calling a model, to show which way a request takes. */
import { shareOf } from "./order-steps.ts";
import { factsOfTrial, type GivenRequest, type RequestFacts } from "./route-facts.ts";
import type { ModelElement, RouteGraph } from "./route-graph.ts";
import { RouteWalk, type WalkedElement } from "./route-walk.ts";

export interface Trial {
  readonly facts: RequestFacts;
  /** Ids of models that fail. */
  readonly failing: ReadonlySet<string>;
}

export interface TrialResult {
  readonly way: WalkedElement[];
  /** The model that would answer; null when the route reaches none. */
  readonly provider: string | null;
  readonly model: string | null;
  readonly error: string | null;
}

export function parseTrial({
  failing = [],
  ...request
}: GivenRequest & { readonly failing?: readonly string[] | undefined }): Trial {
  return { failing: new Set(failing), facts: factsOfTrial(request) };
}

function atOnce(found: ReturnType<RouteWalk["start"]>): ModelElement | null {
  if (found instanceof Promise) throw new Error("a trial counts nothing");
  return found;
}

export function tryRoute(graph: RouteGraph, routeId: string, { facts, failing }: Trial): TrialResult {
  const walk = new RouteWalk({
    graph,
    facts,
    // A trial finds every limit unused.
    count: () => ({ budget: null }),
    draw: (elementId) =>
      facts.session === null ? Math.random() : shareOf(facts.session, `${routeId}/${elementId}`),
  });
  // A trial waits for no limit.
  let model = atOnce(walk.start());
  while (model !== null && failing.has(model.id)) model = atOnce(walk.fallback());
  return {
    way: walk.way,
    provider: model?.provider ?? null,
    model: model?.model ?? null,
    error: model === null ? (walk.refusal?.message ?? "the route reaches no model") : null,
  };
}
