/**
 * How a class judges HTTP requests before they reach an instance: `static admitRequest(request, context)`. A request that is refused here
 * creates no instance and occupies none.
 */
import type { AgentEnvironment } from "./agent-host.ts";

export interface AdmissionContext {
  /** The account of the instance. */
  readonly account: string;
  /** Name of the instance that the request is for, whether or not it exists. */
  readonly name: string;
  readonly env: AgentEnvironment;
  /** What `agents.authorize` returned as `props`. */
  readonly props?: unknown;
  /** The whole body of the request. */
  readonly body: Uint8Array;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** A response is sent instead of the instance's. */
export type AdmissionAnswer = void | Response | undefined;
