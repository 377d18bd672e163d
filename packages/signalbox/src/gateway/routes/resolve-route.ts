/**
 * Resolves a dynamic route for one call: the first step, the steps that follow when it fails, and the headers that name the route. Used by every
 * way to call a route; the caller turns a target into a step of its dialect. Every step is checked against the rules of the call's token.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { StepSource } from "../step/step-source.ts";
import type { Arrival, CallPlan } from "../call/call-start.ts";
import { requireAllowedStep } from "../keys/policy-use.ts";
import type { ModelTarget } from "../models/model-target.ts";
import type { CallOptions } from "../step/call-options.ts";
import type { Step } from "../step/step.ts";
import type { ProviderDirectory } from "../providers/provider.ts";
import { shareOf } from "./order-steps.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { DynamicRoutes } from "./dynamic-routes.ts";
import type { RouteCounters } from "./route-counters.ts";
import { type CallBody, factsOfCall } from "./route-facts.ts";
import type { ModelElement, RouteGraph } from "./route-graph.ts";
import { RouteWalk } from "./route-walk.ts";

/** A call of a route. */
export interface RouteCall extends CallBody {
  readonly name: string;
  readonly options: CallOptions;
}

/** Turns a target into a step; may throw a `SignalboxError`, and the route then goes to the element's fallback. */
export type PlanTarget = (target: ModelTarget) => Step;

export interface RouteResolverParts {
  readonly routes: DynamicRoutes;
  readonly counters: RouteCounters;
  readonly providers: ProviderDirectory;
}

export class RouteResolver {
  readonly #parts: RouteResolverParts;

  constructor(parts: RouteResolverParts) {
    this.#parts = parts;
  }

  /**
   * Throws `gateway_unknown_route` for a name without a route, `gateway_route_without_model` when the route reaches no model, and the refusal
   * of a rate element without a fallback.
   */
  resolveRoute(arrival: Arrival, call: RouteCall, plan: PlanTarget): CallPlan | Promise<CallPlan> {
    const { routes, counters } = this.#parts;
    const { gateway } = arrival;
    const { name, options } = call;
    const route = routes.findByName(gateway, name);
    if (route === undefined) {
      const known = routes.list(gateway).map((one) => one.name);
      throw new SignalboxError("gateway_unknown_route", {
        message: `Unknown dynamic route ${name.slice(0, 64)}; this gateway has ${known.length === 0 ? "none" : known.slice(0, 20).join(", ")}`,
      });
    }
    const graph = this.#graphOf(gateway, route);
    const facts = factsOfCall(arrival, options, call);
    const policy = arrival.caller.token?.policy ?? null;
    const walk = new RouteWalk({
      graph,
      facts,
      count: (element, value) => counters.count(gateway, route.id, element, value),
      draw: (elementId) =>
        facts.session === null ? Math.random() : shareOf(facts.session, `${route.id}/${elementId}`),
    });
    const source = new WalkedSteps(walk, (element) => {
      const step = plan(this.#toTarget(gateway, element));
      if (policy !== null) requireAllowedStep(policy, step);
      return step;
    });
    const begin = (first: Step | null): CallPlan => {
      if (first === null) throw source.error ?? withoutModel(name, walk);
      return {
        options,
        steps: [first],
        showsStep: true,
        moreSteps: source,
        routeHeaders: ["gw-aig-route", route.name, "gw-aig-route-version", route.version.id],
        budgets: hasBudget(graph) ? walk.budgets : undefined,
      };
    };
    const first = source.take(walk.start());
    return first instanceof Promise ? first.then(begin) : begin(first);
  }

  /** A stored graph may name a provider that was deleted since. */
  #graphOf(gateway: Gateway, route: { name: string; version: Parameters<DynamicRoutes["graphOf"]>[1] }) {
    try {
      return this.#parts.routes.graphOf(gateway.accountId, route.version);
    } catch (error) {
      if (!(error instanceof SignalboxError)) throw error;
      throw new SignalboxError("gateway_unknown_route", {
        message: `The dynamic route ${route.name} is not valid: ${error.message}`,
      });
    }
  }

  #toTarget(gateway: Gateway, element: ModelElement): ModelTarget {
    const provider = this.#parts.providers.find(gateway.accountId, element.provider);
    if (provider === undefined) {
      throw new SignalboxError("gateway_unknown_provider", {
        message: `element ${element.id}: the provider ${element.provider} is not known`,
      });
    }
    return {
      provider,
      model: element.model,
      isExplicit: false,
      // The element's timeout and attempts take precedence over the caller's.
      options: {
        ...(element.timeoutMs === null ? {} : { requestTimeoutMs: element.timeoutMs }),
        ...(element.retries === null ? {} : { maxAttempts: element.retries + 1 }),
      },
    };
  }
}

/** The steps of a walk, each planned when it is needed. */
class WalkedSteps implements StepSource {
  /** Why the last model could not be planned. */
  error: SignalboxError | null = null;
  readonly #walk: RouteWalk;
  readonly #plan: (element: ModelElement) => Step;

  constructor(walk: RouteWalk, plan: (element: ModelElement) => Step) {
    this.#walk = walk;
    this.#plan = plan;
  }

  get mayHaveNext(): boolean {
    return this.#walk.hasFallback;
  }

  get refusal(): SignalboxError | null {
    return this.#walk.refusal;
  }

  next(): Step | null | Promise<Step | null> {
    return this.take(this.#walk.fallback());
  }

  /** The step of the model, or of the first one behind it that can be planned. */
  take(model: ModelElement | null | Promise<ModelElement | null>): Step | null | Promise<Step | null> {
    if (model instanceof Promise) return model.then((late) => this.take(late));
    if (model === null) return null;
    try {
      return this.#plan(model);
    } catch (error) {
      // The walk may go on in the middle of a call, where nothing catches an error.
      this.error = error instanceof SignalboxError ? error : new SignalboxError("internal", { cause: error });
    }
    return this.next();
  }
}

/** A budget may be behind a model, and be found only when the model has failed. */
function hasBudget({ elements }: RouteGraph): boolean {
  for (const element of elements.values()) {
    if (element.type === "rate" && element.limitType === "cost") return true;
  }
  return false;
}

function withoutModel(name: string, { way, refusal }: RouteWalk): SignalboxError {
  if (refusal !== null) return refusal;
  return new SignalboxError("gateway_route_without_model", {
    message: `The dynamic route ${name} reached no model: ${way.map(({ id }) => id).join(" → ")}`,
  });
}
