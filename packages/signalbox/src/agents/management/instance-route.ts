/**
 * A management route of one instance. Its handler runs at the node that owns the instance and receives what travels there. The caller, its address and the raw
 * body stay at the node that received the request and checked credential, permission and input.
 */
import type { PathParams, Reply, Route, RouteRequest, WithEffect } from "../../http/route.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";

export const AGENTS = "/accounts/{account_id}/agents";
export const INSTANCES = `${AGENTS}/{agent_name}/instances`;
export const INSTANCE = `${INSTANCES}/{instance_name}`;

export interface InstanceRequest<Body = unknown, Query = unknown, PathValues = PathParams<string>> {
  /** The instance that the path names, whether or not it exists. */
  readonly ref: InstanceRef;
  readonly params: PathValues;
  readonly query: Query;
  readonly body: Body;
  /** The header `Accept`. */
  readonly accept: string | undefined;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}

type InstancePath = `${typeof INSTANCE}${string}`;

export interface InstanceRoute<Body = unknown, Query = unknown, Path extends string = string> extends Omit<
  Route<Body, Query, Path>,
  "handler"
> {
  handler(request: InstanceRequest<Body, Query, PathParams<Path>>): Reply | Promise<Reply>;
}

/** Infers the types of a handler from the route's path and schemas, as `defineRoute` does. */
export function defineInstanceRoute<
  Body = unknown,
  Query = unknown,
  const Path extends InstancePath = InstancePath,
>(route: InstanceRoute<Body, Query, Path> & WithEffect): InstanceRoute {
  return route;
}

/** Throws `agent_not_found`. */
export type RefOf = (params: PathParams<typeof INSTANCE>) => InstanceRef;

/** The route as the router serves it: `run` takes the place of its handler. */
export function toRoute(route: InstanceRoute, refOf: RefOf, run: InstanceRoute["handler"]): Route {
  const handler = ({
    params,
    query,
    body,
    headers,
    signal,
  }: RouteRequest<unknown, unknown, PathParams<typeof INSTANCE>>) =>
    run({ ref: refOf(params), params, query, body, accept: headers.accept, signal });
  return { ...route, handler };
}
