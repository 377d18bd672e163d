/**
 * The session cookie of the dashboard, and the checks of a request that carries it.
 *
 * A browser adds the cookie to every request to the host, whichever page caused the request. `SameSite=Strict` excludes pages of other sites,
 * but a site does not include the port: a page of another program on 127.0.0.1 is same-site. Therefore:
 * 1. The Host header must be a name of this server: an IP address, `localhost`, the name of this machine, or one of `dashboard.allowedHosts`.
 *    A foreign name that resolves to this server (DNS rebinding) is refused.
 * 2. The Origin header of a write or of a WebSocket handshake must have the same host and port.
 * 3. A read must not be started by a page of another origin (`Sec-Fetch-Site`).
 * See docs/decisions/0046.
 */
import type { HttpRequest } from "../engines/http-server/index.ts";
import { hostname } from "node:os";
import { SignalboxError } from "@signalbox/protocol";
import { isHttps } from "../core/is-https.ts";
import { isIpAddress } from "../engines/ip-address/index.ts";

/** Followed by the port: cookies do not depend on the port, and two servers on one machine must not overwrite each other's session. */
export const SESSION_COOKIE_PREFIX = "signalbox_session_";
/** A second cookie can only come from another server on the host. */
const MAX_CANDIDATES = 8;

/** Returns the values that may be a session of this server: the cookie with its port first, then the others in the order sent. */
export function sessionSecrets(request: HttpRequest): string[] {
  const header = request.headers.cookie;
  if (header === undefined || !header.includes(SESSION_COOKIE_PREFIX)) return [];
  const own = cookieName(request);
  const found: string[] = [];
  for (const pair of header.split(";")) {
    const equals = pair.indexOf("=");
    const name = pair.slice(0, equals).trim();
    const value = pair.slice(equals + 1).trim();
    if (equals === -1 || !name.startsWith(SESSION_COOKIE_PREFIX) || value === "") continue;
    // Other ports are accepted because the servers behind one proxy may listen on different ports.
    if (name === own) found.unshift(value);
    else found.push(value);
  }
  return found.slice(0, MAX_CANDIDATES);
}

export function setCookie(request: HttpRequest, secret: string, maxAgeMs: number): string {
  const secure = isHttps(request) ? "; Secure" : "";
  return `${cookieName(request)}=${secret}; Path=/; Max-Age=${Math.floor(maxAgeMs / 1000)}; HttpOnly; SameSite=Strict${secure}`;
}

export function clearCookie(request: HttpRequest): string {
  return setCookie(request, "", 0);
}

/** Throws `forbidden` unless the request comes from a page of this server. */
export function requireOwnPage(request: HttpRequest, allowedHosts: readonly string[]): void {
  requireOwnHost(request, allowedHosts);
  const { origin, host, upgrade } = request.headers;
  const site = request.headers["sec-fetch-site"];
  const isRead = (request.method === "GET" || request.method === "HEAD") && upgrade === undefined;
  if (isRead) {
    if (site === "cross-site" || site === "same-site") throw foreignPage();
    return;
  }
  if (origin !== undefined ? !isOriginOf(origin, host ?? "") : site !== "same-origin") throw foreignPage();
}

/** Returns scheme, host and port of the request; null if the host is not a name of this server, because a client can send any text. */
export function ownOrigin(request: HttpRequest, allowedHosts: readonly string[]): string | null {
  const { host = "" } = request.headers;
  if (!isOwnHost(host, allowedHosts)) return null;
  return `${isHttps(request) ? "https" : "http"}://${host}`;
}

function isOwnHost(host: string, allowedHosts: readonly string[]): boolean {
  const name = hostName(host);
  return name !== null && (isOwnName(name) || allowedHosts.includes(name));
}

export function requireOwnHost(request: HttpRequest, allowedHosts: readonly string[]): void {
  const { host = "" } = request.headers;
  if (isOwnHost(host, allowedHosts)) return;
  const name = hostName(host);
  throw new SignalboxError("forbidden", {
    message: `This server does not accept the host ${JSON.stringify(name ?? "")}; add it to dashboard.allowedHosts in the configuration`,
  });
}

function cookieName(request: HttpRequest): string {
  return SESSION_COOKIE_PREFIX + String(request.socket.localPort ?? 0);
}

/** IP addresses are safe: DNS rebinding needs a name. */
function isOwnName(name: string): boolean {
  return name === "localhost" || isIpAddress(name) || name === hostname().toLowerCase();
}

function hostName(host: string): string | null {
  const bracketed = /^\[([^\]]+)\](:\d+)?$/.exec(host)?.[1];
  if (bracketed !== undefined) return bracketed.toLowerCase();
  return /^([^:\s/]+)(:\d+)?$/.exec(host)?.[1]?.toLowerCase() ?? null;
}

function isOriginOf(origin: string, host: string): boolean {
  return URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
}

function foreignPage(): SignalboxError {
  return new SignalboxError("forbidden", {
    message:
      "Permission denied: a dashboard session is valid only for pages of the dashboard; other clients need a token",
  });
}
