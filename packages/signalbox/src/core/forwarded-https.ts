import type { IncomingHttpHeaders } from "node:http";

/**
 * Returns true if a proxy reports that the client used HTTPS. Used only for stricter cookies and for generated links, so a client that forges
 * the header affects only itself.
 */
export function isForwardedHttps(headers: IncomingHttpHeaders): boolean {
  // Each proxy appends an entry; the first one is the scheme of the browser.
  const forwarded = headers["x-forwarded-proto"];
  return typeof forwarded === "string" && forwarded.split(",")[0]?.trim().toLowerCase() === "https";
}
