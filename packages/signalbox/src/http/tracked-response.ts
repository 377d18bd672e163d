/**
 * node:http's response with what the dispatch keeps per request: the id every answer carries, and what is measured at its end.
 *
 * The id is added inside `writeHead`, not with `setHeader` before it: a response that has headers set takes node's slow path for
 * all of them, which cost more than everything else the dispatch does.
 */
import type { OutgoingHttpHeader, OutgoingHttpHeaders } from "node:http";
import { ServerResponse } from "../core/node-http.ts";

type HeaderList = OutgoingHttpHeaders | OutgoingHttpHeader[];

/** Shared by all responses of a listener, so that one store reaches those that are still being made. */
export interface ListenerState {
  isDraining: boolean;
}

/** What the dispatch knows of one answer. */
export class Tracking {
  readonly requestId: string;
  readonly startedAt = performance.now();
  readonly listener: ListenerState;
  area = "none";

  constructor(requestId: string, listener: ListenerState) {
    this.requestId = requestId;
    this.listener = listener;
  }
}

export class TrackedResponse extends ServerResponse {
  /** One property, set by the dispatch: every further one on node's own object costs more. Missing where the dispatch is not reached. */
  declare tracking: Tracking | undefined;

  override writeHead(statusCode: number, reason?: string | HeaderList, headers?: HeaderList): this {
    const { tracking } = this;
    if (tracking?.listener.isDraining === true) this.shouldKeepAlive = false;
    if (typeof reason === "string") return super.writeHead(statusCode, reason, withId(headers, tracking));
    return super.writeHead(statusCode, withId(reason ?? headers, tracking));
  }
}

/** An id among the headers wins: a relayed answer keeps the one of whoever made it. */
function withId(headers: HeaderList | undefined, tracking: Tracking | undefined): HeaderList {
  if (tracking === undefined) return headers ?? {};
  const id = tracking.requestId;
  if (Array.isArray(headers)) return hasId(headers) ? headers : [...headers, "x-request-id", id];
  return { "x-request-id": id, ...headers };
}

function hasId(headers: readonly OutgoingHttpHeader[]): boolean {
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i];
    if (typeof name === "string" && name.length === 12 && name.toLowerCase() === "x-request-id") return true;
  }
  return false;
}
