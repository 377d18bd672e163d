/**
 * Answers whose content is not ours: a provider's, an agent's. They leave from the origin of the dashboard and of the management
 * interface, so a browser that opens one must not treat it as a page of ours, and nothing in it may speak for the origin.
 */

/**
 * Goes with every answer below `/v1` and `/agents`. `sandbox` gives a document an origin of its own and takes its scripts away,
 * `default-src 'none'` lets it load nothing, `nosniff` holds the browser to the declared type, and the last one keeps other sites' pages
 * from embedding the answer.
 */
export const INERT_HEADERS = {
  "content-security-policy": "sandbox; default-src 'none'",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
} as const;

/** The same as the flat list that `writeHead` takes. */
export const INERT_HEADER_LIST: readonly string[] = Object.entries(INERT_HEADERS).flat();

/**
 * Whether a header speaks for more than the one answer it came with: it makes the browser keep something for the whole origin, undoes
 * the headers above, or takes the place of one of them. Neither a provider nor an agent may. Takes lower case.
 */
export function speaksForOrigin(name: string): boolean {
  return ORIGIN_WIDE.has(name) || name.startsWith("content-security-policy");
}

const ORIGIN_WIDE: ReadonlySet<string> = new Set([
  // Ours, see above.
  "x-content-type-options",
  "cross-origin-resource-policy",
  // Older names of the policy.
  "x-content-security-policy",
  "x-webkit-csp",
  // Empties the browser's storage or widens what a service worker may take over.
  "clear-site-data",
  "service-worker-allowed",
  // Kept by the browser for the whole host, for as long as the sender says.
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
  // Where the browser reports what happens on the origin.
  "nel",
  "report-to",
  "reporting-endpoints",
]);
