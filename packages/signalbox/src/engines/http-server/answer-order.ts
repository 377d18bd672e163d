/**
 * Responses of one connection leave in the order of their requests (RFC 9112, section 9.3.2). node:http keeps that order among its own
 * responses. Bytes that are written to the socket directly (the refusal of malformed HTTP, a WebSocket handshake) wait for them here, or the
 * client would take those bytes for the response to an earlier request.
 */
import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** `_httpMessage` is the response that Node writes now or next on the connection; no public property has it. */
type AnsweringSocket = Duplex & { readonly _httpMessage?: ServerResponse | null };

/** Runs the task when every earlier response has been sent: at once when there is none. */
export function whenAnswered(socket: AnsweringSocket, task: () => void): void {
  const pending = socket._httpMessage;
  if (pending === undefined || pending === null) {
    task();
  } else if (pending.req.complete) {
    // Node assigns the next response to the socket while this one closes.
    pending.once("close", () => setImmediate(whenAnswered, socket, task));
  } else if (pending.headersSent) {
    // The rest of this request cannot be read and its response is half written: nothing can follow it.
    socket.destroy();
  } else {
    // The bytes belong to this request, which the task answers.
    task();
  }
}
