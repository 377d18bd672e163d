/** The dynamic route of a model with several deployments or with fallbacks. */
import type { RouteElement } from "@signalbox/client";
import { type ImportedRoute, sharesOf } from "./imported-routes.ts";

export interface RoutedModel {
  readonly provider: string;
  readonly model: string;
  readonly timeoutMs: number | null;
  readonly retries: number | null;
  readonly weight: number;
}

/** A route has at most 200 elements; each deployment needs a chain of its own. */
const MAX_DEPLOYMENTS = 10;
const MAX_CHAIN = 15;
const END = "end";

/** A call goes to one deployment by weight; if it fails, to the other deployments in their order, and then to the fallbacks. */
export function toRoute(
  name: string,
  deployments: readonly RoutedModel[],
  fallbacks: readonly RoutedModel[],
): ImportedRoute {
  const chosen = deployments.slice(0, MAX_DEPLOYMENTS);
  const chains = chosen.map((first, i) => {
    const others = chosen.filter((other) => other !== first);
    return toChain(`m${i + 1}`, [first, ...others, ...fallbacks].slice(0, MAX_CHAIN));
  });
  const shares = chosen.map(({ weight }, i) => ({ weight, elementId: `m${i + 1}-1` }));
  const first = chains.length === 1 ? "m1-1" : "share";
  return {
    name,
    elements: [
      { id: "start", type: "start", outputs: { next: { elementId: first } } },
      ...(chains.length === 1 ? [] : [{ id: "share", type: "percentage", outputs: sharesOf(shares) }]),
      ...chains.flat(),
      { id: END, type: "end", outputs: {} },
    ],
  };
}

/** What a route has no room for; null if it has everything. */
export function leftOutOf(
  deployments: readonly RoutedModel[],
  fallbacks: readonly RoutedModel[],
): string | null {
  const chain = Math.min(deployments.length, MAX_DEPLOYMENTS) + fallbacks.length;
  const parts = [
    ...(deployments.length > MAX_DEPLOYMENTS ? [`${deployments.length - MAX_DEPLOYMENTS} deployments`] : []),
    ...(chain > MAX_CHAIN ? [`${chain - MAX_CHAIN} fallbacks`] : []),
  ];
  return parts.length === 0
    ? null
    : `a route has at most ${MAX_DEPLOYMENTS} deployments and ${MAX_CHAIN} attempts; left out: ${parts.join(", ")}`;
}

function toChain(id: string, models: readonly RoutedModel[]): RouteElement[] {
  return models.map(({ provider, model, timeoutMs, retries }, i) => ({
    id: `${id}-${i + 1}`,
    type: "model",
    properties: {
      provider,
      model,
      ...(timeoutMs === null ? {} : { timeout: timeoutMs }),
      ...(retries === null ? {} : { retries }),
    },
    outputs: {
      success: { elementId: END },
      ...(i + 1 < models.length ? { fallback: { elementId: `${id}-${i + 2}` } } : {}),
    },
  }));
}
