import type { IncomingHttpHeaders } from "node:http";

interface ReceivedRequest {
  readonly headers: IncomingHttpHeaders;
  readonly socket?: { readonly encrypted?: boolean | undefined };
}

/**
 * Returns true if the client used HTTPS: this server has decrypted the connection, or a proxy reports it. Used only for stricter cookies and for
 * generated links, so a client that forges the header affects only itself.
 */
export function isHttps({ headers, socket }: ReceivedRequest): boolean {
  if (socket?.encrypted === true) return true;
  // Each proxy appends an entry; the first one is the scheme of the browser.
  const forwarded = headers["x-forwarded-proto"];
  return typeof forwarded === "string" && forwarded.split(",")[0]?.trim().toLowerCase() === "https";
}
