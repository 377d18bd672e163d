/** The address of an instance: `{url}/agents/{kebab-class}/{name}`, in the given account or the account of the token. */
import { kebabCase } from "@signalbox/protocol";

export interface AgentAddress {
  /** Address of the service. Default: the page's origin. */
  readonly url?: string | URL;
  /** Agent class, `RepositoryAgent` or `repository-agent`. */
  readonly agent: string;
  /** Instance; default `default`. */
  readonly name?: string;
  /** Account of the instance. Default: the token's account; with the root token or without a token, `default`. */
  readonly account?: string;
  /** Additional query parameters for the agent. */
  readonly query?: Readonly<Record<string, string>>;
}

/** Throws a TypeError that names the invalid part. */
export function checkAddress({ url, agent, name, account }: AgentAddress): void {
  if (agent === "") throw new TypeError("agent must not be empty");
  if (account === "") throw new TypeError("account must not be empty");
  // URL parsers remove dot segments, percent-encoded ones too.
  if (name === "" || name === "." || name === "..")
    throw new TypeError(`"${name}" is not a valid instance name`);
  if (url !== undefined && !/^https?:$/.test(new URL(url).protocol)) {
    throw new TypeError(`url must be http or https, not ${new URL(url).protocol}`);
  }
}

/** The HTTP address of an instance. Throws a TypeError if `url` is missing outside a browser. */
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

/** The WebSocket address. The id does not change on reconnect, so that the server recognizes the client. */
export function agentSocketUrl(address: AgentAddress, connectionId: string): URL {
  const url = agentUrl(address);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.searchParams.set("_pk", connectionId);
  return url;
}

/** `crypto.randomUUID` exists in secure contexts only; `crypto.getRandomValues` exists in all. */
export function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}
