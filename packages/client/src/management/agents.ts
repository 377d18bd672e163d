import { List } from "./list.ts";
import { type RequestOptions, type Transport } from "./transport.ts";

/** An agent class that the service has loaded. */
export interface AgentClass {
  /** Kebab-case, as in addresses. */
  readonly name: string;
  readonly class_name: string;
}

export class AgentsApi {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, accountPath: string) {
    this.#transport = transport;
    this.#path = `${accountPath}/agents`;
  }

  list(options: RequestOptions = {}): List<AgentClass> {
    return new List(this.#transport, this.#path, {}, options);
  }
}
