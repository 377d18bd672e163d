/**
 * The last response of a connection that has no response object: refused handshakes, CONNECT, bytes that are not HTTP.
 *
 * Invariant: the connection ends in bounded time, whatever the peer sends or does not read. No code reads a connection that node:http has handed over: with one
 * unread byte in its buffer Node never reports that the peer has left, and the connection, its descriptor and its place among
 * `maxConnections` would stay until the process ends.
 */
import type { Duplex } from "node:stream";
import { afterAwakeTime } from "../../core/awake-time.ts";

/** For the whole response to leave. Errors leave at once; what a program answers may be large, and its reader slow. */
const SENDING_MS = 30_000;
/** A few round trips on a slow connection: a connection that is cut while bytes arrive is reset, and the peer may lose the response. */
const LINGERING_MS = 1000;

/** Sends a complete response, and closes the connection. What the peer still sends is discarded. */
export function sendFinalAnswer(socket: Duplex, answer: string | Uint8Array): void {
  if (socket.destroyed) return;
  const cut = () => socket.destroy();
  socket.on("error", cut);
  let cancel = afterAwakeTime(SENDING_MS, cut);
  socket.end(answer, () => {
    cancel();
    cancel = afterAwakeTime(LINGERING_MS, cut);
  });
  socket.once("close", () => cancel());
  socket.resume();
}
