import type { IncomingHttpHeaders } from "node:http";

/**
 * Whether a proxy in front ended TLS. Only ever used to be stricter or to write a link, so a client that lies about it harms nobody.
 */
export function isForwardedHttps(headers: IncomingHttpHeaders): boolean {
  // Each proxy appends; the first entry is what the browser spoke.
  const forwarded = headers["x-forwarded-proto"];
  return typeof forwarded === "string" && forwarded.split(",")[0]?.trim().toLowerCase() === "https";
}
