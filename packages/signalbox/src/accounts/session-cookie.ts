/**
 * The dashboard's cookie on the wire, and the checks that a request made with it must pass.
 *
 * A cookie travels by itself, so a request that carries one proves only that some page asked the browser to send it. `SameSite=Strict`
 * keeps other sites' pages out, but a site is a host without its port: any other program's page on 127.0.0.1 counts as ours. Hence:
 * 1. The Host must be a name of this server (an address, `localhost`, this machine's name or one from `dashboard.allowedHosts`), so a
 *    foreign name made to resolve to us (DNS rebinding) is refused.
 * 2. A request that changes something, and every WebSocket, must come from a page of the same host and port, by its Origin header.
 * 3. A request that reads must not be one that another origin's page started (`Sec-Fetch-Site`).
 */
import type { HttpRequest } from "../engines/http-server/index.ts";
import { isIP } from "node:net";
import { hostname } from "node:os";
import { SignalboxError } from "@signalbox/protocol";
import { isForwardedHttps } from "../core/forwarded-https.ts";

/** The port follows: cookies do not know ports, and two servers on one machine must not overwrite each other's session. */
export const SESSION_COOKIE_PREFIX = "signalbox_session_";
/** More than one can only come from other servers on the host. */
const MAX_CANDIDATES = 8;

/** The values that could be this server's session, in the order sent. */
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
    // The server's own name first; others are looked at because a proxy's nodes may listen on different ports.
    if (name === own) found.unshift(value);
    else found.push(value);
  }
  return found.slice(0, MAX_CANDIDATES);
}

export function setCookie(request: HttpRequest, secret: string, maxAgeMs: number): string {
  const secure = isForwardedHttps(request.headers) ? "; Secure" : "";
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

/** The request's own scheme, host and port; null when the host is not a name of this server, so that nobody's text is repeated. */
export function ownOrigin(request: HttpRequest, allowedHosts: readonly string[]): string | null {
  const { host = "" } = request.headers;
  if (!isOwnHost(host, allowedHosts)) return null;
  return `${isForwardedHttps(request.headers) ? "https" : "http"}://${host}`;
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
    message: `This server does not answer to the host ${JSON.stringify(name ?? "")}; add it to dashboard.allowedHosts in the configuration`,
  });
}

function cookieName(request: HttpRequest): string {
  return SESSION_COOKIE_PREFIX + String(request.socket.localPort ?? 0);
}

/** A rebinding attack needs a DNS name; an address cannot be rebound. */
function isOwnName(name: string): boolean {
  return name === "localhost" || isIP(name) !== 0 || name === hostname().toLowerCase();
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
      "Permission denied: the dashboard's session is only for its own pages; other callers need a token",
  });
}
