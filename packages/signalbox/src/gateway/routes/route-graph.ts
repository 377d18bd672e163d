/**
 * The graph of a dynamic route: checked when it is saved, so that a call never meets a broken one. The JSON is that of the hosted original.
 *
 * A graph that was accepted has these properties, which the walk (`route-walk.ts`) relies on:
 * 1. Every output names an element of the graph.
 * 2. There is one start, and no output leads back: each element is visited at most once per call.
 * 3. Every element can be reached from the start, among them an end; what follows a model's success is an end.
 * 4. Percentages add up to 100, or leave the rest to `else`.
 * 5. Conditions and patterns are compiled, and providers exist.
 */
import { invalidRequest } from "../../core/invalid-request.ts";
import { type Condition, compileCondition } from "./condition.ts";
import { checkPath } from "./route-facts.ts";
import { SearchBudget } from "./search-budget.ts";

interface Placed {
  readonly id: string;
}

export interface Share {
  /** 0 to 100; the upper end of this output's part. */
  readonly upTo: number;
  readonly label: string;
  readonly next: string;
}

export type RouteElement =
  | (Placed & { readonly type: "start"; readonly next: string })
  | (Placed & {
      readonly type: "conditional";
      readonly holds: Condition;
      readonly yes: string;
      readonly no: string;
    })
  | (Placed & { readonly type: "percentage"; readonly shares: readonly Share[] })
  | RateElement
  | ModelElement
  | (Placed & { readonly type: "end" });

export interface RateElement extends Placed {
  readonly type: "rate";
  readonly limitType: "count" | "cost";
  /** The fact that separates the counts; null for one count. */
  readonly key: string | null;
  /** Calls, or US dollars. */
  readonly limit: number;
  readonly windowS: number;
  readonly technique: "fixed" | "sliding";
  readonly success: string;
  /** Null ends the route with a refusal. */
  readonly fallback: string | null;
}

export interface ModelElement extends Placed {
  readonly type: "model";
  readonly provider: string;
  readonly model: string;
  /** Milliseconds; null for the caller's or the service's limit. */
  readonly timeoutMs: number | null;
  /** After the first attempt; null for the gateway's setting. */
  readonly retries: number | null;
  /** An end, or null. The answer goes to the client as it arrives, so nothing can follow it. */
  readonly success: string | null;
  readonly fallback: string | null;
}

export interface RouteGraph {
  readonly start: string;
  readonly elements: ReadonlyMap<string, RouteElement>;
}

export const MAX_ELEMENTS = 200;
const MAX_SHARES = 20;
const MAX_RETRIES = 4;
const MAX_TIMEOUT_MS = 3_600_000;
const MAX_WINDOW_S = 366 * 24 * 3600;

/** Throws `invalid_request` with the id of the element that is wrong. */
export function parseGraph(given: unknown, isProvider: (slug: string) => boolean): RouteGraph {
  if (!Array.isArray(given) || given.length === 0 || given.length > MAX_ELEMENTS) {
    throw invalidRequest(`elements must be a list of 1 to ${MAX_ELEMENTS} elements`);
  }
  const elements = new Map<string, RouteElement>();
  const budget = new SearchBudget();
  for (const [i, item] of given.entries()) {
    const id = idOf(item, i);
    if (elements.has(id)) throw invalidRequest(`element "${id}": the id is used twice`);
    try {
      elements.set(id, toElement(id, item as Record<string, unknown>, isProvider, budget));
    } catch (error) {
      throw invalidRequest(`element "${id}": ${(error as Error).message}`);
    }
  }
  return { start: checkShape(elements), elements };
}

/** The elements that an element leads to, in the order of its outputs. */
export function outputsOf(element: RouteElement): string[] {
  switch (element.type) {
    case "start":
      return [element.next];
    case "conditional":
      return [element.yes, element.no];
    case "percentage":
      return element.shares.map(({ next }) => next);
    case "rate":
    case "model":
      return [element.success, element.fallback].filter((next) => next !== null);
    case "end":
      return [];
  }
}

