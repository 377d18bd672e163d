/**
 * `this.env` of the agents of an account: the variables of the service, its address as `SIGNALBOX_URL`, and one namespace for each agent under the
 * name of its export. A variable of the same name has priority. Namespaces are not enumerable: programs that list or copy the environment get the
 * variables.
 */
import type { AgentEnvironment } from "../api/agent-host.ts";
import { type AgentCall, AgentNamespace } from "../api/agent-stub.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import type { InstanceRef } from "./instance-ref.ts";

/** The address of the service, for agents that use its gateway. */
const URL_VARIABLE = "SIGNALBOX_URL";

export class AccountEnvironments {
  readonly #variables: AgentEnvironment;
  readonly #definitions: ReadonlyMap<string, AgentDefinition>;
  readonly #callAgent: (target: InstanceRef, call: AgentCall) => Promise<unknown>;
  readonly #server: { readonly url: string };
  readonly #byAccount = new Map<string, AgentEnvironment>();

  constructor(
    variables: AgentEnvironment,
    definitions: ReadonlyMap<string, AgentDefinition>,
    callAgent: (target: InstanceRef, call: AgentCall) => Promise<unknown>,
    server: { readonly url: string },
  ) {
    this.#server = server;
    this.#variables = variables;
    this.#definitions = definitions;
    this.#callAgent = callAgent;
  }

  /** Called when the agents have been loaded. */
  of(account: string): AgentEnvironment {
    let environment = this.#byAccount.get(account);
    if (environment === undefined) {
      environment = this.#create(account);
      this.#byAccount.set(account, environment);
    }
    return environment;
  }

  #create(account: string): AgentEnvironment {
    const environment = { ...this.#variables };
    // Known when the service listens.
    if (environment[URL_VARIABLE] === undefined)
      Object.defineProperty(environment, URL_VARIABLE, { get: () => this.#server.url || undefined });
    for (const { exportName, kebab } of this.#definitions.values()) {
      if (Object.hasOwn(environment, exportName)) continue;
      const value = new AgentNamespace((name, call) =>
        this.#callAgent({ account, agent: kebab, name }, call),
      );
      Object.defineProperty(environment, exportName, { value });
    }
    return environment;
  }
}
