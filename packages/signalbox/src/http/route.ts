/**
 * A management route as data: method, path template, who may call it, what it takes, and what answers. Routes are listed by the areas
 * and served, authorised, validated and documented (OpenAPI) in one place, `management.ts`.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import type { Permission } from "@signalbox/protocol";
import type { ZodType } from "zod";
import type { Principal } from "../accounts/principal.ts";

/** `root`: the root token only. `authenticated`: any valid token. A permission is checked in the account named by `{account_id}`. */
export type Access = Permission | "root" | "authenticated";

export type RouteMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface RouteRequest<Body = unknown, Query = unknown> {
  readonly id: string;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  /** The query as sent, for parameters that repeat; parsed when first asked for. */
  readonly rawQuery: URLSearchParams;
  /** The first value of one parameter; cheaper than `rawQuery` where that is all a handler wants. */
  parameter(name: string): string | null;
  /** Throws `invalid_request`, naming it, for a parameter that is not among these: a misspelt filter must not widen an answer. */
  allowParameters(known: readonly string[]): void;
  readonly body: Body;
  readonly headers: IncomingHttpHeaders;
  readonly principal: Principal;
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal;
  /** The raw body, for routes without a body schema that parse it themselves. */
  readBody(): Promise<Buffer>;
}

export interface Reply {
  /** Default 200. */
  readonly status?: number;
  readonly result?: unknown;
  /** `result` as JSON text, for handlers that have it in that form already. */
  readonly resultJson?: string;
  readonly resultInfo?: object;
  readonly messages?: readonly string[];
  /** Beside those of the body, its type and length, which are added. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Replaces the envelope: a stored body, a stream of events. */
  readonly raw?: { readonly contentType: string; readonly body: string | Buffer | Readable };
}

export interface Route<Body = unknown, Query = unknown> {
  readonly method: RouteMethod;
  /** `/accounts/{account_id}/tokens`; also served below `/client/v4`. */
  readonly path: string;
  readonly access: Access;
  /** One sentence for the documentation. */
  readonly summary: string;
  readonly body?: ZodType<Body>;
  readonly query?: ZodType<Query>;
  /** Shapes for the documentation of routes that read body or query themselves, with errors of their own. */
  readonly documents?: { readonly body?: ZodType; readonly query?: ZodType };
  /** Names the account of a path without `{account_id}`; it is then checked like one, and found in `params.account_id`. */
  accountOf?(principal: Principal, query: URLSearchParams): string;
  /** Shape of `result`, for the documentation only. */
  readonly result?: ZodType;
  /** Default: the listener's management limit. */
  readonly maxBodyBytes?: number;
  handler(request: RouteRequest<Body, Query>): Reply | Promise<Reply>;
}

/** Ties a handler's types to its schemas, then forgets them: the router treats all routes alike. */
export function defineRoute<Body = unknown, Query = unknown>(route: Route<Body, Query>): Route {
  return route;
}
