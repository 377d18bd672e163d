/**
 * Walks through the graph of a route for one call: from the start to the first model, and from a model that failed along its `fallback` to the
 * next one. Elements behind a model are decided only when the model has failed, so a rate element on a fallback counts only calls that take it.
 *
 * The walk always ends: a graph has no cycles, and each move goes along an output.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { RouteBudget } from "../limits/call-rules.ts";
import { Refusal } from "../limits/limit-refusal.ts";
import type { Counted } from "./route-counters.ts";
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
  /** A promise only if nodes share the count. */
  readonly count: (element: RateElement, value: string | null) => Counted | Promise<Counted>;
  /** A number in [0, 1): at random, or the same for all calls of a session. */
  readonly draw: (elementId: string) => number;
}

interface Decision {
  readonly output: string;
  readonly next: string | null;
}

/** The model that the walk reaches; null when it reaches none. */
type Reached = ModelElement | null;

export class RouteWalk {
  readonly way: WalkedElement[] = [];
  /** The refusal of the last rate element, when the route ended there. */
  refusal: SignalboxError | null = null;
  readonly #parts: WalkParts;
  /** Of cost elements on the way: what the call costs is charged to them. */
  readonly budgets: RouteBudget[] = [];
  #model: ModelElement | null = null;

  constructor(parts: WalkParts) {
    this.#parts = parts;
  }

  /** The first model. Called once. */
  start(): Reached | Promise<Reached> {
    return this.#walk(this.#parts.graph.start);
  }

  /** Whether the current model has a fallback other than an end. */
  get hasFallback(): boolean {
    const fallback = this.#model?.fallback ?? null;
    return fallback !== null && this.#parts.graph.elements.get(fallback)?.type !== "end";
  }

  /** The model behind the current one, which failed. Not called again before it is known. */
  fallback(): Reached | Promise<Reached> {
    const from = this.#model;
    if (from === null || from.fallback === null) return null;
    this.way[this.way.length - 1] = { id: from.id, type: "model", output: "fallback" };
    return this.#walk(from.fallback);
  }

  #walk(from: string | null): Reached | Promise<Reached> {
    this.#model = null;
    let id = from;
    while (id !== null) {
      const element = this.#parts.graph.elements.get(id);
      if (element === undefined) throw new Error(`a checked graph has the element ${id}`);
      if (element.type === "model" || element.type === "end") {
        this.way.push({ id, type: element.type, output: null });
        this.#model = element.type === "model" ? element : null;
        return this.#model;
      }
      const decided = this.#decide(element);
      if (decided instanceof Promise) return decided.then((late) => this.#walk(this.#take(element, late)));
      id = this.#take(element, decided);
    }
    return null;
  }

  #take({ id, type }: RouteElement, { output, next }: Decision): string | null {
    this.way.push({ id, type, output });
    return next;
  }

  #decide(element: Exclude<RouteElement, { type: "model" | "end" }>): Decision | Promise<Decision> {
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

  #count(element: RateElement): Decision | Promise<Decision> {
    const { facts, count } = this.#parts;
    // Calls without the key share one count: leaving it out must not be a way around the limit.
    const value = element.key === null ? null : JSON.stringify([readFact(facts, element.key) ?? ""]);
    const counted = count(element, value);
    return counted instanceof Promise
      ? counted.then((late) => this.#counted(element, late))
      : this.#counted(element, counted);
  }

  #counted(element: RateElement, counted: Counted): Decision {
    if (!(counted instanceof Refusal)) {
      if (counted.budget !== null) this.budgets.push(counted.budget);
      return { output: "success", next: element.success };
    }
    if (element.fallback === null)
      this.refusal = counted.isChecked ? toRefusal(element, counted.waitMs) : counted.toError();
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
