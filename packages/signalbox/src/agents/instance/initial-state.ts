/**
 * The state that a new instance of a class shows, known without one: for those who look at an entity before its first event. The class is
 * constructed once for that, without an instance behind it, so a class whose constructor needs more than its own fields has none to show.
 */
import type { AgentClass } from "../api/agent.ts";
import type { AgentHost } from "../api/agent-host.ts";

/** JSON text; null when the class has no initial state, or cannot say without an instance. */
export function initialStateOf(agentClass: AgentClass): string | null {
  try {
    const { initialState } = new agentClass(NO_HOST, {}) as { readonly initialState?: unknown };
    return JSON.stringify(initialState) ?? null;
  } catch {
    // The operator's code, and not written for this; readers then wait for the first state.
    return null;
  }
}

/** What is the same for every instance that is new; asking for anything else ends the attempt. */
const NEW = { isNew: true, startedWith: "", env: {} };

const NO_HOST = new Proxy(NEW as unknown as AgentHost, {
  get(host, property): unknown {
    if (!Object.hasOwn(NEW, property)) throw new Error("there is no instance yet");
    return Reflect.get(host, property);
  },
});
