/** Reads the body of a call, and turns what can go wrong into errors of the gateway. */
import { SignalboxError } from "@signalbox/protocol";
import { overloaded } from "../../core/overload.ts";
import type { BodyFailure, BodyLimits } from "../../engines/http-server/index.ts";
import type { RequestBody } from "../../engines/relay/index.ts";
import type { CallRunner } from "../call/call-runner.ts";
import type { Arrival } from "../call/call-start.ts";
import { malformed } from "../step/malformed.ts";

export interface BodyParts {
  readonly bodyLimits: Required<Omit<BodyLimits, "share">>;
  readonly runner: CallRunner;
}

const CLOSE = { connection: "close" };

/** Calls one of the functions, once: with a body that may still be arriving, or with the reason why there is none. */
export function receiveBody(
  { bodyLimits, runner }: BodyParts,
  { response, context, memory }: Arrival,
  onBody: (body: RequestBody) => void,
  refuse: (error: SignalboxError) => void,
): void {
  let isRead = false;
  context.receiveBody(
    { ...bodyLimits, share: memory },
    {
      onBody(body) {
        isRead = true;
        onBody(body);
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
export async function readWholeBody({ context, memory }: Arrival, maxBytes: number): Promise<Buffer> {
  const body = await new Promise<RequestBody>((resolve, reject) => {
    context.receiveBody(
      { maxBytes, share: memory },
      { onBody: resolve, onFailure: (failure) => reject(toBodyError(failure, maxBytes)) },
    );
  });
  if (body.kind !== "whole") throw malformed("The body must be an array of steps");
  if (!context.memory.hold(memory, body.bytes.length)) throw toBodyError("no_room", maxBytes);
  return body.bytes;
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
