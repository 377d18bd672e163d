/**
 * Responses of one connection are sent in the order of their requests (RFC 9112, section 9.3.2). node:http ensures it for its own responses. Bytes
 * that are written directly to the socket (the refusal of malformed HTTP, a WebSocket handshake) wait here for earlier responses.
 * See README.md.
 */
import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** `_httpMessage` is the current or next response of the connection; there is no public property for it. */
type AnsweringSocket = Duplex & { readonly _httpMessage?: ServerResponse | null };

/** Runs the task when all earlier responses have been sent; immediately if there are none. */
export function whenAnswered(socket: AnsweringSocket, task: () => void): void {
  const pending = socket._httpMessage;
  if (pending === undefined || pending === null) {
    task();
  } else if (pending.req.complete) {
    // Node assigns the next response to the socket while this one closes.
    pending.once("close", () => setImmediate(whenAnswered, socket, task));
  } else if (pending.headersSent) {
    // The rest of this request cannot be read and its response is incomplete: no other response can follow.
    socket.destroy();
  } else {
    // The bytes belong to this request, which the task answers.
    task();
  }
}
