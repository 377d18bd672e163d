/** `AI.gateway(id)`: one gateway of this server, its addresses, universal calls and log. */
import type { OwnServer } from "../../contracts/own-server.ts";
import { toAiError } from "./ai-error.ts";
import { type GatewayOptions, toGatewayHeaders } from "./gateway-options.ts";

export interface GatewayTarget {
  readonly account: string;
  readonly gateway: string;
}

/** One step of a universal call. */
export interface UniversalStep {
  readonly provider: string;
  readonly endpoint: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly query: unknown;
}

export interface GatewayRunOptions {
  readonly gateway?: GatewayOptions;
  readonly extraHeaders?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export class AiGateway {
  readonly #server: OwnServer;
  readonly #target: GatewayTarget;
  readonly #agent: () => string | null;

  constructor(server: OwnServer, target: GatewayTarget, agent: () => string | null) {
    this.#server = server;
    this.#target = target;
    this.#agent = agent;
  }

  /** The address that an SDK of the provider takes as its base address. */
  async getUrl(provider?: string): Promise<string> {
    const { account, gateway } = this.#target;
    return `${this.#server.url}/v1/${account}/${gateway}/${provider ?? ""}`;
  }

  /** Calls the steps in order until one succeeds. The response is returned whatever its status. */
  async run(
    steps: UniversalStep | readonly UniversalStep[],
    options: GatewayRunOptions = {},
  ): Promise<Response> {
    const list = Array.isArray(steps) ? steps : [steps];
    const { account, gateway } = this.#target;
    const response = await this.#server.call({
      method: "POST",
      target: `/v1/${account}/${gateway}`,
      headers: {
        "content-type": "application/json",
        ...lowerCase(options.extraHeaders ?? {}),
        ...toGatewayHeaders(options.gateway ?? {}, this.#agent()),
      },
      body: Buffer.from(JSON.stringify(list)),
      signal: options.signal,
    });
    return withOriginalHeaders(response);
  }

  async getLog(logId: string): Promise<unknown> {
    return this.#manage("GET", logId, null);
  }

  async patchLog(logId: string, change: Readonly<Record<string, unknown>>): Promise<void> {
    await this.#manage("PATCH", logId, change);
  }

  async #manage(method: string, logId: string, change: unknown): Promise<unknown> {
    const { account, gateway } = this.#target;
    const response = await this.#server.call({
      method,
      target: `/accounts/${account}/ai-gateway/gateways/${gateway}/logs/${encodeURIComponent(logId)}`,
      headers: change === null ? {} : { "content-type": "application/json" },
      body: change === null ? null : Buffer.from(JSON.stringify(change)),
    });
    if (!response.ok) throw await toAiError(response);
    return ((await response.json()) as { result: unknown }).result;
  }
}

export function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** Adds the originals' spelling of the gateway's headers, which their clients read. */
export function withOriginalHeaders(response: Response): Response {
  const own = Array.from(response.headers).filter(([name]) => name.startsWith("gw-aig-"));
  for (const [name, value] of own) response.headers.set(`cf-aig-${name.slice("gw-aig-".length)}`, value);
  return response;
}
