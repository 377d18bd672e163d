/** The credentials and options of a caller, for a request that the gateway makes in its name. */
import type { Arrival } from "./call-start.ts";

/** Headers that describe a request, its connection and its body. */
const OF_REQUEST: ReadonlySet<string> = new Set([
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

export function headersOfCaller({
  request,
  caller,
}: Pick<Arrival, "request" | "caller">): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) {
    if (typeof value === "string" && !OF_REQUEST.has(name)) headers[name] = value;
  }
  if (caller.text !== null) headers["gw-aig-authorization"] = `Bearer ${caller.text}`;
  return headers;
}
