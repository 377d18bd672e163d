/** Calls of this server by itself: they have the root token, and pass the areas as requests of the network do. */
import type { RootToken } from "../accounts/index.ts";
import type { OwnCall, OwnServer } from "../contracts/own-server.ts";
import type { Area } from "../http/area.ts";
import { callArea } from "../http/index.ts";

export class LocalServer implements OwnServer {
  readonly #rootToken: RootToken;
  readonly #areas = new Map<string, Area>();
  #calls = 0;
  #url = "";

  constructor(rootToken: RootToken) {
    this.#rootToken = rootToken;
  }

  get url(): string {
    return this.#url;
  }

  /** The areas that can be called, and the address of the server. Called once, before the listeners open. */
  open(areas: readonly Area[]): void {
    for (const area of areas) for (const segment of area.segments) this.#areas.set(segment, area);
  }

  listensOn(url: string): void {
    this.#url = url;
  }

  async call({
    method,
    target,
    headers = {},
    body = null,
    signal,
    authorization,
  }: OwnCall): Promise<Response> {
    const [, segment = ""] = target.split(/[/?]/, 2);
    const area = this.#areas.get(segment);
    if (area === undefined) throw new Error(`this server has no path /${segment}`);
    const token = authorization ?? `Bearer ${this.#rootToken.secret.reveal()}`;
    const credential: Record<string, string> =
      segment === "v1" ? { "gw-aig-authorization": token } : { authorization: token };
    this.#calls += 1;
    return callArea(area, `local-${this.#calls}`, {
      method,
      target,
      headers: { ...headers, ...credential },
      body,
      signal,
    });
  }
}
