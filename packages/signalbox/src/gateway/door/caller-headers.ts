/** The headers of a call at a unified door, as they go to a provider that is not known yet. */
import type { Authenticator } from "../../accounts/index.ts";
import type { Arrival } from "../call/call-start.ts";
import { stampOptions } from "../keys/policy-use.ts";
import { type ForwardedHeaders, KEY_HEADERS, readForwardedHeaders } from "../plan/forwarded-request.ts";
import type { CallOptions } from "../step/call-options.ts";

export function readCallerHeaders(
  { authenticator }: { readonly authenticator: Authenticator },
  { request: { rawHeaders, headers }, caller }: Arrival,
): ForwardedHeaders {
  return readForwardedHeaders(rawHeaders, headers.connection, KEY_HEADERS, authenticator, caller.text);
}

/** What the headers say about the call itself, with the metadata of its token or, for a call on behalf of another one, of that call. */
export function optionsOf({ caller, context }: Arrival, { options }: ForwardedHeaders): CallOptions {
  const { chargedTo } = context;
  return chargedTo === undefined
    ? stampOptions(caller.token?.policy ?? null, options)
    : { ...options, metadata: chargedTo.metadata };
}
