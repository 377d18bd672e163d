import { SignalboxError } from "@signalbox/protocol";

/** The refusal of a request, with the reason. */
export function invalidRequest(message: string): SignalboxError {
  return new SignalboxError("invalid_request", { message });
}
