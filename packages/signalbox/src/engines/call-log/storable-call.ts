/** A call as it may be stored: texts that callers choose are bounded, so that a row's size is; no real one is as long. */
import type { CallRecord } from "./call-log.ts";

const MAX_NAME = 256;
const MAX_PATH = 2048;
const MAX_USER_AGENT = 512;

export function storableCall(call: CallRecord): CallRecord {
  return {
    ...call,
    model: cut(call.model, MAX_NAME),
    path: cut(call.path, MAX_PATH),
    userAgent: cut(call.userAgent, MAX_USER_AGENT),
    eventId: call.eventId === null ? null : cut(call.eventId, MAX_NAME),
    // One row with broken metadata would make every filter on metadata fail.
    metadata: call.metadata !== null && isJson(call.metadata) ? call.metadata : null,
    durationMs: roundMs(call.durationMs),
    firstByteMs: call.firstByteMs === null ? null : roundMs(call.firstByteMs),
  };
}

function cut(text: string, maxLength: number): string {
  return text.length > maxLength ? text.slice(0, maxLength) : text;
}

/** What is shown is what filters compare with. */
function roundMs(ms: number): number {
  return Math.round(ms * 100) / 100;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
