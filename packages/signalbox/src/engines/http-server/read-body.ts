import type { IncomingMessage } from "node:http";
import { SignalboxError } from "@signalbox/protocol";

/**
 * Reads a request body up to a cap. A declared length over the cap is refused without reading a byte. What arrives after a refusal
 * is not read: the connection is closed after the answer, which is cheaper than swallowing an attacker's upload.
 * The time a body may take is the listener's limit (`bodyTimeoutMs`).
 */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const declared = request.headers["content-length"];
  if (declared !== undefined && Number(declared) > maxBytes) return Promise.reject(tooLarge(maxBytes));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length > maxBytes) {
        request.removeAllListeners("data");
        request.pause();
        reject(tooLarge(maxBytes));
        return;
      }
      chunks.push(chunk);
    });
    request.once("end", () =>
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)),
    );
    // The client's doing, like every error of a request.
    request.once("error", (cause) => reject(brokeOff(cause)));
    // A body that breaks off fires `close` without `end`. Every request fires `close`, and an error costs its stack trace.
    request.once("close", () => {
      if (!request.readableEnded) reject(brokeOff());
    });
  });
}

function brokeOff(cause?: Error): SignalboxError {
  return new SignalboxError("malformed_http", { message: "The request body broke off", cause });
}

function tooLarge(maxBytes: number): SignalboxError {
  return new SignalboxError("body_too_large", {
    message: `Request body too large (maximum ${maxBytes} bytes)`,
    headers: { connection: "close" },
  });
}
