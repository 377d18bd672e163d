/** What a program knows of the service that it has started. */
import type { RootToken } from "../accounts/index.ts";
import type { FirstCommand } from "../area-module.ts";

export interface Service {
  /** Address of the traffic. */
  readonly url: string;
  /** Address of the dashboard and the management interface; equal to `url` unless configured otherwise. */
  readonly adminUrl: string;
  /** Security warnings; empty if only this machine can reach the service. */
  readonly warnings: readonly string[];
  readonly rootToken: RootToken;
  /** Commands that can be pasted into a shell. */
  readonly firstCommands: readonly FirstCommand[];
  /** Creates a link that logs in a browser as root. It is valid once, for ten minutes. */
  createLoginLink(): Promise<string>;
  /** Reads the TLS certificate and its key again. Wrong files are logged, and the earlier ones stay in use. */
  reloadCertificate(): void;
  /** Stops; a second call returns the same promise. Default: in order. */
  stop(manner?: StopManner): Promise<void>;
}

/**
 * `in order`: accepts connections until load balancers have noticed. `replaced`: accepts none, because another process of this machine does; those that
 * are open end with their next response. `urgently`: waits for nobody but running requests.
 */
export type StopManner = "in order" | "replaced" | "urgently";
