/** The routes of one source, as the intake uses them. */
import type { Source } from "../source.ts";
import type { Route } from "./route.ts";

export interface SourceRoutes {
  /** At least one. */
  readonly routes: readonly Route[];
  /**
   * The only route besides those of listeners, or the agent of a source that has no other, if it leads to an agent and has nothing but a filter: deliveries that match go to the agent as those of a source without routes do,
   * and the sender receives the agent's answer. `source` has the agent of the route.
   */
  readonly direct: { readonly route: Route; readonly source: Source } | null;
  /** Those of `routes` that listeners take. With `direct`, deliveries are stored for them besides. */
  readonly listeners: readonly Route[];
}