function checkShape(elements: ReadonlyMap<string, RouteElement>): string {
  const starts = [...elements.values()].filter(({ type }) => type === "start");
  const [start, second] = starts;
  if (start === undefined) throw invalidRequest("elements: one element must be of type start");
  if (second !== undefined) throw invalidRequest(`element "${second.id}": a route has one start`);
  for (const element of elements.values()) {
    for (const next of outputsOf(element)) {
      const target = elements.get(next);
      if (target === undefined)
        throw invalidRequest(`element "${element.id}": no element has the id "${next}"`);
      if (element.type === "model" && next === element.success && target.type !== "end") {
        throw invalidRequest(`element "${element.id}": success must lead to an end`);
      }
      if (target.type === "start")
        throw invalidRequest(`element "${element.id}": an output leads back to the start`);
    }
  }
  const reached = visit(elements, start.id);
  for (const id of elements.keys()) {
    if (!reached.has(id)) throw invalidRequest(`element "${id}": cannot be reached from the start`);
  }
  if (![...elements.values()].some(({ type }) => type === "end")) {
    throw invalidRequest("elements: one element must be of type end");
  }
  return start.id;
}

/** Depth first without recursion; throws for an output that leads back to an element on the way. */
function visit(elements: ReadonlyMap<string, RouteElement>, start: string): Set<string> {
  const done = new Set<string>();
  const onWay = new Set<string>();
  const stack: { readonly id: string; readonly rest: string[] }[] = [];
  const enter = (id: string) => {
    const element = elements.get(id);
    onWay.add(id);
    stack.push({ id, rest: element === undefined ? [] : outputsOf(element) });
  };
  enter(start);
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const next = top.rest.shift();
    if (next === undefined) {
      stack.pop();
      onWay.delete(top.id);
      done.add(top.id);
    } else if (onWay.has(next)) {
      throw invalidRequest(`element "${top.id}": the output to "${next}" makes a cycle`);
    } else if (!done.has(next)) {
      enter(next);
    }
  }
  return done;
}

function toElement(
  id: string,
  given: Record<string, unknown>,
  isProvider: (slug: string) => boolean,
  budget: SearchBudget,
): RouteElement {
  const outputs = toOutputs(given["outputs"]);
  const properties = toObject(given["properties"] ?? {}, "properties");
  const output = (name: string): string => {
    const next = outputs.get(name);
    if (next === undefined) throw new Error(`the output ${name} is missing`);
    return next;
  };
  switch (given["type"]) {
    case "start":
      return { id, type: "start", next: output("next") };
    case "conditional": {
      const holds = compileCondition(properties["conditions"] ?? properties["condition"], budget);
      return { id, type: "conditional", holds, yes: output("true"), no: output("false") };
    }
    case "percentage":
      return { id, type: "percentage", shares: toShares(outputs) };
    case "rate":
    case "rate_limit":
      return {
        id,
        type: "rate",
        limitType: oneOf(properties["limitType"], ["count", "cost"] as const, "limitType"),
        key: toKey(properties["key"]),
        limit: number(properties["limit"], "limit", 0, 1e12),
        windowS: number(properties["window"] ?? properties["interval"], "window", 1, MAX_WINDOW_S),
        technique: oneOf(properties["technique"] ?? "fixed", ["fixed", "sliding"] as const, "technique"),
        success: output("success"),
        fallback: outputs.get("fallback") ?? null,
      };
    case "model": {
      const model = toModel(properties, isProvider);
      return {
        id,
        type: "model",
        ...model,
        success: outputs.get("success") ?? null,
        fallback: outputs.get("fallback") ?? null,
      };
    }
    case "end":
      return { id, type: "end" };
    default:
      throw new Error("type must be start, conditional, percentage, rate, model or end");
  }
}

