/**
 * The sub-protocols of a handshake, sorted: credentials become headers of the upstream request, the rest is offered to the provider. A browser
 * can send no headers with a WebSocket, so clients write them as `<header>.<value>`.
 */
import { parseSubprotocols } from "../keys/caller-token.ts";

export interface SortedSubprotocols {
  /** Name, value, name, value, … in the form of raw headers. */
  readonly headers: readonly string[];
  /** For the provider. */
  readonly offered: readonly string[];
  /** The first one that the client offered; null when it offered none. */
  readonly first: string | null;
}

const OWN: ReadonlySet<string> = new Set(["gw-aig-authorization", "cf-aig-authorization"]);
const OPENAI_KEY = "openai-insecure-api-key";
const BEARER_NAMES: ReadonlySet<string> = new Set([OPENAI_KEY, "authorization"]);
const KEY_NAMES: ReadonlySet<string> = new Set(["x-api-key", "x-goog-api-key", "api-key"]);
/** They select who pays, as the headers of that name do. */
const ACCOUNT_NAMES: ReadonlySet<string> = new Set(["openai-organization", "openai-project"]);

export function sortSubprotocols(header: string | undefined): SortedSubprotocols {
  const headers: string[] = [];
  const offered: string[] = [];
  const all = header === undefined ? [] : parseSubprotocols(header);
  for (const { text, name, value } of all) {
    if (OWN.has(name)) continue;
    if (value === null) offered.push(text);
    else if (BEARER_NAMES.has(name)) headers.push("authorization", `Bearer ${value}`);
    else if (KEY_NAMES.has(name) || ACCOUNT_NAMES.has(name)) headers.push(name, value);
    else offered.push(text);
  }
  return { headers, offered, first: all[0]?.text ?? null };
}

/**
 * The sub-protocol that the client is told: the provider's choice, else the first that was offered to the provider. A client that offered some
 * fails when none is chosen (RFC 6455, section 4.1, and the WebSocket API of browsers), so a client that offered only credentials gets its own
 * first one back.
 */
export function chooseSubprotocol(chosen: string, { offered, first }: SortedSubprotocols): string | false {
  if (chosen !== "" && offered.includes(chosen)) return chosen;
  return offered[0] ?? first ?? false;
}
