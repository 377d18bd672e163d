/**
 * Opens the provider's side of a session. A provider that refuses the handshake answers with plain HTTP, which is passed on.
 *
 * Invariant: the handshake takes at most `connectTimeoutMs`, and so does the text of a refusal, whatever the provider sends meanwhile. The time limits of `ws` and
 * of Node's responses begin again with each byte.
 */
import { lookup } from "node:dns";
import { SignalboxError } from "@signalbox/protocol";
import { type ClientOptions, WebSocket } from "ws";
import { afterAwakeTime } from "../../core/awake-time.ts";
import { createPublicLookup, isPrivateHost } from "../../engines/ip-address/index.ts";
import type { UpstreamRequest } from "../../engines/relay/index.ts";

export interface DialLimits {
  readonly connectTimeoutMs: number;
  readonly maxMessageBytes: number;
}

export type Dialled =
  /** The socket is paused. */
  | { readonly kind: "open"; readonly socket: WebSocket }
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly contentType: string;
      readonly retryAfter: string | undefined;
      readonly body: Buffer;
    }
  | { readonly kind: "failed"; readonly error: SignalboxError };

/** The text of an error is short; more of it is not passed on. */
const MAX_ERROR_BYTES = 64 * 1024;
/** How long a peer may take to answer the close frame. */
export const CLOSE_TIMEOUT_MS = 5000;

const publicLookup = createPublicLookup(
  (hostname, options, callback) => lookup(hostname, options, callback),
  (hostname) => new Error(`${hostname} has a private address`),
);

/** `signal` ends the attempt; the promise then never matters to anyone. */
export function dial(
  { origin, target, headers }: UpstreamRequest,
  protocols: readonly string[],
  { connectTimeoutMs, maxMessageBytes }: DialLimits,
  signal: AbortSignal,
): Promise<Dialled> {
  if (!origin.mayBePrivate && isPrivateHost(origin.hostname)) {
    return Promise.resolve(failed("gateway_provider_unreachable"));
  }
  const url = `${origin.isTls ? "wss" : "ws"}://${origin.hostHeader}${target}`;
  // The types of `ws` lack `closeTimeout`.
  const options: ClientOptions & { readonly closeTimeout: number } = {
    headers: toHeaders(headers),
    maxPayload: maxMessageBytes,
    // Compression takes about 300 KiB of memory per socket; sound does not become smaller.
    perMessageDeflate: false,
    closeTimeout: CLOSE_TIMEOUT_MS,
    ...(origin.mayBePrivate ? {} : { lookup: publicLookup }),
  };
  return new Promise((resolve) => {
    let socket: WebSocket;
    try {
      socket = new WebSocket(url, [...protocols], options);
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      resolve({ kind: "failed", error: new SignalboxError("gateway_malformed_request", { message }) });
      return;
    }
    const abort = () => socket.terminate();
    signal.addEventListener("abort", abort, { once: true });
    const settle = (outcome: Dialled) => {
      signal.removeEventListener("abort", abort);
      cancel();
      resolve(outcome);
    };
    let cancel = afterAwakeTime(connectTimeoutMs, () => {
      settle(failed("gateway_provider_timeout"));
      socket.terminate();
    });
    socket.once("open", () => {
      // Messages that arrive before the session listens would be lost.
      socket.pause();
      settle({ kind: "open", socket });
    });
    socket.on("error", () => settle(failed("gateway_provider_unreachable")));
    socket.once("unexpected-response", (_request, response) => {
      const chunks: Buffer[] = [];
      let length = 0;
      const finish = () => {
        settle({
          kind: "refused",
          status: response.statusCode ?? 502,
          contentType: response.headers["content-type"] ?? "text/plain",
          retryAfter: response.headers["retry-after"],
          body: Buffer.concat(chunks).subarray(0, MAX_ERROR_BYTES),
        });
        socket.terminate();
      };
      cancel();
      cancel = afterAwakeTime(connectTimeoutMs, finish);
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        length += chunk.length;
        if (length >= MAX_ERROR_BYTES) finish();
      });
      response.once("end", finish);
      response.once("error", finish);
    });
  });
}

function failed(name: "gateway_provider_unreachable" | "gateway_provider_timeout"): Dialled {
  return { kind: "failed", error: new SignalboxError(name) };
}

/** Several values of one name become one, as RFC 9110, section 5.3, allows. */
function toHeaders(list: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (let i = 0; i + 1 < list.length; i += 2) {
    const name = (list[i] ?? "").toLowerCase();
    const value = list[i + 1] ?? "";
    const before = headers[name];
    headers[name] = before === undefined ? value : `${before}, ${value}`;
  }
  return headers;
}
