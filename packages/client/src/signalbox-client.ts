/** The client of one service, with one address and one token. */
import { kebabCase } from "@signalbox/protocol";
import { AgentConnection, type AgentConnectionOptions } from "./agent/agent-connection.ts";
import { AccountsApi } from "./management/accounts.ts";
import { AlertsApi } from "./management/alerts.ts";
import { AuditApi } from "./management/audit.ts";
import { AgentsApi } from "./management/agents.ts";
import { errorName } from "./management/error-name.ts";
import { BudgetsApi } from "./management/budgets.ts";
import { GuardrailsApi } from "./management/guardrails.ts";
import { ClusterApi } from "./management/cluster.ts";
import { GatewaysApi } from "./management/gateways.ts";
import { RoutesApi } from "./management/routes.ts";
import { AllLogsApi, LogsApi } from "./management/logs.ts";
import { pathOf } from "./management/path.ts";
import { ProviderKeysApi } from "./management/provider-keys.ts";
import { TagsApi } from "./management/tags.ts";
import { TokensApi } from "./management/tokens.ts";
import {
  type ApiResponse,
  type ApiRequest,
  type Method,
  type RequestOptions,
  Transport,
  type TransportOptions,
} from "./management/transport.ts";
import { exportUsage, readUsage, type Usage, type UsageQuery } from "./management/usage.ts";
import { WebhooksApi } from "./management/webhooks.ts";

export class SignalboxClient {
  readonly accounts: AccountsApi;
  readonly cluster: ClusterApi;
  /** Management writes that belong to no account. Requires the root token. */
  readonly audit: AuditApi;
  readonly #transport: Transport;
  readonly #options: TransportOptions;

  /** Opens no connection. Throws a TypeError if `url` is missing outside a browser. */
  constructor(options: TransportOptions = {}) {
    this.#options = options;
    this.#transport = new Transport(options, errorName);
    this.accounts = new AccountsApi(this.#transport);
    this.cluster = new ClusterApi(this.#transport);
    this.audit = new AuditApi(this.#transport, "");
  }

  /** Address of the service, without a trailing slash. */
  get url(): string {
    return this.#transport.url;
  }

  /** The resources of one account. */
  account(id = "default"): AccountClient {
    return new AccountClient(this.#transport, id);
  }

  /** Creates a connection to one instance with this client's address and token. `open()` connects. */
  agent<Agent = unknown>(options: AgentConnectionOptions): AgentConnection<Agent> {
    const { token } = this.#options;
    return new AgentConnection<Agent>({
      url: this.#transport.url,
      ...(token === undefined ? {} : { token }),
      ...options,
    });
  }

  /**
   * Calls a method of an instance over HTTP, without a connection. Default account: the token's; for the root token, `default`. Streaming
   * methods need a connection.
   */
  async callAgent<Result = unknown>(
    { agent, name = "default", account }: AgentTarget,
    method: string,
    args: readonly unknown[] = [],
    options: RequestOptions = {},
  ): Promise<Result> {
    const path = pathOf`/agents/${kebabCase(agent)}/${name}/rpc/${method}`;
    return this.#transport.result<Result>("POST", path, { query: { account }, body: args, ...options });
  }

  /** Creates a link that logs a browser into the dashboard once. Requires the root token. */
  async createLoginLink(options: RequestOptions = {}): Promise<LoginLink> {
    const { path, expires_at } = await this.#transport.result<{ path: string; expires_at: string }>(
      "POST",
      "/login-links",
      options,
    );
    return { url: this.url + path, expires_at };
  }

  /** Resolves to a response with a backup of everything, a tar archive. Requires the root token. `timeoutMs` is 0 unless given. */
  async backup(contents: BackupContents = {}, options: RequestOptions = {}): Promise<Response> {
    return this.#transport.raw("POST", "/backup", { timeoutMs: 0, ...options, body: contents });
  }

  /** Encrypts all stored provider keys with a new master key. Requires the root token. */
  async rotateMasterKey(options: RequestOptions = {}): Promise<{ rotated: number; unreadable: number }> {
    return this.#transport.result("POST", "/provider_keys/rotate_master", options);
  }

  /** Requests any path of the management interface. `pathOf` encodes names in the path. */
  request<Result = unknown>(
    method: Method,
    path: `/${string}`,
    request: ApiRequest = {},
  ): Promise<ApiResponse<Result>> {
    return this.#transport.request<Result>(method, path, request);
  }
}

export interface BackupContents {
  /** With stored calls and usage. Default true. */
  readonly call_logs?: boolean;
  /** With the secrets in the data folder. Default true. */
  readonly secrets?: boolean;
}

export interface AgentTarget {
  readonly agent: string;
  readonly name?: string;
  readonly account?: string | undefined;
}

export interface LoginLink {
  readonly url: string;
  readonly expires_at: string;
}

export class AccountClient {
  readonly id: string;
  readonly tokens: TokensApi;
  readonly gateways: GatewaysApi;
  /** Prices, limits and credit of the account, and what is left of budgets. */
  readonly budgets: BudgetsApi;
  /** Rules on the texts of calls. */
  readonly guardrails: GuardrailsApi;
  readonly agents: AgentsApi;
  readonly webhooks: WebhooksApi;
  readonly tags: TagsApi;
  readonly alerts: AlertsApi;
  /** Management writes of the account. */
  readonly audit: AuditApi;
  /** The stored calls of all gateways. */
  readonly allLogs: AllLogsApi;
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, id: string) {
    this.id = id;
    this.#transport = transport;
    this.#path = pathOf`/accounts/${id}`;
    this.tokens = new TokensApi(transport, this.#path);
    this.gateways = new GatewaysApi(transport, this.#path);
    this.budgets = new BudgetsApi(transport, this.#path);
    this.guardrails = new GuardrailsApi(transport, this.#path);
    this.agents = new AgentsApi(transport, this.#path);
    this.webhooks = new WebhooksApi(transport, this.#path);
    this.tags = new TagsApi(transport, this.#path);
    this.alerts = new AlertsApi(transport, this.#path);
    this.audit = new AuditApi(transport, this.#path);
    this.allLogs = new AllLogsApi(transport, this.#path);
  }

  /** The provider keys of one gateway; without a gateway, those of all gateways of the account. */
  providerKeys(gatewayId?: string): ProviderKeysApi {
    return new ProviderKeysApi(this.#transport, this.#path, gatewayId);
  }

  /** The stored calls of one gateway. */
  logs(gatewayId: string): LogsApi {
    return new LogsApi(this.#transport, this.#path, gatewayId);
  }

  /** The dynamic routes and circuits of one gateway. */
  routes(gatewayId: string): RoutesApi {
    return new RoutesApi(this.#transport, this.#path + pathOf`/ai-gateway/gateways/${gatewayId}`);
  }

  /** Reads calls, tokens, cost and durations. */
  usage(query: UsageQuery = {}, options: RequestOptions = {}): Promise<Usage[]> {
    return readUsage(this.#transport, this.#path, query, options);
  }

  /** Reads usage as CSV. */
  exportUsage(query: UsageQuery = {}, options: RequestOptions = {}): Promise<Response> {
    return exportUsage(this.#transport, this.#path, query, options);
  }
}
