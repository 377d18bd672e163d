/**
 * Sorts a request's headers in one pass: options for us, credentials (to tell callers apart in the cache), and the lines that go
 * upstream.
 *
 * Never forwarded: gateway headers (they may hold our token), hop-by-hop headers and those `connection` names, framing and `host`
 * (made anew), cookies (they belong to this origin: the dashboard's session is one) and forwarding headers (who called is nobody
 * else's business). `accept-encoding` is replaced by `identity`, since usage figures are read from the response as it passes.
 */
import type { Provider } from "../providers/provider.ts";
import { type CallOptions, CallOptionsReader, gatewayHeaderName, NO_OPTIONS } from "./call-options.ts";

const DROPPED = new Set([
  "accept-encoding",
  "connection",
  "content-length",
  "cookie",
  "cookie2",
  "expect",
  "forwarded",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "traceparent",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "via",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-proto",
  "x-real-ip",
]);

export interface CallHeaders {
  readonly options: CallOptions;
  /** `name: value\r\n` lines without the provider's credential. */
  readonly lines: string;
  /** The lines of the provider's credential; empty when there is none. */
  readonly credentialLines: string;
}

export function readCallHeaders(
  rawHeaders: readonly string[],
  connection: string | undefined,
  provider: Pick<Provider, "credentialHeaders">,
): CallHeaders {
  const named = connectionNames(connection);
  let reader: CallOptionsReader | null = null;
  let lines = "";
  let credentialLines = "";
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] ?? "";
    const value = rawHeaders[i + 1] ?? "";
    const name = raw.toLowerCase();
    if (DROPPED.has(name) || named?.has(name) === true) continue;
    if (gatewayHeaderName(name) !== null) {
      reader ??= new CallOptionsReader();
      reader.add(name, value);
      continue;
    }
    if (provider.credentialHeaders.includes(name)) credentialLines += `${name}: ${value}\r\n`;
    else lines += `${raw}: ${value}\r\n`;
  }
  return {
    options: reader?.options ?? NO_OPTIONS,
    lines: `${lines}accept-encoding: identity\r\n`,
    credentialLines,
  };
}

/** Header names that the sender's `Connection` header declares hop-by-hop; null in the usual case of none. */
function connectionNames(connection: string | undefined): ReadonlySet<string> | null {
  if (connection === undefined || connection === "keep-alive" || connection === "close") return null;
  return new Set(connection.split(",").map((name) => name.trim().toLowerCase()));
}
