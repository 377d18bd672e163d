/**
 * Walks through the graph of a route for one call: from the start to the first model, and from a model that failed along its `fallback` to the
 * next one. Elements behind a model are decided only when the model has failed, so a rate element on a fallback counts only calls that take it.
 *
 * The walk always ends: a graph has no cycles, and each move goes along an output.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { RouteBudget } from "../limits/call-rules.ts";
import { Delay } from "../step/delay.ts";
import type { Taken } from "./route-counters.ts";
import { readFact, type RequestFacts } from "./route-facts.ts";
import type { ModelElement, RateElement, RouteElement, RouteGraph, Share } from "./route-graph.ts";

/** One element on the way, and the output that was taken. */
export interface WalkedElement {
  readonly id: string;
  readonly type: RouteElement["type"];
  /** Null at a model, which has not answered yet, and at an end. */
  readonly output: string | null;
}

export interface WalkParts {
  readonly graph: RouteGraph;
  readonly facts: RequestFacts;
  /** A delay: the walk stops there, and `resume` counts again. */
  readonly count: (element: RateElement, value: string | null) => Taken | Delay;
  /** A number in [0, 1): at random, or the same for all calls of a session. */
  readonly draw: (elementId: string) => number;
}

interface Decision {
  readonly output: string;
  readonly next: string | null;
}

export class RouteWalk {
  readonly way: WalkedElement[] = [];
  /** The refusal of the last rate element, when the route ended there. */
  refusal: SignalboxError | null = null;
  readonly #parts: WalkParts;
  /** Of cost elements on the way: what the call costs is charged to them. */
  readonly budgets: RouteBudget[] = [];
  #model: ModelElement | null = null;
  /** The element that the walk waits at. */
  #waitsAt: string | null = null;

  constructor(parts: WalkParts) {
    this.#parts = parts;
  }

  /** The first model; null when the route reaches none. Called once. */
  start(): ModelElement | Delay | null {
    return this.#walk(this.#parts.graph.start);
  }

  /** Whether the present model has a fallback other than an end. */
  get hasFallback(): boolean {
    if (this.#waitsAt !== null) return true;
    const fallback = this.#model?.fallback ?? null;
    return fallback !== null && this.#parts.graph.elements.get(fallback)?.type !== "end";
  }

  /** The model behind the present one, which failed, or behind the element that the walk waits at; null when the route reaches none. */
  fallback(): ModelElement | Delay | null {
    if (this.#waitsAt !== null) return this.#walk(this.#waitsAt);
    const from = this.#model;
    if (from === null || from.fallback === null) return null;
    this.way[this.way.length - 1] = { id: from.id, type: "model", output: "fallback" };
    return this.#walk(from.fallback);
  }

  #walk(from: string): ModelElement | Delay | null {
    this.#model = null;
    this.#waitsAt = null;
    let id: string | null = from;
    while (id !== null) {
      const element = this.#parts.graph.elements.get(id);
      if (element === undefined) throw new Error(`a checked graph has the element ${id}`);
      if (element.type === "model" || element.type === "end") {
        this.way.push({ id, type: element.type, output: null });
        this.#model = element.type === "model" ? element : null;
        return this.#model;
      }
      const taken = this.#decide(element);
      if (taken instanceof Delay) {
        this.#waitsAt = id;
        return taken;
      }
      this.way.push({ id, type: element.type, output: taken.output });
      id = taken.next;
    }
    return null;
  }

  #decide(element: Exclude<RouteElement, { type: "model" | "end" }>): Decision | Delay {
    switch (element.type) {
      case "start":
        return { output: "next", next: element.next };
      case "conditional": {
        const holds = element.holds(this.#parts.facts);
        return { output: String(holds), next: holds ? element.yes : element.no };
      }
      case "percentage": {
        const share = pick(element.shares, this.#parts.draw(element.id));
        return { output: share.label, next: share.next };
      }
      case "rate":
        return this.#count(element);
    }
  }

  #count(element: RateElement): Decision | Delay {
    const { facts, count } = this.#parts;
    // Calls without the key share one count: leaving it out must not be a way around the limit.
    const value = element.key === null ? null : JSON.stringify([readFact(facts, element.key) ?? ""]);
    const taken = count(element, value);
    if (taken instanceof Delay) return taken;
    if (!("waitMs" in taken)) {
      if (taken.budget !== null) this.budgets.push(taken.budget);
      return { output: "success", next: element.success };
    }
    if (element.fallback === null) this.refusal = taken.error ?? toRefusal(element, taken.waitMs);
    return { output: "fallback", next: element.fallback };
  }
}

function pick(shares: readonly Share[], draw: number): Share {
  const share = shares.find(({ upTo }) => draw * 100 < upTo) ?? shares.at(-1);
  if (share === undefined) throw new Error("a percentage element has shares");
  return share;
}

function toRefusal({ limitType, id }: RateElement, waitMs: number): SignalboxError {
  const headers: Record<string, string> = Number.isFinite(waitMs)
    ? { "retry-after": String(Math.max(1, Math.ceil(waitMs / 1000))) }
    : {};
  return limitType === "cost"
    ? new SignalboxError("gateway_spend_limit", {
        message: `The budget of the route's element ${id} is spent`,
        headers,
      })
    : new SignalboxError("gateway_rate_limited", {
        message: `The limit of the route's element ${id} is reached`,
        headers,
      });
}
