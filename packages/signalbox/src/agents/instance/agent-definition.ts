/** An agent class as the runtime sees it: its name in URLs, its callable methods, and its settings. */
import { kebabCase } from "@signalbox/protocol";
import type { AnyAgent, AgentClass } from "../api/agent.ts";
import { AGENT_BASE, type CallableMethod, findCallables, isOwnMethod } from "../api/callable.ts";
import { initialSchemaOf } from "../api/initial-schema.ts";
import { initialStateOf } from "./initial-state.ts";

export class AgentDefinition {
  readonly agentClass: AgentClass;
  readonly className: string;
  /** Name in URLs. */
  readonly kebab: string;
  readonly callables: ReadonlyMap<string, CallableMethod>;
  /** Turns may start while others are at an await. */
  readonly isInterleaving: boolean;
  readonly sendsIdentity: boolean;
  /** The class has an `onStateChanged`, an `onRequest`, an `onClose`: read with every state, request and closed connection. */
  readonly hasStateHook: boolean;
  readonly hasRequestHook: boolean;
  readonly hasCloseHook: boolean;
  /** The schema of a new instance's database beside the runtime's tables; empty for none. */
  readonly initialSchema: string;
  /** The file that the class was loaded from; null for built-in agents. */
  readonly source: string | null;
  #initialState: string | null | undefined;

  constructor(agentClass: AgentClass, source: string | null) {
    this.agentClass = agentClass;
    this.className = agentClass.name;
    this.kebab = kebabCase(agentClass.name);
    this.callables = findCallables(agentClass);
    this.isInterleaving = agentClass.options?.interleave === true;
    this.sendsIdentity = agentClass.options?.sendIdentityOnConnect !== false;
    this.hasStateHook = isOwnMethod(agentClass, "onStateChanged");
    this.hasRequestHook = isOwnMethod(agentClass, "onRequest");
    this.hasCloseHook = isOwnMethod(agentClass, "onClose");
    this.initialSchema = initialSchemaOf(agentClass);
    this.source = source;
    if (!/^[a-z0-9][a-z0-9-]*$/.test(this.kebab)) {
      throw new TypeError(`the class name "${agentClass.name}" gives no valid name for URLs`);
    }
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
