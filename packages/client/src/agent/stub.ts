import type { AgentStub } from "./agent-shape.ts";

/** Maps property access to calls. Symbols and `then` are undefined, so that a stub can be awaited and printed. */
export function createStub<Agent>(
  call: (method: string, args: unknown[]) => Promise<unknown>,
): AgentStub<Agent> {
  const methods = new Map<string, (...args: unknown[]) => Promise<unknown>>();
  return new Proxy(Object.create(null) as object, {
    get(_target, name) {
      if (typeof name === "symbol" || name === "then" || name === "toJSON") return undefined;
      // Always the same function, because React compares values by identity.
      let method = methods.get(name);
      if (method === undefined) methods.set(name, (method = (...args) => call(name, args)));
      return method;
    },
  }) as AgentStub<Agent>;
}
