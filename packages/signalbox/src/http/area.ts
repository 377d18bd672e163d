/** An area owns first path segments and handles the requests below them. */
import type { Duplex } from "node:stream";
import type { AddedHeaders, HttpRequest, HttpResponse } from "../engines/http-server/index.ts";
import type { RequestContext } from "./request-context.ts";
import type { ErrorDialect } from "./render-error.ts";

export interface Area {
  /** Label in metrics and logs. */
  readonly name: string;
  /** First path segments that belong to the area. */
  readonly segments: readonly string[];
  /** Paths below segments of another area that belong to this one. */
  readonly guest?: { readonly segments: readonly string[]; readonly path: RegExp };
  /** True for a path that is answered while the tokens and settings in memory may be out of date: health, files, and the state of the node. Default: none. */
  isAlwaysServed?(path: string): boolean;
  /** Format of errors that `handle` and `upgrade` throw. */
  readonly dialect: ErrorDialect;
  /** Responses contain content of providers or agents. They get `INERT_HEADERS`, so that browsers do not treat them as pages of this server. */
  readonly isForeign?: boolean;
  /** Headers of every response to the request, errors included, in place of `INERT_HEADERS`, which they contain. Null for those alone. */
  headersFor?(request: HttpRequest): AddedHeaders | null;
  handle(request: HttpRequest, response: HttpResponse, context: RequestContext): void | Promise<void>;
  /** Handles a WebSocket upgrade. Without this method upgrades are refused. */
  upgrade?(request: HttpRequest, socket: Duplex, head: Buffer, context: RequestContext): void | Promise<void>;
}

/** Answers the paths that no other area owns, and may take paths of other areas. */
export interface FallbackArea extends Area {
  /** `segment` is the decoded first segment of `path`, and belongs to another area. */
  takes(segment: string, path: string): boolean;
}

/** The path behind a path of a host name that stands for a part of the service; null for other hosts. */
export type PlaceAtHost = (host: string, path: string) => string | null;
