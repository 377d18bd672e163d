/**
 * Reads a delivery's body within three limits: its own size, the time it may take, and the room all bodies share.
 *
 * The room of a body that arrived is the caller's to give back; a body that did not has given it back already.
 * After a refusal nothing more is read and the connection is closed: swallowing the rest of an upload is work for an attacker.
 */
import type { HttpRequest } from "../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import { type Admission, overloaded } from "./admission.ts";
import { deadlinesOf } from "./deadlines.ts";

export interface BodyLimits {
  readonly maxBodyBytes: number;
  readonly bodyTimeoutMs: number;
}

const CLOSE = { connection: "close" };

/** A declared length over the cap is known before a byte is read. */
export function refuseDeclaredSize(request: HttpRequest, maxBytes: number): void {
  const declared = request.headers["content-length"];
  if (declared !== undefined && Number(declared) > maxBytes) throw tooLarge(maxBytes);
}

export function readDeliveryBody(
  request: HttpRequest,
  limits: BodyLimits,
  admission: Admission,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let isSettled = false;
    const deadline = deadlinesOf(limits.bodyTimeoutMs).add(() =>
      fail(new SignalboxError("request_timeout", { headers: CLOSE })),
    );
    const settle = () => {
      isSettled = true;
      deadline.cancel();
    };
    const fail = (error: unknown) => {
      if (isSettled) return;
      settle();
      admission.releaseBytes(length);
      request.removeAllListeners("data");
      request.pause();
      reject(error);
    };
    request.on("data", (chunk: Buffer) => {
      if (length + chunk.length > limits.maxBodyBytes) return fail(tooLarge(limits.maxBodyBytes));
      if (!admission.reserveBytes(chunk.length)) return fail(overloaded(CLOSE));
      length += chunk.length;
      chunks.push(chunk);
    });
    // `on` for what comes once: everything here looks at `isSettled`, and the wrappers of `once` cost more than that.
    request.on("end", () => {
      if (isSettled) return;
      settle();
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, length));
    });
    // A body that breaks off fails or closes without an end. Every request closes some day: errors are made only where they matter.
    const breakOff = (cause?: unknown) => {
      if (!isSettled)
        fail(new SignalboxError("malformed_http", { message: "The request body broke off", cause }));
    };
    request.on("error", breakOff);
    request.on("close", breakOff);
  });
}

function tooLarge(maxBytes: number): SignalboxError {
  return new SignalboxError("body_too_large", {
    message: `Request body too large (maximum ${maxBytes} bytes)`,
    headers: CLOSE,
  });
}
