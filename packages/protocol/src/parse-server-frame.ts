/** The client's side of reading frames: strict about shape, silent about what is not ours (an agent's own messages look like anything). */
import type { ServerFrame } from "./agent-frames.ts";

/** The server frame in a text, or null when the text is a message of the agent's own code. */
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

/** WebSocket close codes after which coming back is pointless: policy violation, and the application's own range. */
export function isFinalCloseCode(code: number): boolean {
  return code === 1008 || (code >= 4000 && code <= 4999);
}
