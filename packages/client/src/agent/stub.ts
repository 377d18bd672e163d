import type { AgentStub } from "./agent-shape.ts";

/** Turns property access into calls. Symbols and `then` stay undefined, so that a stub can be awaited, printed and compared. */
export function createStub<Agent>(
  call: (method: string, args: unknown[]) => Promise<unknown>,
): AgentStub<Agent> {
  const methods = new Map<string, (...args: unknown[]) => Promise<unknown>>();
  return new Proxy(Object.create(null) as object, {
    get(_target, name) {
      if (typeof name === "symbol" || name === "then" || name === "toJSON") return undefined;
      // The same function each time: React compares what it is given.
      let method = methods.get(name);
      if (method === undefined) methods.set(name, (method = (...args) => call(name, args)));
      return method;
    },
  }) as AgentStub<Agent>;
}
