/**
 * The state of a new instance of a class, without creating one: for clients that connect to an entity before its first event. The class is
 * constructed once with a host that has no instance, so a class whose constructor needs more than its own fields has no initial state here.
 */
import type { AgentClass } from "../api/agent.ts";
import type { AgentHost } from "../api/agent-host.ts";

/** JSON; null when the class has no initial state, or its constructor needs an instance. */
export function initialStateOf(agentClass: AgentClass): string | null {
  try {
    const { initialState } = new agentClass(NO_HOST, {}) as { readonly initialState?: unknown };
    return JSON.stringify(initialState) ?? null;
  } catch {
    // The operator's constructor was not written for this; clients wait for the first state instead.
    return null;
  }
}

/** The members of the host that are the same for every new instance. Reading any other member ends the attempt. */
const NEW = { isNew: true, startedWith: "", env: {} };

const NO_HOST = new Proxy(NEW as unknown as AgentHost, {
  get(host, property): unknown {
    if (!Object.hasOwn(NEW, property)) throw new Error("there is no instance yet");
    return Reflect.get(host, property);
  },
});