function toModel(
  properties: Record<string, unknown>,
  isProvider: (slug: string) => boolean,
): Pick<ModelElement, "provider" | "model" | "timeoutMs" | "retries"> {
  const provider = text(properties["provider"], "provider");
  if (!isProvider(provider)) throw new Error(`the provider "${provider}" is not known`);
  const { timeout, retries } = properties;
  return {
    provider,
    model: text(properties["model"], "model"),
    // 0 means no limit of its own in the original's editor.
    timeoutMs: timeout === undefined || timeout === 0 ? null : number(timeout, "timeout", 1, MAX_TIMEOUT_MS),
    retries: retries === undefined ? null : whole(number(retries, "retries", 0, MAX_RETRIES), "retries"),
  };
}

/** `10%`, `33.4%`, and `50% b` where two outputs have the same share; `else` gets the rest. */
const SHARE = /^(\d{1,3}(?:\.\d{1,6})?)\s*%/;

function toShares(outputs: ReadonlyMap<string, string>): Share[] {
  const shares: Share[] = [];
  let sum = 0;
  for (const [label, next] of outputs) {
    if (label === "else") continue;
    const percent = Number(SHARE.exec(label)?.[1] ?? Number.NaN);
    if (!(percent >= 0)) throw new Error(`the output "${label.slice(0, 32)}" must be a percentage or else`);
    // Whole millionths: 33.3 + 33.3 + 33.4 is 100.
    sum = Math.round((sum + percent) * 1e6) / 1e6;
    shares.push({ upTo: sum, label, next });
  }
  const rest = outputs.get("else");
  if (shares.length === 0 || shares.length > MAX_SHARES) {
    throw new Error(`a percentage element has 1 to ${MAX_SHARES} percentages`);
  }
  if (sum > 100) throw new Error(`the percentages add up to ${sum}, which is more than 100`);
  if (rest !== undefined) shares.push({ upTo: 100, label: "else", next: rest });
  else if (sum < 100) throw new Error(`the percentages add up to ${sum}; add an output else for the rest`);
  return shares;
}

function idOf(item: unknown, i: number): string {
  const id = typeof item === "object" && item !== null ? (item as { id?: unknown }).id : undefined;
  if (typeof id !== "string" || !/^[\x20-\x7e]{1,128}$/.test(id)) {
    throw invalidRequest(`elements.${i}: id must be 1 to 128 printable characters`);
  }
  return id;
}

function toOutputs(given: unknown): Map<string, string> {
  const outputs = new Map<string, string>();
  for (const [name, output] of Object.entries(toObject(given ?? {}, "outputs"))) {
    const { elementId } = toObject(output, `the output ${name.slice(0, 32)}`);
    outputs.set(name, text(elementId, `elementId of the output ${name.slice(0, 32)}`));
  }
  return outputs;
}

function toObject(given: unknown, name: string): Record<string, unknown> {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new Error(`${name} must be an object`);
  }
  return given as Record<string, unknown>;
}

function toKey(given: unknown): string | null {
  if (given === undefined || given === null || given === "") return null;
  const key = text(given, "key");
  checkPath(key);
  return key;
}

function text(given: unknown, name: string): string {
  if (typeof given === "string" && given !== "" && given.length <= 256) return given;
  throw new Error(`${name} must be text of 1 to 256 characters`);
}

function number(given: unknown, name: string, min: number, max: number): number {
  if (typeof given === "number" && given >= min && given <= max) return given;
  throw new Error(`${name} must be a number from ${min} to ${max}`);
}

function whole(value: number, name: string): number {
  if (Number.isInteger(value)) return value;
  throw new Error(`${name} must be a whole number`);
}

function oneOf<T extends string>(given: unknown, known: readonly T[], name: string): T {
  const found = known.find((one) => one === given);
  if (found === undefined) throw new Error(`${name} must be ${known.join(" or ")}`);
  return found;
}
