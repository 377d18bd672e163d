/** The address clients reach this server at: the configured one, else what the request itself says. */
import type { IncomingHttpHeaders } from "node:http";

/** A name or address with an optional port, as RFC 9110, section 7.2 has it; nothing that could end the authority of a URL. */
const HOST = /^(?:[\w.-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;
const FALLBACK_HOST = "127.0.0.1";

/**
 * Without a final slash. The scheme behind a proxy that ends TLS is what the proxy says it was (`x-forwarded-proto`); a client that lies
 * about it or about `host` gets its own lie back.
 */
export function publicUrl(headers: IncomingHttpHeaders, configured: string | undefined): string {
  if (configured !== undefined) return configured.replace(/\/+$/, "");
  const { host = "" } = headers;
  return `${isForwardedHttps(headers) ? "https" : "http"}://${HOST.test(host) ? host : FALLBACK_HOST}`;
}

/** Only ever used to be stricter or to write a link, so a client that lies about it harms nobody. */
export function isForwardedHttps(headers: IncomingHttpHeaders): boolean {
  // Each proxy appends; the first entry is what the browser spoke.
  const forwarded = headers["x-forwarded-proto"];
  return typeof forwarded === "string" && forwarded.split(",")[0]?.trim().toLowerCase() === "https";
}
