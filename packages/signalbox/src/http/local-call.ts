/**
 * Calls an area from inside the process. The call passes the same code as a request from the network: credential, limits, log, metrics of the area.
 */
import type { Payer } from "../contracts/own-server.ts";
import { HeldMemory, LocalRequest, LocalResponse } from "../engines/http-server/index.ts";
import type { Area } from "./area.ts";
import { renderError, sendError, toSignalboxError } from "./render-error.ts";
import { RequestContext } from "./request-context.ts";
import { splitTarget } from "./request-target.ts";

export interface LocalCall {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
  /** Aborting it has the effect of a client that disconnects. */
  readonly signal?: AbortSignal | undefined;
  /** The answer does not leave this process. */
  readonly staysInside?: boolean | undefined;
  /** See `OwnCall`. */
  readonly chargedTo?: Payer | undefined;
}

/** Errors of the area become responses. Rejects only if the signal is aborted or the response breaks off before its head. */
export async function callArea(area: Area, requestId: string, call: LocalCall): Promise<Response> {
  call.signal?.throwIfAborted();
  const request = new LocalRequest(call.method, call.target, call.headers, call.body);
  const response = new LocalResponse();
  const memory = new HeldMemory();
  response.once("close", () => memory.release());
  const fail = (error: unknown) =>
    sendError(response, renderError(toSignalboxError(error), area.dialect, requestId));
  const abort = () => response.destroy(call.signal?.reason as Error);
  call.signal?.addEventListener("abort", abort, { once: true });
  response.once("close", () => call.signal?.removeEventListener("abort", abort));
  try {
    const context = new RequestContext(requestId, splitTarget(call.target), request, memory);
    context.staysInside = call.staysInside === true;
    context.chargedTo = call.chargedTo;
    const pending = area.handle(request, response, context);
    if (pending instanceof Promise) pending.catch(fail);
  } catch (error) {
    fail(error);
  }
  const { status, headers, body } = await response.head;
  return new Response(body, {
    status,
    headers: headers.map(([name, value]): [string, string] => [name, value]),
  });
}
