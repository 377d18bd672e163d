/** The body of a program's `Response` on the network, at the client's pace. A client that disconnects cancels the body. */

/** A response, or the connection itself. */
interface Receiver extends NodeJS.WritableStream {
  readonly headersSent?: boolean;
  readonly destroyed: boolean;
  destroy(): unknown;
}

/**
 * `length`: what the head of the response says; null if it says nothing, so that node:http frames the pieces. A body of any other length would be read as part of
 * the next response of the connection, or swallow it: the connection is cut instead.
 *
 * Resolves when all of it was written, and the receiver is to be ended. Rejects if the body fails; a response that has begun is then cut.
 */
export async function relayStream(
  body: ReadableStream<Uint8Array>,
  to: Receiver,
  length: number | null,
): Promise<void> {
  const reader = body.getReader();
  // A body that cannot be cancelled has already ended or failed.
  to.once("close", () => void reader.cancel().catch(() => undefined));
  let sent = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || to.destroyed) break;
      sent += Buffer.byteLength(value);
      if (length !== null && sent > length) throw new Error(`the body is longer than ${length} bytes`);
      if (!to.write(value)) await drained(to);
    }
    if (length !== null && sent < length && !to.destroyed)
      throw new Error(`the body has ${sent} of ${length} bytes`);
  } catch (error) {
    if (to.headersSent !== false) to.destroy();
    throw error;
  }
}

/** Resolves when more can be written, or when the response is closed. */
function drained(to: Receiver): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      to.off("drain", end);
      to.off("close", end);
      resolve();
    };
    to.on("drain", end);
    to.on("close", end);
  });
}
