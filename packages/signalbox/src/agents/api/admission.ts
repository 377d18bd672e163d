/**
 * How a class judges HTTP requests to its instances before one exists: `static admitRequest(request, context)`. Whoever is refused here has
 * created nothing and holds up nobody.
 */
import type { AgentEnvironment } from "./agent.ts";

export interface AdmissionContext {
  /** The account of the instance. */
  readonly account: string;
  /** Name of the instance that the request is for, whether or not it exists. */
  readonly name: string;
  readonly env: AgentEnvironment;
  /** The request's whole body. */
  readonly body: Uint8Array;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** A response is the answer instead of the instance's. */
export type AdmissionAnswer = void | Response | undefined;
