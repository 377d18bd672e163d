/** An area owns first path segments and answers the requests below them. */
import type { Duplex } from "node:stream";
import type { HttpRequest, HttpResponse } from "../engines/http-server/index.ts";
import type { RequestContext } from "./request-context.ts";
import type { ErrorDialect } from "./render-error.ts";

export interface Area {
  /** Label in metrics and logs. */
  readonly name: string;
  /** First path segments that belong to the area. */
  readonly segments: readonly string[];
  /** How errors thrown by `handle` and `upgrade` are written. */
  readonly dialect: ErrorDialect;
  /** Responses contain what others made (providers, agents): they carry `INERT_HEADERS`, so that no browser treats them as pages of ours. */
  readonly isForeign?: boolean;
  handle(request: HttpRequest, response: HttpResponse, context: RequestContext): void | Promise<void>;
  /** Takes over a WebSocket upgrade; without it, upgrades below the area's segments are refused. */
  upgrade?(request: HttpRequest, socket: Duplex, head: Buffer, context: RequestContext): void | Promise<void>;
}
