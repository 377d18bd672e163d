/**
 * `/healthz`, `/readyz`, `/metrics` and `/openapi.json`.
 *
 * Requests without a token are possible, so the cost is bounded: the description is built once, and collecting the metrics takes at most a tenth
 * of the time.
 */
import { createHash } from "node:crypto";
import type { HttpRequest, HttpResponse } from "../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import type { Registry } from "prom-client";
import type { Area } from "./area.ts";

export interface OperationsOptions {
  readonly registry: Registry;
  /** Returns the reasons why the service is not ready; empty if it is. */
  readonly problems: () => readonly string[];
  readonly openApi: () => object;
  /** Throws unless the caller may read the metrics or the description. */
  readonly authorise: (request: HttpRequest, what: "metrics" | "description") => void;
}

/** Maximum share of the time that is spent on collecting metrics. */
const MAX_METRICS_SHARE = 0.1;

const JSON_TYPE = "application/json; charset=utf-8";
const HEALTHY = '{"status":"ok"}';

/** `/healthz`, `/readyz` and `HEAD /` only, for the address of the traffic. */
export function createHealth(problems: () => readonly string[]): Area {
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
      sendHealth(request, response, context.path, problems);
    },
  };
}

export function createOperations(options: OperationsOptions): Area {
  const readMetrics = createMetricsReader(options.registry);
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
            send(request, response, text, { "content-type": options.registry.contentType }),
          );
        case "/openapi.json":
          options.authorise(request, "description");
          // Built on first use: most servers never need it.
          description ??= describe(options.openApi());
          sendDescription(request, response, description);
          return;
        default:
          sendHealth(request, response, context.path, options.problems);
          return;
      }
    },
  };
}

function sendHealth(
  request: HttpRequest,
  response: HttpResponse,
  path: string,
  problems: () => readonly string[],
): void {
  if (path === "/readyz") {
    const found = problems();
    if (found.length > 0)
      throw new SignalboxError("not_ready", { message: `Not ready: ${found.join("; ")}` });
  } else if (path !== "/healthz") {
    throw new SignalboxError("not_found");
  }
  send(request, response, HEALTHY, { "content-type": JSON_TYPE });
}

interface Description {
  readonly text: string;
  readonly etag: string;
}

function describe(openApi: object): Description {
  const text = JSON.stringify(openApi);
  return { text, etag: `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"` };
}

function sendDescription(request: HttpRequest, response: HttpResponse, { text, etag }: Description): void {
  const headers = { etag, "cache-control": "no-cache", "x-content-type-options": "nosniff" };
  if (request.headers["if-none-match"]?.includes(etag) === true) {
    response.writeHead(304, headers);
    response.end();
    return;
  }
  send(request, response, text, { ...headers, "content-type": JSON_TYPE });
}

/** Concurrent requests share one collection. Its result is reused until `MAX_METRICS_SHARE` allows the next. */
function createMetricsReader(registry: Registry): () => Promise<string> {
  let last: Promise<string> | undefined;
  let staleAt = 0;
  return () => {
    const startedAt = performance.now();
    if (last !== undefined && startedAt < staleAt) return last;
    staleAt = Infinity;
    last = registry.metrics().finally(() => {
      const endedAt = performance.now();
      staleAt = endedAt + (endedAt - startedAt) / MAX_METRICS_SHARE;
    });
    return last;
  };
}

function requireGet(request: HttpRequest): void {
  if (request.method !== "GET" && request.method !== "HEAD") {
    throw new SignalboxError("method_not_allowed", { headers: { allow: "GET, HEAD" } });
  }
}

function send(
  request: HttpRequest,
  response: HttpResponse,
  body: string,
  headers: Readonly<Record<string, string>>,
): void {
  // Text instead of bytes: Node.js sends it together with the headers in one write.
  response.writeHead(200, {
    ...headers,
    "content-length": Buffer.byteLength(body),
    "x-content-type-options": "nosniff",
  });
  response.end(request.method === "HEAD" ? undefined : body);
}
