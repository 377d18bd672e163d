/**
 * What parts that are created first use of those that exist last: the areas, and the addresses of the listeners. The one value of the composition
 * that is filled in later; until then there is no gateway and no address.
 */
import { ownOrigin } from "../accounts/index.ts";
import type { AreaModule } from "../area-module.ts";
import type { Config } from "../config/index.ts";
import type { HttpRequest } from "../engines/http-server/index.ts";
import type { Front } from "../http/index.ts";
import type { Areas } from "./areas.ts";

export class Running {
  readonly #config: Config;
  #areas: Areas | null = null;
  #front: Front | null = null;
  isStopping = false;

  constructor(config: Config) {
    this.#config = config;
  }

  /** The areas exist. */
  created(areas: Areas): void {
    this.#areas = areas;
  }

  /** The listeners are open. */
  listens(front: Front): void {
    this.#front = front;
  }

  gatewayExists(accountId: string, gatewayId: string): boolean {
    return this.#areas?.gateway.exists(accountId, gatewayId) === true;
  }

  get areas(): readonly AreaModule[] {
    return this.#areas?.all ?? [];
  }

  /** False for a request to an address without a dashboard. */
  hasDashboard(request: HttpRequest): boolean {
    return this.#config.admin === null || request.socket.localPort === this.#front?.adminPort;
  }

  /** Other machines can reach the address of the management interface, or it is not known yet. */
  get isAdminExposed(): boolean {
    return this.#front?.isAdminExposed !== false;
  }

  /** The address of the traffic, if the dashboard has another one; otherwise null. */
  get separateTrafficUrl(): string | null {
    return this.#front === null || this.#front.url === this.#front.adminUrl ? null : this.#front.url;
  }

  /** Scheme, host and port of the traffic: the configured ones, otherwise those of the listener. Empty before the service listens. */
  get trafficOrigin(): string {
    return this.#front === null ? "" : (this.#publicUrl ?? this.#front.url);
  }

  /** The configured address, otherwise the one that the client used, if traffic and management share it and it is one of this server. */
  trafficOriginFor(request: HttpRequest): string {
    const { url = "", adminUrl = "" } = this.#front ?? {};
    const used = url === adminUrl ? ownOrigin(request, this.#config.file.dashboard.allowedHosts) : null;
    return this.#publicUrl ?? used ?? url;
  }

  get #publicUrl(): string | undefined {
    return this.#config.file.listener.publicUrl?.replace(/\/+$/, "");
  }
}
