/**
 * Sorts a request's headers in one pass: options for us, credentials (to tell whether the caller brings its own), and the lines that go
 * upstream. `accept-encoding` is replaced by `identity`, since usage figures are read from the response as it passes.
 */
import type { Provider } from "../providers/provider.ts";
import { type CallOptions, CallOptionsReader, NO_OPTIONS } from "./call-options.ts";
import { headerRule } from "./forwarded-headers.ts";
import { refuseOwnToken, type RootTokenCheck } from "./own-token.ts";

export interface CallHeaders {
  readonly options: CallOptions;
  /** `name: value\r\n` lines without the provider's credential. */
  readonly lines: string;
  /** The lines of the provider's credential; empty when there is none. */
  readonly credentialLines: string;
}

/** Throws `gateway_unauthorized` when a header that would be forwarded holds a token of this service. */
export function readCallHeaders(
  rawHeaders: readonly string[],
  connection: string | undefined,
  provider: Pick<Provider, "credentialHeaders">,
  root: RootTokenCheck,
): CallHeaders {
  const named = connectionNames(connection);
  let reader: CallOptionsReader | null = null;
  let lines = "";
  let credentialLines = "";
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] ?? "";
    const value = rawHeaders[i + 1] ?? "";
    const { name, fate } = headerRule(raw);
    if (fate === "drop" || named?.has(name) === true) continue;
    if (fate === "option") {
      reader ??= new CallOptionsReader();
      reader.add(name, value);
      continue;
    }
    refuseOwnToken(root, value);
    if (provider.credentialHeaders.includes(name)) credentialLines += `${name}: ${value}\r\n`;
    else lines += `${raw}: ${value}\r\n`;
  }
  return {
    options: reader?.options ?? NO_OPTIONS,
    lines: `${lines}accept-encoding: identity\r\n`,
    credentialLines,
  };
}

/** The options alone, where the request's own headers go nowhere. */
export function readCallOptions(rawHeaders: readonly string[]): CallOptions {
  const reader = new CallOptionsReader();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const { name, fate } = headerRule(rawHeaders[i] ?? "");
    if (fate === "option") reader.add(name, rawHeaders[i + 1] ?? "");
  }
  return reader.options;
}

/** Header names that the sender's `Connection` header declares hop-by-hop; null in the usual case of none. */
function connectionNames(connection: string | undefined): ReadonlySet<string> | null {
  if (connection === undefined || connection === "keep-alive" || connection === "close") return null;
  return new Set(connection.split(",").map((name) => name.trim().toLowerCase()));
}
