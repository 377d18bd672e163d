/**
 * Finds the token of this service in a request to a unified door. SDKs have one place for a key, and it depends on the SDK; a value there
 * is taken for our token if it begins as one, or is the root token. Any other value is the caller's own key of a provider.
 */
import type { IncomingHttpHeaders } from "node:http";
import { bearerText } from "../../accounts/index.ts";
import type { RootTokenCheck } from "../plan/forwarded-request.ts";

const TOKEN_PREFIX = "sbx_";

/** Where SDKs put their key, in the order in which they are read. */
export const KEY_HEADERS = ["authorization", "x-api-key", "api-key", "x-goog-api-key"] as const;

export interface CallerKeys {
  /** Null when the request has no token of this service. */
  readonly token: string | null;
  /** The caller's key of a provider, with the header that it stands in; null when the request has none. */
  readonly credential: { readonly header: string; readonly value: string; readonly key: string } | null;
}

export function readCallerKeys(headers: IncomingHttpHeaders, root: RootTokenCheck): CallerKeys {
  const own = headers["gw-aig-authorization"] ?? headers["cf-aig-authorization"];
  let token = typeof own === "string" ? bearerText(own) : null;
  let credential: CallerKeys["credential"] = null;
  for (const header of KEY_HEADERS) {
    const value = headers[header];
    if (typeof value !== "string") continue;
    const key = header === "authorization" ? (bearerText(value) ?? value) : value;
    if (key.startsWith(TOKEN_PREFIX) || root.isRootToken(key)) token ??= key;
    else credential ??= { header, value, key };
  }
  return { token, credential };
}
