import type { StopReason } from "../neutral/response.ts";

const REFUSALS = new Set([
  "SAFETY",
  "RECITATION",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "IMAGE_SAFETY",
  "IMAGE_PROHIBITED_CONTENT",
  "IMAGE_RECITATION",
  "LANGUAGE",
]);

/** `STOP` also ends an answer that calls functions. */
export function decodeGeminiFinish(reason: unknown, hasCalls: boolean): StopReason {
  if (reason === "MAX_TOKENS") return "length";
  if (typeof reason === "string" && REFUSALS.has(reason)) return "refusal";
  return hasCalls ? "tool_calls" : "stop";
}

export function encodeGeminiFinish(reason: StopReason): string {
  if (reason === "length" || reason === "context_window") return "MAX_TOKENS";
  return reason === "refusal" ? "SAFETY" : "STOP";
}
