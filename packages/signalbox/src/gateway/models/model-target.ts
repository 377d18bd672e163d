/** The models that a call tries, in order: one, or those of a route. */
import type { CallOptions } from "../plan/call-options.ts";
import type { Provider } from "../providers/provider.ts";
import type { Gateway } from "../settings/gateway.ts";

export interface ModelTarget {
  readonly provider: Provider;
  /** The name of the model at the provider. */
  readonly model: string;
  /** Whether the caller wrote the provider; a caller's own key is then meant for this provider. */
  readonly isExplicit: boolean;
  /** Options of this attempt only; they precede those of the call. */
  readonly options?: CallOptions;
}

/** What a route may decide by. */
export interface RouteCall {
  readonly gateway: Gateway;
  readonly route: string;
  readonly options: CallOptions;
  /** Parses the body when it is needed. */
  readonly body: () => unknown;
  readonly header: (name: string) => string | undefined;
  readonly tokenId: string | null;
}

/** Turns a call of `dynamic/{route}` into the models to try. Throws `gateway_unknown_route` for a route that does not exist. */
export type RouteResolver = (call: RouteCall) => readonly ModelTarget[];
