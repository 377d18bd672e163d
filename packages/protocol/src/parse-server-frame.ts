/** Parses the frames of a server. Other text is a message of the agent, which can have any shape. */
import type { ServerFrame } from "./agent-frames.ts";

/** Parses a server frame. Null if the text is a message of the agent. */
export function parseServerFrame(text: string): ServerFrame | null {
  if (text.charCodeAt(0) !== 0x7b) return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const frame = value as Record<string, unknown>;
  return isServerFrame(frame) ? (frame as unknown as ServerFrame) : null;
}

function isServerFrame(frame: Record<string, unknown>): boolean {
  switch (frame["type"]) {
    case "cf_agent_identity":
      return typeof frame["name"] === "string" && typeof frame["agent"] === "string";
    case "cf_agent_state":
      return Object.hasOwn(frame, "state");
    case "cf_agent_state_error":
      return typeof frame["error"] === "string";
    case "rpc":
      return typeof frame["id"] === "string" && isRpcOutcome(frame);
    default:
      return false;
  }
}

function isRpcOutcome(frame: Record<string, unknown>): boolean {
  return frame["success"] === true ? typeof frame["done"] === "boolean" : typeof frame["error"] === "string";
}

/** WebSocket close codes after which a client must not reconnect: policy violation and the application range. */
export function isFinalCloseCode(code: number): boolean {
  return code === 1008 || (code >= 4000 && code <= 4999);
}
