/**
 * A management route as data: method, path template, required access, input, and handler. The areas define routes; `management.ts`
 * authorises, validates and serves them, and `openapi.ts` documents them.
 * See docs/decisions/0088.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import type { Permission } from "@signalbox/protocol";
import type { ZodType } from "zod";
import type { Principal } from "../accounts/principal.ts";

/**
 * `root`: the root token only. `authenticated`: any valid token. A permission is checked in the account of `{account_id}` or `accountOf`;
 * the service does not start with a route that has neither.
 */
export type Access = Permission | "root" | "authenticated";

export type RouteMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

type Params = Readonly<Record<string, string>>;

/** The parameters of a path template: `{ account_id: string }` for `/accounts/{account_id}/tags`. */
export type PathParams<Path extends string> = string extends Path
  ? Params
  : { readonly [Name in ParamNames<Path>]: string };

/** Returns the account of a path without `{account_id}`. */
type AccountOf = (principal: Principal, query: URLSearchParams) => string;

type AccountParam<Account> = [Account] extends [AccountOf] ? { readonly account_id: string } : unknown;

type ParamNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamNames<Rest>
  : never;

export interface RouteRequest<Body = unknown, Query = unknown, PathValues = Params> {
  readonly id: string;
  /** The decoded parameters of the path. */
  readonly params: PathValues;
  readonly query: Query;
  /** The query as sent, for repeated parameters. Parsed on first use. */
  readonly rawQuery: URLSearchParams;
  /** Returns the first value of a query parameter. */
  parameter(name: string): string | null;
  /** Throws `invalid_request` for a query parameter that is not in the list: a misspelt filter must not widen a result. */
  allowParameters(known: readonly string[]): void;
  readonly body: Body;
  readonly headers: IncomingHttpHeaders;
  /** Scheme, host and port at which the caller reaches the gateway; always a host of this server. */
  readonly trafficOrigin: string;
  readonly principal: Principal;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Reads the raw body, for routes without a body schema. */
  readBody(): Promise<Buffer>;
}

export interface Reply {
  /** Default 200. */
  readonly status?: number;
  readonly result?: unknown;
  /** `result` as JSON text, for handlers that already have it as text. */
  readonly resultJson?: string;
  readonly resultInfo?: object;
  readonly messages?: readonly string[];
  /** In addition to `content-type` and `content-length`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Replaces the envelope: a stored body, a stream of events. */
  readonly raw?: { readonly contentType: string; readonly body: string | Buffer | Readable };
}

export interface Route<
  Body = unknown,
  Query = unknown,
  Path extends string = string,
  Account extends AccountOf | undefined = AccountOf | undefined,
> {
  readonly method: RouteMethod;
  /**
   * Of a POST, which must have it: `create` adds to the collection that the path names, `action` does what the last segment says with the resource before
   * it (`/tokens/{token_id}/rotate`). For the audit log.
   */
  readonly effect?: "create" | "action";
  /** `/accounts/{account_id}/tokens`; also served below `/client/v4`. */
  readonly path: Path;
  readonly access: Access;
  /** One sentence for the documentation. */
  readonly summary: string;
  readonly body?: ZodType<Body>;
  readonly query?: ZodType<Query>;
  /** Schemas for the documentation of routes that validate body or query themselves. */
  readonly documents?: { readonly body?: ZodType; readonly query?: ZodType };
  /**
   * Query parameters in addition to those of `query` and `documents.query`. Every other parameter is refused: a misspelt filter must not
   * widen a result. `"handler"`: the handler refuses unknown parameters itself, because their names follow a pattern.
   */
  readonly parameters?: readonly string[] | "handler";
  /**
   * Query parameters that may stand several times, besides those that are lists in a schema. Any other parameter is refused if it stands twice: it is
   * not certain which one a proxy and the caller mean.
   */
  readonly repeatable?: readonly string[];
  /**
   * Allows a path without `{gateway_id}` for tokens that are bound to a gateway: the handler reads and changes only objects of the gateway of
   * `principal`. Default: such tokens are refused with 403. On a path with `{gateway_id}` they reach their own gateway only.
   */
  readonly narrowsToGateway?: boolean;
  /** For a path without `{account_id}`. The account is checked like one of a path and stored in `params.account_id`. */
  readonly accountOf?: Account;
  /** The store records the state before and after the change in the audit log; otherwise the router reads it with the GET of the same path. */
  readonly recordsChange?: boolean;
  /** A route that only reads although it is no GET. It is recorded, but not refused if the audit log cannot be written. */
  readonly changesNothing?: boolean;
  /** Answered while the tokens and settings in memory may be out of date: the state of the node, for operators. The path has no parameters. */
  readonly isAlwaysServed?: boolean;
  /** The body may contain NUL characters: it is passed on to code or to a provider, and not stored in the control plane. */
  readonly acceptsNul?: boolean;
  /** Schema of `result`, for the documentation only. */
  readonly result?: ZodType;
  /** Default: the listener's management limit. */
  readonly maxBodyBytes?: number;
  handler(
    request: RouteRequest<Body, Query, PathParams<Path> & AccountParam<Account>>,
  ): Reply | Promise<Reply>;
}

export type WithEffect =
  | { readonly method: "POST"; readonly effect: "create" | "action" }
  | { readonly method: Exclude<RouteMethod, "POST">; readonly effect?: never };

/** Infers the types of a handler from the route's path and schemas. The result has no type parameters: the router treats all routes alike. */
export function defineRoute<
  Body = unknown,
  Query = unknown,
  const Path extends string = string,
  Account extends AccountOf | undefined = undefined,
>(route: Route<Body, Query, Path, Account> & WithEffect): Route {
  return route;
}
