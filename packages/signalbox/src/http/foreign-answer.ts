/**
 * Headers of responses with content of providers or agents. These responses have the same origin as the dashboard and the management interface:
 * a browser must not run their scripts, and they must not change settings of the origin.
 * See docs/decisions/0070.
 */

/**
 * Added to every response below `/v1` and `/agents`. `sandbox` gives a document a unique origin and disables its scripts, `default-src 'none'`
 * blocks all subresources, `nosniff` enforces the declared type, and `same-origin` prevents embedding by other sites.
 */
export const INERT_HEADERS = {
  "content-security-policy": "sandbox; default-src 'none'",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
} as const;

/** `INERT_HEADERS` as a flat list for `writeHead`. */
export const INERT_HEADER_LIST: readonly string[] = Object.entries(INERT_HEADERS).flat();

/**
 * Returns true for a header that affects more than its response: browsers store it for the origin, or it replaces or weakens a header above. Such
 * headers of providers and agents are removed. `name` is in lower case.
 */
export function affectsOrigin(name: string): boolean {
  return ORIGIN_WIDE.has(name) || name.startsWith("content-security-policy");
}

const ORIGIN_WIDE: ReadonlySet<string> = new Set([
  // Set by INERT_HEADERS.
  "x-content-type-options",
  "cross-origin-resource-policy",
  // Older names of the policy.
  "x-content-security-policy",
  "x-webkit-csp",
  // Deletes stored data of the origin, or extends the scope of a service worker.
  "clear-site-data",
  "service-worker-allowed",
  // Stored by the browser for the whole host.
  "alt-svc",
  "strict-transport-security",
  "public-key-pins",
  "public-key-pins-report-only",
  "expect-ct",
  "accept-ch",
  "accept-ch-lifetime",
  "critical-ch",
  "set-login",
  "origin-agent-cluster",
  // Set the recipient of browser reports about the origin.
  "nel",
  "report-to",
  "reporting-endpoints",
]);
