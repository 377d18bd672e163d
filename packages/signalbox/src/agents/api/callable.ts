/**
 * The methods of an agent that clients may call: those marked with `@callable()` and those named in `static callable = […]`.
 *
 * The mark is a property of the function under a registered symbol, so that any copy of this module finds it. A subclass that overrides
 * a marked method without the mark makes the method uncallable.
 */

export interface CallableOptions {
  /** Shown to people and tools. */
  readonly description?: string;
  /** The method receives a `StreamingResponse` as its first argument. */
  readonly streaming?: boolean;
  /**
   * The method runs while another turn of the instance is at an await, and none waits for its end: for a method that stops or observes
   * what another one does. Its writes and those of the waiting turn interleave at awaits.
   */
  readonly concurrent?: boolean;
}

const CALLABLE = Symbol.for("signalbox.callable");
/** Own property of the base class's prototype. Methods of the base class are never callable. */
export const AGENT_BASE = Symbol.for("signalbox.agent");

type Method = (...args: never[]) => unknown;

/** Standard decorator: lets clients call the method. */
export function callable(options: CallableOptions = {}) {
  return <M extends Method>(method: M, context: ClassMethodDecoratorContext): M => {
    if (context.kind !== "method" || context.static || context.private) {
      throw new TypeError(`@callable() is for public instance methods, not for ${String(context.name)}`);
    }
    Object.defineProperty(method, CALLABLE, { value: options });
    return method;
  };
}

export interface CallableMethod extends CallableOptions {
  readonly name: string;
}

interface AgentLike {
  readonly prototype: object;
  readonly name: string;
}

/** Every callable method of a class. Throws a `TypeError` when `static callable` names anything but a method. */
export function findCallables(agentClass: AgentLike): ReadonlyMap<string, CallableMethod> {
  const found = new Map<string, CallableMethod>();
  const seen = new Set<string>();
  for (const prototype of ownPrototypes(agentClass.prototype)) {
    for (const name of Object.getOwnPropertyNames(prototype)) {
      if (seen.has(name)) continue;
      seen.add(name);
      const method: unknown = Object.getOwnPropertyDescriptor(prototype, name)?.value;
      const options =
        typeof method === "function" ? (method as { [CALLABLE]?: CallableOptions })[CALLABLE] : undefined;
      if (options !== undefined) found.set(name, { ...options, name });
    }
  }
  for (const name of listedNames(agentClass)) {
    if (!found.has(name)) {
      if (!isOwnMethod(agentClass, name))
        throw new TypeError(`static callable names "${name}", which is not a method of ${agentClass.name}`);
      found.set(name, { name });
    }
  }
  return found;
}

/** True for a method that the agent's own classes define, as opposed to the base class. */
export function isOwnMethod(agentClass: AgentLike, name: string): boolean {
  if (name === "constructor") return false;
  for (const prototype of ownPrototypes(agentClass.prototype)) {
    const property = Object.getOwnPropertyDescriptor(prototype, name);
    if (property !== undefined) return typeof property.value === "function";
  }
  return false;
}

/** The prototypes from the class up to the base class, exclusive. */
function* ownPrototypes(prototype: object): Generator<object> {
  let current: object | null = prototype;
  while (current !== null && !Object.hasOwn(current, AGENT_BASE) && current !== Object.prototype) {
    yield current;
    current = Object.getPrototypeOf(current) as object | null;
  }
}

function listedNames(agentClass: AgentLike): string[] {
  const names: string[] = [];
  let current: unknown = agentClass;
  while (typeof current === "function") {
    if (Object.hasOwn(current, "callable")) {
      const list = (current as { callable?: unknown }).callable;
      if (!Array.isArray(list) || list.some((name) => typeof name !== "string"))
        throw new TypeError("static callable must be an array of method names");
      names.push(...(list as string[]));
    }
    current = Object.getPrototypeOf(current);
  }
  return names;
}
