/**
 * `this.env` of the agents of an account: the variables of the service, and one namespace for each agent under the name of its export. A
 * variable of the same name has priority. Namespaces are not enumerable: programs that list or copy the environment get the variables.
 */
import type { AgentEnvironment } from "../api/agent-host.ts";
import { type AgentCall, AgentNamespace } from "../api/agent-stub.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import type { InstanceRef } from "./instance-ref.ts";

export class AccountEnvironments {
  readonly #variables: AgentEnvironment;
  readonly #definitions: ReadonlyMap<string, AgentDefinition>;
  readonly #callAgent: (target: InstanceRef, call: AgentCall) => Promise<unknown>;
  readonly #byAccount = new Map<string, AgentEnvironment>();

  constructor(
    variables: AgentEnvironment,
    definitions: ReadonlyMap<string, AgentDefinition>,
    callAgent: (target: InstanceRef, call: AgentCall) => Promise<unknown>,
  ) {
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
