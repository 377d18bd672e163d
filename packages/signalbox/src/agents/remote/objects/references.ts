/** What the two sides of a session offer each other beside plain data. */
import type { ObjectAddress } from "../../objects/object-calls.ts";
import type { CallTarget } from "../../objects/rpc-stub.ts";
import type { WorkerWebSocket } from "../../objects/web-socket.ts";

/** The number of something that one side offers to the other. */
export type Reference = number;

/** Makes values of this side usable on the other. */
export interface Offers {
  /** The other side can find objects by their addresses; otherwise it gets references. */
  readonly sharesObjects: boolean;
  /** `onRelease` is called once, when the other side needs the target no more. */
  target(target: CallTarget, onRelease: (wasDisposed: boolean) => void): Reference;
  signal(signal: AbortSignal): Reference;
  socket(webSocket: WorkerWebSocket): Reference;
}

/** What the other side offered. */
export interface Finds {
  target(reference: Reference): CallTarget;
  signal(reference: Reference): AbortSignal;
  socket(reference: Reference): WorkerWebSocket;
  object(address: ObjectAddress): object;
}
