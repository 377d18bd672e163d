/** An area as the composition root uses it: its paths, its management routes, and its life cycle. */
import type { Area } from "./http/area.ts";
import type { Route } from "./http/route.ts";

export interface AreaModule {
  /** Paths outside the management interface (`/v1`, `/webhooks`, …). */
  readonly mounts: readonly Area[];
  readonly routes: readonly Route[];
  /** Called before the listener accepts connections, which waits for the promise. */
  start?(): Promise<void>;
  /**
   * This node of a cluster stops, but still serves: gives what it runs to other nodes, until the signal aborts. Not called for an urgent stop.
   */
  retire?(signal: AbortSignal): Promise<void>;
  /** Called after the listener stopped accepting connections, while requests finish. Closes connections that do not end by themselves. */
  drain?(): Promise<void>;
  /** Writes what is only in memory to the database, before a backup. */
  flush?(): Promise<void>;
  /** Called after the last request has ended: flushes and closes. */
  stop?(): Promise<void>;
  /** `stop` waits for writes of the instance store, which are paused while the disk is full. */
  readonly waitsForInstances?: boolean;
  /** The step of the dashboard's overview that shows the first commands. Default `agents`. */
  readonly card?: OverviewCard;
  /** Returns shell commands that are printed at the start. `tokenExpression` is a shell expression for the root token. */
  firstCommands?(url: string, tokenExpression: string): readonly FirstCommand[];
}

export type OverviewCard = "gateway" | "webhooks" | "agents" | "tags";

export interface FirstCommand {
  readonly title: string;
  readonly command: string;
}
