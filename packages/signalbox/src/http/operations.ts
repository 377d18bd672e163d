/** `/healthz`, `/readyz`, `/metrics` and `/openapi.json`: what an orchestrator, a scraper and a client generator ask for. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { SignalboxError } from "@signalbox/protocol";
import type { Registry } from "prom-client";
import type { Area } from "./area.ts";

export interface OperationsOptions {
  readonly registry: Registry;
  /** What keeps it from serving all that it should, in words; empty when nothing does. */
  readonly problems: () => readonly string[];
  readonly openApi: () => object;
}

const HEALTHY = '{"status":"ok"}';

export function createOperations(options: OperationsOptions): Area {
  return {
    name: "operations",
    segments: ["healthz", "readyz", "metrics", "openapi.json"],
    dialect: "envelope",
    handle(request, response, context) {
      requireGet(request);
      switch (context.path) {
        case "/healthz":
          sendJson(request, response, HEALTHY);
          return;
        case "/readyz": {
          const problems = options.problems();
          if (problems.length > 0)
            throw new SignalboxError("not_ready", { message: `Not ready: ${problems.join("; ")}` });
          sendJson(request, response, HEALTHY);
          return;
        }
        case "/metrics":
          return options.registry.metrics().then((text) => {
            send(request, response, options.registry.contentType, text);
          });
        case "/openapi.json":
          sendJson(request, response, JSON.stringify(options.openApi()));
          return;
        default:
          throw new SignalboxError("not_found");
      }
    },
  };
}

function requireGet(request: IncomingMessage): void {
  if (request.method !== "GET" && request.method !== "HEAD") {
    throw new SignalboxError("method_not_allowed", { headers: { allow: "GET, HEAD" } });
  }
}

function sendJson(request: IncomingMessage, response: ServerResponse, body: string): void {
  send(request, response, "application/json; charset=utf-8", body);
}

function send(request: IncomingMessage, response: ServerResponse, contentType: string, body: string): void {
  // Text, not bytes: node joins it with the header block into one write.
  response.writeHead(200, { "content-type": contentType, "content-length": Buffer.byteLength(body) });
  response.end(request.method === "HEAD" ? undefined : body);
}
