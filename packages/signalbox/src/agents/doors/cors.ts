/**
 * Cross-origin requests of browsers to `/agents` (`agents.cors`).
 *
 * 1. `true` allows every origin, without credentials: a page needs a token of its own, and cookies of the user are never readable.
 * 2. A list allows these origins, with credentials. A listed origin cannot use a session of the dashboard: sessions have their own check of
 *    the origin (decision 0046). `null`, the origin of sandboxed documents and local files, is in no list.
 * 3. For an origin that is not allowed, the response has no headers of ours. The request itself is not refused: CORS limits what a browser
 *    shows to a page, and other clients send any origin.
 * 4. A preflight of an allowed origin is answered before access is checked, because browsers send it without credentials.
 * See agents/README.md.
 */
import type { AddedHeaders, HttpRequest, HttpResponse } from "../../engines/http-server/index.ts";
import { INERT_HEADERS } from "../../http/foreign-answer.ts";

export type CorsSetting = boolean | readonly string[];

const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
/** Browsers keep the answer to a preflight at most this long (Chromium's limit). */
const MAX_AGE_SECONDS = "7200";
/** A list of header names (RFC 9110, section 5.1). The wildcard would not include `authorization`. */
const HEADER_NAMES = /^[\w!#$%&'*+.^`|~-]+(\s*,\s*[\w!#$%&'*+.^`|~-]+)*$/;

export class Cors {
  readonly #any: AddedHeaders | null;
  readonly #byOrigin: ReadonlyMap<string, AddedHeaders>;

  constructor(setting: true | readonly string[]) {
    this.#any = setting === true ? toAdded({ "access-control-allow-origin": "*" }) : null;
    this.#byOrigin = new Map(
      (setting === true ? [] : setting).map((origin) => [
        origin,
        toAdded({ "access-control-allow-origin": origin, "access-control-allow-credentials": "true" }),
      ]),
    );
  }

  /** The headers of every response to the request, errors included; null for an origin that is not allowed. */
  headersFor({ headers: { origin } }: HttpRequest): AddedHeaders | null {
    return origin === undefined ? null : (this.#any ?? this.#byOrigin.get(origin) ?? null);
  }

  /** Called before anything else. Answers the preflight of an allowed origin and returns true. */
  begin(request: HttpRequest, response: HttpResponse): boolean {
    // A cache must not give the response for one origin to another.
    if (this.#any === null) response.setHeader("vary", "Origin");
    const { headers, method } = request;
    const isPreflight = method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
    if (!isPreflight || this.headersFor(request) === null) return false;
    const wanted = headers["access-control-request-headers"];
    response.writeHead(204, {
      "access-control-allow-methods": METHODS,
      "access-control-max-age": MAX_AGE_SECONDS,
      ...(typeof wanted === "string" && HEADER_NAMES.test(wanted)
        ? { "access-control-allow-headers": wanted }
        : {}),
    });
    response.end();
    return true;
  }
}

/** Null when no other origin is allowed. */
export function createCors(setting: CorsSetting): Cors | null {
  return setting === false || (setting !== true && setting.length === 0) ? null : new Cors(setting);
}

function toAdded(own: Readonly<Record<string, string>>): AddedHeaders {
  const record = { ...INERT_HEADERS, ...own };
  return { record, list: Object.entries(record).flat() };
}
