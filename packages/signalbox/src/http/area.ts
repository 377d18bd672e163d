/** What the listener and an area agree on: an area owns first path segments and answers raw node:http requests below them. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { RequestContext } from "./request-context.ts";
import type { ErrorDialect } from "./render-error.ts";

export interface Area {
  /** Label in metrics and logs. */
  readonly name: string;
  /** First path segments that belong to the area. */
  readonly segments: readonly string[];
  /** How errors thrown by `handle` and `upgrade` are written. */
  readonly dialect: ErrorDialect;
  /** The area passes on what others made (providers, agents): no browser may take its answers for pages of ours. */
  readonly isForeign?: boolean;
  handle(request: IncomingMessage, response: ServerResponse, context: RequestContext): void | Promise<void>;
  /** Takes over a WebSocket upgrade; without it, upgrades below the area's segments are refused. */
  upgrade?(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    context: RequestContext,
  ): void | Promise<void>;
}
