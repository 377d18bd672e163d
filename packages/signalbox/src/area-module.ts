/** What an area hands to the composition root: where it listens, what it adds to the management interface, and its life cycle. */
import type { Area } from "./http/area.ts";
import type { Route } from "./http/route.ts";

export interface AreaModule {
  /** Front doors with their own paths (`/v1`, `/webhooks`, …). */
  readonly mounts: readonly Area[];
  readonly routes: readonly Route[];
  /** Runs before the listener accepts; the service is not ready before it resolves. */
  start?(): Promise<void>;
  /** Runs when no new connection is accepted any more, while running requests finish: close sockets that never end by themselves. */
  drain?(): Promise<void>;
  /** Runs when no request is left: flush and close. */
  stop?(): Promise<void>;
  /** Its stop ends only when agents' storage has room for what they know. */
  readonly waitsForInstances?: boolean;
  /** The card of the dashboard's overview that shows its first commands. Default `agents`. */
  readonly card?: OverviewCard;
  /** Copy-and-paste shell commands printed at the start; `tokenExpression` is shell text that expands to the root token. */
  firstCommands?(url: string, tokenExpression: string): readonly FirstCommand[];
}

export type OverviewCard = "gateway" | "agents" | "tags";

export interface FirstCommand {
  readonly title: string;
  readonly command: string;
}
