/** A link between two processes of one machine over a socket that only they have: no handshake, and silence is no failure. */
import type { Duplex } from "node:stream";
import { Link, type LinkHandler } from "./link.ts";

/** What may wait for a process that reads slowly, before its next bytes are read. */
const MAX_QUEUED_BYTES = 16 * 1024 * 1024;

/** A side without a handler does not trust the other one, which may only respond. `onClose` is called once, when the socket has closed or the other side has sent what the protocol does not allow. */
export function linkProcesses(
  socket: Duplex,
  side: "dialler" | "listener",
  handler: LinkHandler | null,
  onClose: (reason: string) => void,
): Link {
  const link = new Link(
    socket,
    { node: "process", version: 0 },
    side,
    handler,
    (_link, { message }) => onClose(message),
    false,
  );
  const close = (message: string) => link.close({ code: "broken", message });
  socket.on("data", (chunk: Buffer) => {
    link.receive(chunk);
    // One side only: two that wait for each other would wait for ever.
    if (handler === null && link.queuedBytes > MAX_QUEUED_BYTES && !socket.isPaused()) {
      socket.pause();
      socket.once("drain", () => socket.resume());
    }
  });
  socket.on("error", (error) => close(error.message));
  socket.on("close", () => close("the process has ended"));
  return link;
}
