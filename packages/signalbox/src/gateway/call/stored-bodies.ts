/** The bodies of a call as the client knows them, for the log and for spans: of a translated call in the client's dialect, and without the masks of the provider. */
import type { RequestBody } from "../../engines/relay/index.ts";
import type { CallOutcome, CallStart } from "./call-start.ts";

export interface StoredBodies {
  /** Null if there is none, or if rules forbid to store it. */
  readonly request: Buffer | null;
  readonly response: Buffer | null;
  readonly isResponseWhole: boolean;
}

export function storedBodiesOf(
  start: CallStart,
  { step, body, isComplete, responseBytes, head }: CallOutcome,
): StoredBodies {
  const request = clientBodyOf(step);
  const sent = request.kind === "whole" ? request.bytes : request.kind === "streamed" ? request.start : null;
  const isResponseWhole = isComplete && body.length === responseBytes;
  const masked = start.guard?.storedBodies ?? null;
  if (masked === null) return { request: sent, response: body, isResponseWhole };
  const contentType = start.request.headers["content-type"] ?? "";
  return {
    request: request.kind === "whole" ? masked.request({ bytes: request.bytes, contentType }) : null,
    response: masked.response(isResponseWhole ? { bytes: body, contentType: head?.contentType ?? "" } : null),
    isResponseWhole,
  };
}

export function clientBodyOf({ translation, unmasked, upstream }: CallOutcome["step"]): RequestBody {
  return translation?.request ?? unmasked ?? upstream.body;
}
