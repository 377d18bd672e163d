import type { StopReason } from "../neutral/response.ts";

/** Several providers of this shape report `stop` although the model called tools. */
export function decodeFinishReason(reason: unknown, hasCalls: boolean): StopReason {
  switch (reason) {
    case "length":
      return "length";
    case "tool_calls":
    case "function_call":
      return "tool_calls";
    case "content_filter":
      return "refusal";
    default:
      return hasCalls ? "tool_calls" : "stop";
  }
}

/** A refusal that the model wrote itself is a normal answer with `refusal` in place of `content`. */
export function encodeFinishReason(reason: StopReason, hasRefusal: boolean): string {
  switch (reason) {
    case "stop":
    case "stop_sequence":
    case "pause":
      return "stop";
    case "length":
    case "context_window":
      return "length";
    case "tool_calls":
      return "tool_calls";
    case "refusal":
      return hasRefusal ? "stop" : "content_filter";
  }
}
