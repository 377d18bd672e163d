/** Calls of this server by itself: they have the root token, and pass the areas as requests of the network do. */
import type { RootToken } from "../accounts/index.ts";
import type { OwnCall, OwnServer } from "../contracts/own-server.ts";
import type { Area } from "../http/area.ts";
import { callArea } from "../http/index.ts";
import type { Running } from "./running.ts";

export class LocalServer implements OwnServer {
  readonly #rootToken: RootToken;
  readonly #areas = new Map<string, Area>();
  readonly #running: Pick<Running, "trafficOrigin">;
  #calls = 0;

  constructor(rootToken: RootToken, running: Pick<Running, "trafficOrigin">) {
    this.#rootToken = rootToken;
    this.#running = running;
  }

  get url(): string {
    return this.#running.trafficOrigin;
  }

  /** The areas that can be called. Called once, before the listeners open. */
  open(areas: readonly Area[]): void {
    for (const area of areas) for (const segment of area.segments) this.#areas.set(segment, area);
  }

  async call({
    method,
    target,
    headers = {},
    body = null,
    signal,
    authorization,
    staysInside,
    chargedTo,
  }: OwnCall): Promise<Response> {
    const [, segment = ""] = target.split(/[/?]/, 2);
    const area = this.#areas.get(segment);
    if (area === undefined) throw new Error(`this server has no path /${segment}`);
    const token = authorization === undefined ? `Bearer ${this.#rootToken.secret.reveal()}` : authorization;
    const name = segment === "v1" ? "gw-aig-authorization" : "authorization";
    const credential: Record<string, string> = token === null ? {} : { [name]: token };
    this.#calls += 1;
    return callArea(area, `local-${this.#calls}`, {
      method,
      target,
      headers: { ...headers, ...credential },
      body,
      signal,
      staysInside,
      chargedTo,
    });
  }
}
