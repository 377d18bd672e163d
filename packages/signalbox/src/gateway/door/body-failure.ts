/** The gateway's errors for request bodies that cannot be read. */
import { SignalboxError } from "@signalbox/protocol";
import { overloaded } from "../../core/overload.ts";
import type { BodyFailure } from "../../engines/http-server/index.ts";

const CLOSE = { connection: "close" };

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
      return new SignalboxError("gateway_malformed_request", { message: "The request body broke off" });
    case "unsupported_coding":
      return new SignalboxError("gateway_malformed_request", {
        message: "Transfer-Encoding must be chunked; compress a body with Content-Encoding",
      });
  }
}
