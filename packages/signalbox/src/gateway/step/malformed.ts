import { SignalboxError } from "@signalbox/protocol";

export function malformed(message: string): SignalboxError {
  return new SignalboxError("gateway_malformed_request", { message });
}
