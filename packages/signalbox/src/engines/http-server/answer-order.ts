/**
 * Requests of one connection are answered in the order they came (RFC 9112, section 9.3.2). node:http keeps that order among its own
 * responses; what is written to the socket directly (an answer to bytes that are no request, a handshake) has to wait for them, or the
 * client takes it for the answer to an earlier request.
 */
import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** The response that node is writing, or will write next, on a connection; the only place that knows. */
type AnsweringSocket = Duplex & { readonly _httpMessage?: ServerResponse | null };

/** Runs the task when every response that is due before it has left: at once where none is. */
export function whenAnswered(socket: AnsweringSocket, task: () => void): void {
  const pending = socket._httpMessage;
  if (pending === undefined || pending === null) {
    task();
  } else if (pending.req.complete) {
    // Node puts the next response in place while this one closes.
    pending.once("close", () => setImmediate(whenAnswered, socket, task));
  } else if (pending.headersSent) {
    // The rest of this request cannot be read any more, and its answer is half written: nothing can follow it.
    socket.destroy();
  } else {
    // The bytes belong to this request, which is answered here instead.
    task();
  }
}
