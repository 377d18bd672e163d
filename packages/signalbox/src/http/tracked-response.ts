/**
 * node:http's response with what the dispatch keeps per request: the id every answer carries, and what is measured at its end.
 *
 * The id is added inside `writeHead`, not with `setHeader` before it: a response that has headers set takes node's slow path for
 * all of them, which cost more than everything else the dispatch does.
 */
import { type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { TrackedRequest } from "./tracked-request.ts";

type HeaderList = OutgoingHttpHeaders | OutgoingHttpHeader[];

/** Shared by all responses of a listener, so that one store reaches those that are still being made. */
export interface ListenerState {
  isDraining: boolean;
}

export class TrackedResponse extends ServerResponse<TrackedRequest> {
  requestId = "";
  area = "none";
  startedAt = 0;
  listener: ListenerState | null = null;

  override writeHead(statusCode: number, reason?: string | HeaderList, headers?: HeaderList): this {
    if (this.listener?.isDraining === true) this.shouldKeepAlive = false;
    if (typeof reason === "string")
      return super.writeHead(statusCode, reason, withId(headers, this.requestId));
    return super.writeHead(statusCode, withId(reason ?? headers, this.requestId));
  }
}

/** An id among the headers wins: a relayed answer keeps the one of whoever made it. */
function withId(headers: HeaderList | undefined, id: string): HeaderList {
  if (id === "") return headers ?? {};
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
