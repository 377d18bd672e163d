/** Reads the body of a call, and turns what can go wrong into errors of the gateway. */
import { SignalboxError } from "@signalbox/protocol";
import { overloaded } from "../../core/overload.ts";
import type { BodyFailure, BodyLimits } from "../../engines/http-server/index.ts";
import type { RequestBody } from "../../engines/relay/index.ts";
import type { CallRunner } from "../call/call-runner.ts";
import type { Arrival } from "../call/call-start.ts";
import type { CallShare } from "../step/call-share.ts";
import { malformed } from "../step/malformed.ts";
import { callerShare, LONG_BODY, type ShareParts } from "../call/caller-share.ts";

export interface BodyParts extends ShareParts {
  readonly bodyLimits: Required<Omit<BodyLimits, "share">>;
  readonly runner: CallRunner;
}

const CLOSE = { connection: "close" };

/** Calls one of the functions, once: with a body that may still be arriving, or with the reason why there is none. */
export function receiveBody(
  parts: BodyParts,
  arrival: Arrival,
  onBody: (body: RequestBody) => void,
  refuse: (error: SignalboxError) => void,
): void {
  const { bodyLimits, runner } = parts;
  const { response, context, memory } = arrival;
  let isRead = false;
  context.receiveBody(
    { ...bodyLimits, share: memory },
    {
      onBody(body) {
        isRead = true;
        const bytes = body.kind === "whole" ? body.bytes.length : 0;
        if (bytes < LONG_BODY) onBody(body);
        else callerShare(parts, arrival).beginWork(bytes, () => onBody(body));
      },
      onFailure(failure) {
        const error = toBodyError(failure, bodyLimits.maxBytes);
        // A streamed body that exceeds its limit ends the call that is under way.
        if (isRead) runner.refuse(response, error);
        else refuse(error);
      },
    },
  );
}

/** A body that is read twice, and so must be in memory twice. */
export async function readWholeBody(arrival: Arrival, share: CallShare, maxBytes: number): Promise<Buffer> {
  const { context, memory } = arrival;
  const body = await new Promise<RequestBody>((resolve, reject) => {
    context.receiveBody(
      { maxBytes, share: memory },
      { onBody: resolve, onFailure: (failure) => reject(toBodyError(failure, maxBytes)) },
    );
  });
  if (body.kind !== "whole") throw malformed("The body must be an array of steps");
  const { bytes } = body;
  if (!share.holdMemory(bytes.length)) throw toBodyError("no_room", maxBytes);
  await new Promise<void>((resolve) => share.beginWork(bytes.length, resolve));
  return bytes;
}

export function toBodyError(failure: BodyFailure, maxBytes: number): SignalboxError {
  switch (failure) {
    case "too_large":
      return new SignalboxError("gateway_body_too_large", {
        message: `Request body too large (maximum ${maxBytes} bytes)`,
      });
    case "no_room":
      return overloaded(undefined, CLOSE);
    case "too_slow":
      return new SignalboxError("request_timeout", {
        message: "The request body arrived too slowly",
        headers: CLOSE,
      });
    case "broken_off":
      return malformed("The request body broke off");
    case "unsupported_coding":
      return malformed("Transfer-Encoding must be chunked; compress a body with Content-Encoding");
  }
}
