import type { StopReason } from "../neutral/response.ts";

export function decodeStopReason(reason: unknown): StopReason {
  switch (reason) {
    case "stop_sequence":
      return "stop_sequence";
    case "max_tokens":
      return "length";
    case "model_context_window_exceeded":
      return "context_window";
    case "tool_use":
      return "tool_calls";
    case "refusal":
      return "refusal";
    case "pause_turn":
      return "pause";
    default:
      return "stop";
  }
}

const NAMES: Readonly<Record<StopReason, string>> = {
  stop: "end_turn",
  stop_sequence: "stop_sequence",
  length: "max_tokens",
  context_window: "model_context_window_exceeded",
  tool_calls: "tool_use",
  refusal: "refusal",
  pause: "pause_turn",
};

export function encodeStopReason(reason: StopReason): string {
  return NAMES[reason];
}
