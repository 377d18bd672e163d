/** An area as the composition root uses it: its paths, its management routes, and its life cycle. */
import type { Area } from "./http/area.ts";
import type { Route } from "./http/route.ts";

export interface AreaModule {
  /** Paths outside the management interface (`/v1`, `/webhooks`, …). */
  readonly mounts: readonly Area[];
  readonly routes: readonly Route[];
  /** Called before the listener accepts connections, which waits for the promise. */
  start?(): Promise<void>;
  /** Called when the listeners are open and all areas have started: begins work that is due, which may call this server. */
  begin?(): Promise<void>;
  /**
   * This node of a cluster stops, but still serves: gives what it runs to other nodes, until the signal aborts. Not called for an urgent stop.
   */
  retire?(signal: AbortSignal): Promise<void>;
  /** How long `retire` may take for what asks for it; 0 if nothing does. */
  retireMs?(): number;
  /** Called after the listener stopped accepting connections, while requests finish. Closes connections that do not end by themselves. */
  drain?(): Promise<void>;
  /** Writes what is only in memory to the database, before a backup. */
  flush?(): Promise<void>;
  /** Called after the last request has ended: flushes and closes. */
  stop?(): Promise<void>;
  /** `stop` waits for writes of the instance store, which are paused while the disk is full. */
  readonly waitsForInstances?: boolean;
  /** Returns shell commands that are printed at the start. `url` is the address of the traffic. */
  firstCommands?(url: string, signalbox: CommandLine): readonly FirstCommand[];
}

/** Returns a line for a shell from the words after `signalbox`. */
export type CommandLine = (words: string) => string;

export type OverviewCard = "gateway" | "webhooks" | "agents" | "tags";

export interface FirstCommand {
  /** The step of the dashboard's overview that the command belongs to. */
  readonly card: OverviewCard;
  readonly title: string;
  readonly command: string;
}
