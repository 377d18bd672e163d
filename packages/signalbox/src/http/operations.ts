/**
 * `/healthz`, `/readyz`, `/metrics` and `/openapi.json`.
 *
 * Requests without a token are possible, so the cost is bounded: the description is built once, collecting the metrics takes at most a tenth
 * of the time, and other processes are asked for their readiness four times a second at most.
 */
import { createHash } from "node:crypto";
import type { HttpRequest, HttpResponse } from "../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import type { Registry } from "prom-client";
import type { Area } from "./area.ts";
import type { Siblings } from "./siblings.ts";

export interface OperationsOptions {
  readonly registry: Registry;
  /** Returns the reasons why the service is not ready; empty if it is. */
  readonly problems: () => readonly string[];
  /** Null: this process serves alone. */
  readonly siblings: Siblings | null;
  readonly openApi: () => object;
  /** Throws unless the caller may read the metrics or the description. */
  readonly authorise: (request: HttpRequest, what: "metrics" | "description") => void;
}

/** Maximum share of the time that is spent on collecting metrics. */
const MAX_METRICS_SHARE = 0.1;
/** Of the metrics of several processes: most of the time is spent on waiting for the others, up to seconds for one that does not answer. */
const MAX_REUSE_MS = 1000;
/** Of the readiness of several processes: short beside the interval of any probe, and long for a stranger who wants to keep the supervisor busy. */
const READINESS_REUSE_MS = 250;

const JSON_TYPE = "application/json; charset=utf-8";
const HEALTHY = '{"status":"ok"}';

/** `/healthz`, `/readyz` and `HEAD /` only, for the address of the traffic. */
export function createHealth(problems: () => readonly string[], siblings: Siblings | null): Area {
  const readiness = createReadiness(problems, siblings);
  return {
    name: "operations",
    isAlwaysServed: () => true,
    segments: ["healthz", "readyz", ""],
    dialect: "envelope",
    handle(request, response, context) {
      requireGet(request);
      if (context.path === "/" && request.method === "HEAD") {
        // Some clients of models check that their base address answers.
        send(request, response, HEALTHY, { "content-type": JSON_TYPE });
        return;
      }
      return sendHealth(request, response, context.path, readiness);
    },
  };
}

export function createOperations(options: OperationsOptions): Area {
  const { registry, siblings, problems } = options;
  const readOwn = reused(() => registry.metrics(), withinShare);
  siblings?.answerWith({ metrics: readOwn, problems });
  const readMetrics =
    siblings === null
      ? readOwn
      : reused(
          () => siblings.metrics(),
          (tookMs) => Math.min(withinShare(tookMs), MAX_REUSE_MS),
        );
  const readiness = createReadiness(problems, siblings);
  let description: Description | undefined;
  return {
    name: "operations",
    isAlwaysServed: () => true,
    segments: ["healthz", "readyz", "metrics", "openapi.json"],
    dialect: "envelope",
    handle(request, response, context) {
      requireGet(request);
      switch (context.path) {
        case "/metrics":
          options.authorise(request, "metrics");
          return readMetrics().then((text) =>
            send(request, response, text, { "content-type": registry.contentType }),
          );
        case "/openapi.json":
          options.authorise(request, "description");
          // Built on first use: most servers never need it.
          description ??= describe(options.openApi());
          sendDescription(request, response, description);
          return;
        default:
          return sendHealth(request, response, context.path, readiness);
      }
    },
  };
}

/** The body of `/readyz`. Throws, or rejects, if the service is not ready. */
type Readiness = () => string | Promise<string>;

function createReadiness(problems: () => readonly string[], siblings: Siblings | null): Readiness {
  if (siblings === null) {
    return () => {
      refuseIf(problems());
      return HEALTHY;
    };
  }
  return reused(
    () => readAll(siblings),
    () => READINESS_REUSE_MS,
  );
}

/** Ready is who accepts connections: a process that starts or leaves gets none. */
async function readAll(siblings: Siblings): Promise<string> {
  const all = await siblings.readiness();
  const accepting = all.filter(({ state }) => state === "serving");
  refuseIf(
    accepting.length === 0
      ? ["no process accepts connections"]
      : accepting.flatMap(({ process, problems }) => problems.map((one) => `process ${process}: ${one}`)),
  );
  const processes = all.map(({ process, state }) => ({ process, state }));
  return JSON.stringify({ status: "ok", processes });
}

function refuseIf(problems: readonly string[]): void {
  if (problems.length > 0)
    throw new SignalboxError("not_ready", { message: `Not ready: ${problems.join("; ")}` });
}

function sendHealth(
  request: HttpRequest,
  response: HttpResponse,
  path: string,
  readiness: Readiness,
): void | Promise<void> {
  const answer = (body: string) => send(request, response, body, { "content-type": JSON_TYPE });
  if (path === "/healthz") return answer(HEALTHY);
  if (path !== "/readyz") throw new SignalboxError("not_found");
  const body = readiness();
  return typeof body === "string" ? answer(body) : body.then(answer);
}

interface Description {
  /** Bytes instead of text: encoding its 500 KB for each request takes a millisecond. */
  readonly bytes: Buffer;
  readonly etag: string;
}

function describe(openApi: object): Description {
  const bytes = Buffer.from(JSON.stringify(openApi));
  return { bytes, etag: `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"` };
}

function sendDescription(request: HttpRequest, response: HttpResponse, { bytes, etag }: Description): void {
  const headers = { etag, "cache-control": "no-cache", "x-content-type-options": "nosniff" };
  if (request.headers["if-none-match"]?.includes(etag) === true) {
    response.writeHead(304, headers);
    response.end();
    return;
  }
  send(request, response, bytes, { ...headers, "content-type": JSON_TYPE });
}

/** Concurrent requests share one collection. Its result, also a failure, is reused for as long as `reuseMs` says of the time that it took. */
function reused(collect: () => Promise<string>, reuseMs: (tookMs: number) => number): () => Promise<string> {
  let last: Promise<string> | undefined;
  let staleAt = 0;
  return () => {
    const startedAt = performance.now();
    if (last !== undefined && startedAt < staleAt) return last;
    staleAt = Infinity;
    last = collect().finally(() => {
      const endedAt = performance.now();
      staleAt = endedAt + reuseMs(endedAt - startedAt);
    });
    return last;
  };
}

function withinShare(tookMs: number): number {
  return tookMs / MAX_METRICS_SHARE;
}

function requireGet(request: HttpRequest): void {
  if (request.method !== "GET" && request.method !== "HEAD") {
    throw new SignalboxError("method_not_allowed", { headers: { allow: "GET, HEAD" } });
  }
}

function send(
  request: HttpRequest,
  response: HttpResponse,
  body: string | Buffer,
  headers: Readonly<Record<string, string>>,
): void {
  // Short bodies are text instead of bytes: Node.js sends them together with the headers in one write.
  response.writeHead(200, {
    ...headers,
    "content-length": Buffer.byteLength(body),
    "x-content-type-options": "nosniff",
  });
  response.end(request.method === "HEAD" ? undefined : body);
}
