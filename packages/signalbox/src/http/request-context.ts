/** One request as areas see it beside node:http's own objects: its id, its target, its trace, and a bounded way to read the body. */
import type { IncomingMessage } from "node:http";
import { type TraceContext, continueTrace } from "../telemetry/trace-context.ts";
import {
  type BodyReceiver,
  type HeldMemory,
  readBody,
  TrackedRequest,
} from "../engines/http-server/index.ts";
import type { RequestTarget } from "./request-target.ts";
import { decodeSegments } from "./request-target.ts";

export type { BodyReceiver };
export type { MemoryBudget } from "../engines/http-server/index.ts";

export class RequestContext {
  /** Sent back as `x-request-id`. */
  readonly id: string;
  readonly path: string;
  readonly query: string;
  /** What the request takes of shared budgets until its answer has left. */
  readonly memory: HeldMemory;
  readonly #request: IncomingMessage;
  #segments: readonly string[] | undefined;
  #trace: TraceContext | undefined;

  constructor(id: string, target: RequestTarget, request: IncomingMessage, memory: HeldMemory) {
    this.id = id;
    this.path = target.path;
    this.query = target.query;
    this.memory = memory;
    this.#request = request;
  }

  /** Decoded path segments; throws `invalid_request` for a path that does not decode. */
  get segments(): readonly string[] {
    this.#segments ??= decodeSegments(this.path);
    return this.#segments;
  }

  /** Made on first use: the hot paths that pass no trace on pay nothing. */
  get trace(): TraceContext {
    this.#trace ??= continueTrace(this.#request.headers["traceparent"] as string | undefined);
    return this.#trace;
  }

  /** Gives a body that is small enough to the receiver without a stream between; false where that cannot be done any more. */
  collectBody(receiver: BodyReceiver): boolean {
    return this.#request instanceof TrackedRequest && this.#request.collect(receiver);
  }

  /** Ends what `collectBody` began: nothing more is collected, and what was is dropped. The receiver hears nothing more. */
  stopCollecting(): void {
    if (this.#request instanceof TrackedRequest) this.#request.stopCollecting();
  }

  /** The whole body; throws `body_too_large` as soon as it is known to exceed `maxBytes`. */
  readBody(maxBytes: number): Promise<Buffer> {
    return readBody(this.#request, maxBytes);
  }
}
