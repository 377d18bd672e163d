import { List } from "./list.ts";
import { pathOf } from "./path.ts";
import type { RequestOptions, Transport } from "./transport.ts";

/** An element of a route's graph, in the JSON of the interface. */
export interface RouteElement {
  readonly id: string;
  readonly type: string;
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly outputs?: Readonly<Record<string, { readonly elementId: string }>>;
}

export interface RouteVersion {
  readonly version_id: string;
  readonly active: "true" | "false";
  /** The elements as text. */
  readonly data: string;
  /** False if the graph names a provider that does not exist any more. */
  readonly is_valid: boolean;
  readonly created_at: string;
}

export interface RouteDeployment {
  readonly deployment_id: string;
  readonly version_id: string;
  readonly created_at: string;
}

/** A dynamic route, called as the model `dynamic/{name}`. */
export interface DynamicRoute {
  readonly id: string;
  readonly gateway_id: string;
  readonly name: string;
  /** Of the deployed version. */
  readonly elements: readonly RouteElement[];
  readonly version: RouteVersion;
  readonly deployment: RouteDeployment;
  readonly created_at: string;
  readonly modified_at: string;
}

export interface RouteTrial {
  /** Default: the deployed version. */
  readonly version_id?: string | undefined;
  /** In place of a version; needs `gateway.edit`. */
  readonly elements?: readonly unknown[] | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: unknown;
  readonly session_id?: string | undefined;
  /** Ids of model elements that fail. */
  readonly failing?: readonly string[] | undefined;
}

export interface RouteTrialResult {
  readonly way: readonly { readonly id: string; readonly type: string; readonly output: string | null }[];
  readonly provider: string | null;
  readonly model: string | null;
  readonly error: string | null;
}

/** A target with recent failures. */
export interface Circuit {
  readonly provider: string;
  readonly model: string;
  readonly key_id: string | null;
  readonly state: "closed" | "open" | "half_open";
  readonly failures_in_a_row: number;
  readonly failures: number;
  readonly calls: number;
  readonly opened_at: string | null;
  readonly probe_at: string | null;
}

/** The dynamic routes and the circuits of one gateway. */
export class RoutesApi {
  readonly #transport: Transport;
  readonly #gateway: string;
  readonly #path: string;

  constructor(transport: Transport, gatewayPath: string) {
    this.#transport = transport;
    this.#gateway = gatewayPath;
    this.#path = `${gatewayPath}/routes`;
  }

  list(query: { per_page?: number | undefined } = {}, options: RequestOptions = {}): List<DynamicRoute> {
    return new List(this.#transport, this.#path, query, options);
  }

  /** Creates the route and deploys it. */
  async create(
    route: { readonly name: string; readonly elements: readonly unknown[] },
    options: RequestOptions = {},
  ): Promise<DynamicRoute> {
    return this.#transport.result<DynamicRoute>("POST", this.#path, { body: route, ...options });
  }

  async get(id: string, options: RequestOptions = {}): Promise<DynamicRoute> {
    return this.#transport.result<DynamicRoute>("GET", this.#path + pathOf`/${id}`, options);
  }

  async rename(id: string, name: string, options: RequestOptions = {}): Promise<DynamicRoute> {
    const request = { body: { name }, ...options };
    return this.#transport.result<DynamicRoute>("PATCH", this.#path + pathOf`/${id}`, request);
  }

  async delete(id: string, options: RequestOptions = {}): Promise<DynamicRoute> {
    return this.#transport.result<DynamicRoute>("DELETE", this.#path + pathOf`/${id}`, options);
  }

  /** Newest first. */
  async versions(id: string, options: RequestOptions = {}): Promise<RouteVersion[]> {
    return this.#transport.result<RouteVersion[]>("GET", this.#path + pathOf`/${id}/versions`, options);
  }

  /** Saves a graph that serves no call until it is deployed. */
  async createVersion(
    id: string,
    elements: readonly unknown[],
    options: RequestOptions = {},
  ): Promise<RouteVersion> {
    const request = { body: { elements }, ...options };
    return this.#transport.result<RouteVersion>("POST", this.#path + pathOf`/${id}/versions`, request);
  }

  /** Newest first. */
  async deployments(id: string, options: RequestOptions = {}): Promise<RouteDeployment[]> {
    return this.#transport.result<RouteDeployment[]>("GET", this.#path + pathOf`/${id}/deployments`, options);
  }

  /** The next call takes this version. */
  async deploy(id: string, versionId: string, options: RequestOptions = {}): Promise<DynamicRoute> {
    const request = { body: { version_id: versionId }, ...options };
    return this.#transport.result<DynamicRoute>("POST", this.#path + pathOf`/${id}/deployments`, request);
  }

  /** Shows which way a request would take, without calling a model. */
  async try(id: string, trial: RouteTrial = {}, options: RequestOptions = {}): Promise<RouteTrialResult> {
    const request = { body: trial, ...options };
    return this.#transport.result<RouteTrialResult>("POST", this.#path + pathOf`/${id}/try`, request);
  }

  async circuits(options: RequestOptions = {}): Promise<Circuit[]> {
    return this.#transport.result<Circuit[]>("GET", `${this.#gateway}/circuits`, options);
  }

  /** Closes all circuits; resolves to those that were there. */
  async closeCircuits(options: RequestOptions = {}): Promise<Circuit[]> {
    return this.#transport.result<Circuit[]>("DELETE", `${this.#gateway}/circuits`, options);
  }
}
