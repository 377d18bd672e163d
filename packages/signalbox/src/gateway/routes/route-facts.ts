/** What the elements of a route can read of a request, by path: `metadata.plan`, `body.temperature`, `headers.x-team`, `token.id`, `request.tokens_estimate`. */
import type { Arrival } from "../call/call-start.ts";
import type { CallOptions } from "../step/call-options.ts";
import { estimateTokens, sessionOf, userOf } from "./order-steps.ts";

export interface RequestFacts {
  /** The call's metadata; null without any. */
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** The parsed body. Called only when an element reads it. */
  readonly body: () => unknown;
  /** The value of a header by its name in lower case. */
  readonly header: (name: string) => string | undefined;
  /** What is known of the token, e.g. its id; null without authentication. */
  readonly token: Readonly<Record<string, unknown>> | null;
  /** The expected number of input tokens. */
  readonly tokensEstimate: () => number;
  /** What makes calls belong together; null when each stands alone. */
  readonly session: string | null;
}

/** The body of a call. */
export interface CallBody {
  readonly body: () => unknown;
  readonly bytes: number;
}

export function factsOfCall(
  { request, caller }: Pick<Arrival, "request" | "caller">,
  options: CallOptions,
  { body, bytes }: CallBody,
): RequestFacts {
  return {
    metadata:
      options.metadata === undefined ? null : (JSON.parse(options.metadata) as Record<string, unknown>),
    body,
    header: (name) => {
      const value = request.headers[name];
      return Array.isArray(value) ? value.join(", ") : value;
    },
    token: caller.tokenId === null ? null : { id: caller.tokenId },
    tokensEstimate: () => estimateTokens(bytes),
    session: sessionOf(options),
  };
}

/** The request of a trial, as the management route receives it. */
export interface GivenRequest {
  readonly metadata?: Record<string, unknown> | undefined;
  readonly headers?: Record<string, string> | undefined;
  readonly body?: unknown;
  readonly token?: Record<string, unknown> | undefined;
  readonly session_id?: string | undefined;
}

export function factsOfTrial({
  metadata,
  headers = {},
  body = {},
  token,
  session_id,
}: GivenRequest): RequestFacts {
  const byName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const bytes = Buffer.byteLength(JSON.stringify(body) ?? "");
  return {
    metadata: metadata ?? null,
    body: () => body,
    header: (name) => byName.get(name),
    token: token ?? null,
    tokensEstimate: () => estimateTokens(bytes),
    session: session_id ?? userOf(metadata),
  };
}

/** Credentials are not for conditions: a route that tests them could be used to find them out. */
const HIDDEN_HEADERS =
  /^(?:authorization|proxy-authorization|cookie|(?:x-)?api-key|x-goog-api-key|(?:gw|cf)-aig-authorization)$/;

const MAX_PATH = 256;
const ROOTS = ["metadata", "body", "headers", "token", "request"];

/** Throws a text when the path cannot be read. */
export function checkPath(path: string): void {
  const [root = "", name = ""] = path.split(".", 2);
  if (path.length > MAX_PATH || !ROOTS.includes(root) || name === "") {
    throw new Error(`"${path.slice(0, 64)}" must begin with ${ROOTS.map((one) => `${one}.`).join(", ")}`);
  }
}

/** The value at a path; undefined when there is none. */
export function readFact(facts: RequestFacts, path: string): unknown {
  const dot = path.indexOf(".");
  const root = path.slice(0, dot);
  const rest = path.slice(dot + 1);
  switch (root) {
    case "metadata":
      return ownValue(facts.metadata, rest) ?? readDeep(facts.metadata, rest);
    case "body":
      return readDeep(facts.body(), rest);
    case "headers": {
      const name = rest.toLowerCase();
      return HIDDEN_HEADERS.test(name) ? undefined : facts.header(name);
    }
    case "token":
      return readDeep(facts.token, rest);
    case "request":
      return rest === "tokens_estimate" ? facts.tokensEstimate() : undefined;
    default:
      return undefined;
  }
}

function readDeep(from: unknown, path: string): unknown {
  let value = from;
  for (const name of path.split(".")) value = ownValue(value, name);
  return value;
}

/** Own properties only: a path named `constructor` must not find the prototype's. */
function ownValue(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}
