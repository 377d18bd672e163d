/** The headers of a call at a unified door, as they go to a provider that is not known yet. */
import type { Authenticator } from "../../accounts/index.ts";
import type { Arrival } from "../call/call-start.ts";
import { type ForwardedHeaders, KEY_HEADERS, readForwardedHeaders } from "../plan/forwarded-request.ts";

export function readCallerHeaders(
  { authenticator }: { readonly authenticator: Authenticator },
  { request: { rawHeaders, headers }, caller }: Arrival,
): ForwardedHeaders {
  return readForwardedHeaders(rawHeaders, headers.connection, KEY_HEADERS, authenticator, caller.text);
}
