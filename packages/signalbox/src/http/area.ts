/** An area owns first path segments and handles the requests below them. */
import type { Duplex } from "node:stream";
import type { HttpRequest, HttpResponse } from "../engines/http-server/index.ts";
import type { RequestContext } from "./request-context.ts";
import type { ErrorDialect } from "./render-error.ts";

export interface Area {
  /** Label in metrics and logs. */
  readonly name: string;
  /** First path segments that belong to the area. */
  readonly segments: readonly string[];
  /** Paths below segments of another area that belong to this one. */
  readonly guest?: { readonly segments: readonly string[]; readonly path: RegExp };
  /** Format of errors that `handle` and `upgrade` throw. */
  readonly dialect: ErrorDialect;
  /** Responses contain content of providers or agents. They get `INERT_HEADERS`, so that browsers do not treat them as pages of this server. */
  readonly isForeign?: boolean;
  handle(request: HttpRequest, response: HttpResponse, context: RequestContext): void | Promise<void>;
  /** Handles a WebSocket upgrade. Without this method upgrades are refused. */
  upgrade?(request: HttpRequest, socket: Duplex, head: Buffer, context: RequestContext): void | Promise<void>;
}
