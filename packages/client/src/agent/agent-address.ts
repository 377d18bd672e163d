/** Where an instance lives: `{url}/agents/{kebab-class}/{name}`, in the account of the token or the one that is named. */
import { kebabCase } from "@signalbox/protocol";

export interface AgentAddress {
  /** Address of the service; default: the page's own origin. */
  readonly url?: string | URL;
  /** Agent class, `RepositoryAgent` or `repository-agent`. */
  readonly agent: string;
  /** Instance; default `default`. */
  readonly name?: string;
  /** Account of the instance. Default: the token's own; for the root token, and where access is public, `default`. */
  readonly account?: string;
  /** Further query parameters, for the agent's own code to read. */
  readonly query?: Readonly<Record<string, string>>;
}

/** Throws a TypeError that says which part cannot be. */
export function checkAddress({ url, agent, name, account }: AgentAddress): void {
  if (agent === "") throw new TypeError("agent must not be empty");
  if (account === "") throw new TypeError("account must not be empty");
  // A URL parser removes dot segments even when they are percent-encoded: such an instance cannot be addressed.
  if (name === "" || name === "." || name === "..") throw new TypeError(`"${name}" is not an instance name`);
  if (url !== undefined && !/^https?:$/.test(new URL(url).protocol)) {
    throw new TypeError(`url must be http or https, not ${new URL(url).protocol}`);
  }
}

/** The HTTP address of an instance; throws a TypeError when no URL is given outside a browser. */
export function agentUrl(address: AgentAddress): URL {
  checkAddress(address);
  const { url, agent, name = "default", account, query = {} } = address;
  const base = url ?? (globalThis as { location?: { origin: string } }).location?.origin;
  if (base === undefined) throw new TypeError("url is required outside a browser");
  const result = new URL(base);
  const path = result.pathname.replace(/\/+$/, "");
  result.pathname = `${path}/agents/${encodeURIComponent(kebabCase(agent))}/${encodeURIComponent(name)}`;
  result.search = new URLSearchParams(account === undefined ? query : { ...query, account }).toString();
  result.hash = "";
  return result;
}

/** The same instance over WebSocket; the id stays the same over reconnects, so that the server can tell a return from a newcomer. */
export function agentSocketUrl(address: AgentAddress, connectionId: string): URL {
  const url = agentUrl(address);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.searchParams.set("_pk", connectionId);
  return url;
}

/** `crypto.randomUUID` is missing on pages served over plain http from another machine; random bytes are not. */
export function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}
