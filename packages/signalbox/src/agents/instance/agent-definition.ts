/** An agent class as the runtime sees it: its name in URLs, its callable methods, and its settings. */
import { kebabCase } from "@signalbox/protocol";
import type { AnyAgent, AgentClass } from "../api/agent.ts";
import { AGENT_BASE, type CallableMethod, findCallables, isOwnMethod } from "../api/callable.ts";
import { initialSchemaOf } from "../api/initial-schema.ts";
import { toStoredRetry } from "../work/retry-options.ts";
import { initialStateOf } from "./initial-state.ts";

/** The hook that a class has for changes of the state. */
export type StateHook = "onStateChanged" | "onStateUpdate";

export class AgentDefinition {
  readonly agentClass: AgentClass;
  /** The name under which the class was exported, which is its name in `env`. */
  readonly exportName: string;
  /** Name in URLs. */
  readonly kebab: string;
  readonly callables: ReadonlyMap<string, CallableMethod>;
  /** Turns may start while others are at an await. */
  readonly isInterleaving: boolean;
  /** Turns are recorded in the timeline. */
  readonly isRecorded: boolean;
  readonly sendsIdentity: boolean;
  /** Read with every state. */
  readonly stateHook: StateHook | null;
  /** The class has an `onRequest`, an `onClose`: read with every request and closed connection. */
  readonly hasRequestHook: boolean;
  readonly hasCloseHook: boolean;
  /** The schema of a new instance's database beside the runtime's tables; empty for none. */
  readonly initialSchema: string;
  /** The file that the class was loaded from; null for built-in agents. */
  readonly source: string | null;
  #initialState: string | null | undefined;

  /** Throws for a class that cannot be an agent. `exportName` is null for built-in agents and default exports: they are named by class. */
  constructor(agentClass: AgentClass, source: string | null, exportName: string | null = null) {
    this.agentClass = agentClass;
    this.exportName = exportName ?? agentClass.name;
    this.kebab = kebabCase(this.exportName);
    this.callables = findCallables(agentClass);
    this.isInterleaving = agentClass.options?.interleave === true;
    this.isRecorded = agentClass.options?.timeline !== false;
    this.sendsIdentity = agentClass.options?.sendIdentityOnConnect !== false;
    this.stateHook = findStateHook(agentClass);
    this.hasRequestHook = isOwnMethod(agentClass, "onRequest");
    this.hasCloseHook = isOwnMethod(agentClass, "onClose");
    this.initialSchema = initialSchemaOf(agentClass);
    this.source = source;
    if (!/^[a-z0-9][a-z0-9-]*$/.test(this.kebab)) {
      throw new TypeError(`the name "${this.exportName}" of the agent gives no valid name for URLs`);
    }
    // Checked when the agent is loaded, not when the first item is queued.
    toStoredRetry(agentClass.options?.retry);
  }

  /** The state of a new instance as JSON; null for none. Computed when it is first read. */
  get initialState(): string | null {
    if (this.#initialState === undefined) this.#initialState = initialStateOf(this.agentClass);
    return this.#initialState;
  }

  /** True for methods of the agent's own classes, as opposed to those of `Agent`. */
  hasMethod(name: string): boolean {
    return isOwnMethod(this.agentClass, name);
  }
}

function findStateHook(agentClass: AgentClass): StateHook | null {
  const [first, second] = (["onStateChanged", "onStateUpdate"] as const).filter((hook) =>
    isOwnMethod(agentClass, hook),
  );
  if (second !== undefined)
    throw new TypeError(
      `${agentClass.name} defines onStateChanged and its former name onStateUpdate: remove one`,
    );
  return first ?? null;
}

/** True for any class that extends `Agent`, whichever copy of the module it came from. */
export function isAgentClass(value: unknown): value is AgentClass {
  return (
    typeof value === "function" &&
    typeof value.prototype === "object" &&
    value.prototype !== null &&
    (value.prototype as AnyAgent & { [AGENT_BASE]?: true })[AGENT_BASE] === true &&
    !Object.hasOwn(value.prototype as object, AGENT_BASE)
  );
}
