/** How long an object may let no event start: an object that waits for itself would wait for ever. As in the originals. */
import { SignalboxError } from "@signalbox/protocol";

const BLOCK_LIMIT_MS = 30_000;

/** Calls back if the block lasts too long. The returned function ends the limit. */
export function limitBlock(what: string, onTooLong: (reason: Error) => void): () => void {
  const timer = setTimeout(() => onTooLong(blockedTooLong(what)), BLOCK_LIMIT_MS);
  return () => clearTimeout(timer);
}

function blockedTooLong(what: string): Error {
  return new SignalboxError("agent_turn_timeout", {
    message: `A call to ${what}() in a Durable Object waited for too long. The call was canceled and the Durable Object was reset.`,
  });
}
