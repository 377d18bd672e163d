/**
 * `fetch` of a stub: an answer with a `location` is followed to the same object or service, as the originals do. A request that came from a client has
 * `redirect: "manual"`, so a worker that passes it on also passes the redirect on.
 */

type Input = Request | URL | string;
type Body = NonNullable<RequestInit["body"]> | null | undefined;

/** The fetch standard allows as many. */
const MAX_REDIRECTS = 20;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Headers that describe a body (fetch standard, "request-body-header name"). */
const BODY_HEADERS = [
  "content-encoding",
  "content-language",
  "content-location",
  "content-type",
  "content-length",
];

/** Sends the request, and those that redirects ask for. The response has the address of the last one. */
export async function fetchFollowing(
  input: Input,
  init: RequestInit | undefined,
  send: (request: Request) => Promise<Response>,
): Promise<Response> {
  let request = input instanceof Request && init === undefined ? input : new Request(input, init);
  // Read now: a request whose body was sent has none left.
  const isFollowing = request.redirect !== "manual";
  const body = isFollowing ? replayable(input, init, request) : null;
  for (let count = 0; ; count += 1) {
    const response = await send(request);
    const location = isFollowing && REDIRECTS.has(response.status) ? response.headers.get("location") : null;
    if (location === null) return atAddress(response, request.url, count > 0);
    if (request.redirect === "error") throw new TypeError(`unexpected redirect of ${request.url}`);
    if (count === MAX_REDIRECTS) throw new TypeError("Too many redirects.");
    await response.body?.cancel();
    request = redirected(request, response.status, new URL(location, request.url), body);
  }
}

/** The body of a request, if it can be sent again: undefined for none, null for a stream. */
function replayable(input: Input, init: RequestInit | undefined, request: Request): Body {
  if (request.body === null) return undefined;
  const given = init?.body ?? null;
  return given === null || given instanceof ReadableStream || input instanceof Request ? null : given;
}

function redirected(
  { url: before, method, headers, signal, redirect }: Request,
  status: number,
  url: URL,
  body: Body,
): Request {
  const becomesGet =
    (status === 303 && method !== "GET" && method !== "HEAD") ||
    ((status === 301 || status === 302) && method === "POST");
  const kept = new Headers(headers);
  // The fetch standard: another origin does not get credentials that the program meant for this one.
  if (url.origin !== new URL(before).origin) kept.delete("authorization");
  if (becomesGet || body === undefined) {
    if (becomesGet) for (const name of BODY_HEADERS) kept.delete(name);
    return new Request(url, { method: becomesGet ? "GET" : method, headers: kept, signal, redirect });
  }
  if (body === null)
    throw new TypeError(
      "A redirect asks for the body of the request again, which was a stream and is used up.",
    );
  return new Request(url, { method, headers: kept, signal, redirect, body });
}

/** A response of an object has no address by itself. */
function atAddress(response: Response, url: string, wasRedirected: boolean): Response {
  Object.defineProperty(response, "url", { value: withoutFragment(url), configurable: true });
  if (wasRedirected) Object.defineProperty(response, "redirected", { value: true, configurable: true });
  return response;
}

function withoutFragment(url: string): string {
  const hash = url.indexOf("#");
  return hash === -1 ? url : url.slice(0, hash);
}
