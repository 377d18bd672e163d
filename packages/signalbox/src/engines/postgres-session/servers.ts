/**
 * The servers of a connection string, which may name several: `postgres://user@a:5432,b:5432/signalbox`. One of them is the primary; after a
 * failover it is another one. The driver knows only one server, so the current one is chosen here.
 */

const URL_PARTS = /^([a-z]+:\/\/)([^/?#]*@)?([^/?#]*)(.*)$/i;

export class Servers {
  readonly #urls: readonly string[];
  #index = 0;

  constructor(url: string) {
    const [, scheme = "", user = "", hosts = "", rest = ""] = URL_PARTS.exec(url) ?? [];
    this.#urls = hosts.includes(",") ? hosts.split(",").map((host) => scheme + user + host + rest) : [url];
  }

  /** The connection strings of all servers. */
  get urls(): readonly string[] {
    return this.#urls;
  }

  get count(): number {
    return this.#urls.length;
  }

  /** The connection string of the server to use. */
  get current(): string {
    return this.#urls[this.#index] ?? "";
  }

  /** Tries the next server: the current one cannot be reached, or accepts no writes. */
  next(): void {
    this.#index = (this.#index + 1) % this.#urls.length;
  }
}
