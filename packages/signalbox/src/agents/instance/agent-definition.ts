/** An agent class as the runtime keeps it: its name in URLs, what clients may call, and its settings. */
import { kebabCase } from "@signalbox/protocol";
import type { AnyAgent, AgentClass } from "../api/agent.ts";
import { AGENT_BASE, type CallableMethod, findCallables, isOwnMethod } from "../api/callable.ts";
import { initialSchemaOf } from "../api/initial-schema.ts";
import { initialStateOf } from "./initial-state.ts";
import { keyPrefix } from "./instance-key.ts";

export class AgentDefinition {
  readonly agentClass: AgentClass;
  readonly className: string;
  /** Name in URLs. */
  readonly kebab: string;
  readonly callables: ReadonlyMap<string, CallableMethod>;
  /** Turns may start while others are at an await. */
  readonly isInterleaving: boolean;
  readonly sendsIdentity: boolean;
  /** Asked with every change of a state. */
  readonly hasStateHook: boolean;
  /** Asked with every HTTP request. */
  readonly hasRequestHook: boolean;
  /** Asked with every connection that closes. */
  readonly hasCloseHook: boolean;
  /** What is in the database of a new instance beside the runtime's tables; empty for nothing. */
  readonly initialSchema: string;
  /** File it came from, for people; null for built-in ones. */
  readonly source: string | null;
  #initialState: string | null | undefined;
  /** The account asked for last, and what keys of its instances begin with. */
  #account = "";
  #keyPrefix = "";

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
      throw new TypeError(`the class name "${agentClass.name}" gives no name that can stand in a URL`);
    }
  }

  /** What a new instance shows, as JSON; null for nothing. Found out when it is first needed. */
  get initialState(): string | null {
    if (this.#initialState === undefined) this.#initialState = initialStateOf(this.agentClass);
    return this.#initialState;
  }

  /** The key of an instance of this agent. One is made for every event, and most come for the same account as the one before. */
  keyOf(account: string, name: string): string {
    if (account !== this.#account) {
      this.#keyPrefix = keyPrefix(account, this.kebab);
      this.#account = account;
    }
    return this.#keyPrefix + name;
  }

  /** True for methods of the agent's own code, which queue items and schedules may name. */
  hasMethod(name: string): boolean {
    return isOwnMethod(this.agentClass, name);
  }
}

/** True for any class that extends `Agent`, whichever copy of it. */
export function isAgentClass(value: unknown): value is AgentClass {
  return (
    typeof value === "function" &&
    typeof value.prototype === "object" &&
    value.prototype !== null &&
    (value.prototype as AnyAgent & { [AGENT_BASE]?: true })[AGENT_BASE] === true &&
    !Object.hasOwn(value.prototype as object, AGENT_BASE)
  );
}
