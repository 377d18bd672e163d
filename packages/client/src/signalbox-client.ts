/** The client: everything of one service, below one address and one token. */
import { AgentConnection, type AgentConnectionOptions } from "./agent/agent-connection.ts";
import { AccountsApi } from "./management/accounts.ts";
import { AgentsApi } from "./management/agents.ts";
import { GatewaysApi } from "./management/gateways.ts";
import { LogsApi } from "./management/logs.ts";
import { TagsApi } from "./management/tags.ts";
import { TokensApi } from "./management/tokens.ts";
import {
  type ApiAnswer,
  type ApiRequest,
  type Method,
  pathOf,
  type RequestOptions,
  Transport,
  type TransportOptions,
} from "./management/transport.ts";
import { readUsage, type Usage, type UsageQuery } from "./management/usage.ts";
import { WebhooksApi } from "./management/webhooks.ts";

export class SignalboxClient {
  readonly accounts: AccountsApi;
  readonly #transport: Transport;
  readonly #options: TransportOptions;

  /** Opens nothing; throws a TypeError when no address is given outside a browser. */
  constructor(options: TransportOptions = {}) {
    this.#options = options;
    this.#transport = new Transport(options);
    this.accounts = new AccountsApi(this.#transport);
  }

  /** What belongs to one account. */
  account(id = "default"): AccountClient {
    return new AccountClient(this.#transport, id);
  }

  /** A connection to one instance with this client's address and token; `open()` starts it. */
  agent<Agent = unknown>(options: AgentConnectionOptions): AgentConnection<Agent> {
    const { token } = this.#options;
    return new AgentConnection<Agent>({
      url: this.#transport.url,
      ...(token === undefined ? {} : { token }),
      ...options,
    });
  }

  /** Any path of the management interface, for what has no method here. */
  request<Result = unknown>(
    method: Method,
    path: `/${string}`,
    request: ApiRequest = {},
  ): Promise<ApiAnswer<Result>> {
    return this.#transport.request<Result>(method, path, request);
  }
}

export class AccountClient {
  readonly id: string;
  readonly tokens: TokensApi;
  readonly gateways: GatewaysApi;
  readonly agents: AgentsApi;
  readonly webhooks: WebhooksApi;
  readonly tags: TagsApi;
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, id: string) {
    this.id = id;
    this.#transport = transport;
    this.#path = pathOf`/accounts/${id}`;
    this.tokens = new TokensApi(transport, this.#path);
    this.gateways = new GatewaysApi(transport, this.#path);
    this.agents = new AgentsApi(transport, this.#path);
    this.webhooks = new WebhooksApi(transport, this.#path);
    this.tags = new TagsApi(transport, this.#path);
  }

  /** The calls that one gateway has stored. */
  logs(gatewayId: string): LogsApi {
    return new LogsApi(this.#transport, this.#path, gatewayId);
  }

  /** Calls, tokens, cost and durations over time. */
  usage(query: UsageQuery = {}, options: RequestOptions = {}): Promise<Usage[]> {
    return readUsage(this.#transport, this.#path, query, options);
  }
}
