/** Reads the body of a call, and turns what can go wrong into errors of the gateway. */
import { SignalboxError } from "@signalbox/protocol";
import type { LongWork } from "../../core/long-work.ts";
import { overloaded } from "../../core/overload.ts";
import type { BodyFailure, BodyLimits } from "../../engines/http-server/index.ts";
import type { RequestBody } from "../../engines/relay/index.ts";
import type { CallRunner } from "../call/call-runner.ts";
import type { Arrival } from "../call/call-start.ts";
import { holderOf } from "../keys/caller-token.ts";
import { malformed } from "../step/malformed.ts";

/** Parsing and translating a body of this length takes milliseconds, and the longest ones take a part of a second. */
const LONG_BODY = 256 * 1024;

export interface BodyParts {
  /** Bodies that take the event loop for long. */
  readonly longBodies: LongWork;
  readonly bodyLimits: Required<Omit<BodyLimits, "share">>;
  readonly runner: CallRunner;
}

const CLOSE = { connection: "close" };

/** Calls one of the functions, once: with a body that may still be arriving, or with the reason why there is none. */
export function receiveBody(
  { bodyLimits, runner, longBodies }: BodyParts,
  { response, context, memory, caller, gateway }: Arrival,
  onBody: (body: RequestBody) => void,
  refuse: (error: SignalboxError) => void,
): void {
  let isRead = false;
  context.receiveBody(
    { ...bodyLimits, share: memory },
    {
      onBody(body) {
        isRead = true;
        if (isLong(body)) longBodies.begin(holderOf(caller, gateway), () => onBody(body));
        else onBody(body);
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
export async function readWholeBody(
  { longBodies }: BodyParts,
  { context, memory, caller, gateway }: Arrival,
  maxBytes: number,
): Promise<Buffer> {
  const body = await new Promise<RequestBody>((resolve, reject) => {
    context.receiveBody(
      { maxBytes, share: memory },
      { onBody: resolve, onFailure: (failure) => reject(toBodyError(failure, maxBytes)) },
    );
  });
  if (body.kind !== "whole") throw malformed("The body must be an array of steps");
  if (!context.memory.hold(memory, body.bytes.length)) throw toBodyError("no_room", maxBytes);
  if (isLong(body))
    await new Promise<void>((resolve) => longBodies.begin(holderOf(caller, gateway), resolve));
  return body.bytes;
}

function isLong(body: RequestBody): boolean {
  return body.kind === "whole" && body.bytes.length >= LONG_BODY;
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
