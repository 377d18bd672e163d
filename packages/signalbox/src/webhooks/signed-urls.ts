/** The addresses a sender may have signed (Twilio does), given that proxies hide the one it used. */
import type { HttpRequest } from "../engines/http-server/index.ts";

/**
 * With `publicUrl` there is exactly one. Without it the Host header names the host, the scheme is unknown behind a proxy that ends TLS,
 * and Twilio itself is inconsistent about default ports; all of these are tried. The signature decides, so trying costs no safety.
 */
export function signedUrls(request: HttpRequest, publicUrl: string | undefined): string[] {
  const target = request.url ?? "/";
  if (publicUrl !== undefined) return [publicUrl.replace(/\/+$/, "") + target];
  const host = request.headers.host ?? "";
  const bare = host.replace(/:\d+$/, "");
  const origins = new Set([
    `https://${host}`,
    `http://${host}`,
    `https://${bare}`,
    `http://${bare}`,
    `https://${bare}:443`,
    `http://${bare}:80`,
  ]);
  return [...origins].map((origin) => origin + target);
}
