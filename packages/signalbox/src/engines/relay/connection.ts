/**
 * One connection to an upstream, carrying one call at a time.
 *
 * States: connecting → busy ⇄ idle → closed, and idle → doubtful → busy.
 *   connecting/idle → busy: `send`; idle → doubtful: `send` after a while, until the server's close would have been seen;
 *   busy → idle: response and request complete and both sides may go on; any → closed: error, end of stream, timeout, `destroy`.
 *
 * Invariants:
 * 1. A connection is idle only when the response ended exactly where the bytes did and the kernel has the whole request.
 * 2. A call is sent again elsewhere only if this connection had served before, not one byte of the response came, and sending it twice
 *    does no harm: none of its bytes had left, its method is idempotent, or it carries an idempotency key. That a server closed an idle
 *    connection as we picked it, and that it died while it worked on the request, look the same from here.
 * 3. The socket's timer always belongs to the present state: connect, first byte, stall, idle.
 */
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { lookup } from "node:dns";
import { createPublicLookup } from "../ip-address/index.ts";
import type { Origin } from "./origin.ts";
import type { RequestBody } from "./request-body.ts";
import { ResponseParser } from "./response-parser.ts";
import { mayRepeat, type UpstreamCall } from "./upstream-call.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

export interface UpstreamTimeouts {
  readonly connectTimeoutMs: number;
  /** From the request to the response's head. */
  readonly firstByteTimeoutMs: number;
  /** Between two reads of a response, and between two reads by a slow client. */
  readonly stallTimeoutMs: number;
  /** How long an idle connection is kept; shorter when the server announces less. */
  readonly idleTimeoutMs: number;
}

export interface ConnectionOwner {
  readonly timeouts: UpstreamTimeouts;
  /** TLS session of the origin, to resume. */
  session: Buffer | undefined;
  onIdle(connection: Connection): void;
  onClosed(connection: Connection): void;
  /** Sends the call over a fresh connection. */
  resend(call: UpstreamCall): void;
}

/** Response headers of providers stay below 10 KB; the rest is room. */
const MAX_HEAD_BYTES = 64 * 1024;
/** Bodies up to this size are copied behind the header block: one buffer to write is cheaper than two. */
const JOIN_BYTES = 64 * 1024;
/** A server's announced idle time is cut by this, so that we close first. */
const IDLE_MARGIN_MS = 1000;
/**
 * A connection that was idle for longer is looked at once more before it is used: a close that has arrived but was not read yet shows.
 * Connections under load are younger, so they pay nothing.
 */
const DOUBT_AFTER_MS = 50;

export class Connection {
  readonly #owner: ConnectionOwner;
  readonly #socket: Socket;
  readonly #parser = new ResponseParser(MAX_HEAD_BYTES);
  #call: UpstreamCall | null = null;
  #state: "connecting" | "busy" | "idle" | "doubtful" | "closed" = "connecting";
  #idleSince = 0;
  #isRequestWritten = false;
  /** Whether a byte of the request may have reached the server. */
  #hasLeft = false;
  #hasResponseByte = false;
  #hasServed = false;
  #error: Error | undefined;
  #stopUpload: (() => void) | null = null;

  constructor(owner: ConnectionOwner, origin: Origin) {
    this.#owner = owner;
    this.#socket = openSocket(origin, owner.session, (data) => this.#onData(data));
    this.#socket.setNoDelay(true);
    this.#socket.setTimeout(owner.timeouts.connectTimeoutMs);
    this.#socket.on(origin.isTls ? "secureConnect" : "connect", () => this.#onConnected());
    this.#socket.on("session", (session: Buffer) => (owner.session = session));
    this.#socket.on("timeout", () => this.#onTimeout());
    this.#socket.on("error", (error) => (this.#error ??= error));
    this.#socket.on("end", () => this.#socket.destroy());
    this.#socket.on("close", () => this.#onClose());
  }

  send(call: UpstreamCall): void {
    this.#call = call;
    this.#hasResponseByte = false;
    this.#isRequestWritten = false;
    this.#hasLeft = false;
    call.attach(this);
    if (this.#state === "connecting") return;
    if (performance.now() - this.#idleSince > DOUBT_AFTER_MS) {
      this.#state = "doubtful";
      // The second one comes after the loop has asked the kernel for news.
      setImmediate(() => setImmediate(() => this.#trust(call)));
      return;
    }
    this.#state = "busy";
    this.#write(call);
  }

  #trust(call: UpstreamCall): void {
    if (this.#state !== "doubtful" || this.#socket.destroyed) return;
    this.#state = "busy";
    this.#write(call);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #onConnected(): void {
    this.#state = "busy";
    const call = this.#call;
    if (call === null || call.isEnded) {
      this.#socket.destroy();
      return;
    }
    this.#write(call);
  }

  #write(call: UpstreamCall): void {
    const { request } = call;
    this.#parser.begin(call, request.method === "HEAD");
    this.#socket.setTimeout(this.#owner.timeouts.firstByteTimeoutMs);
    const head = `${request.method} ${request.target} HTTP/1.1\r\nhost: ${request.origin.hostHeader}\r\n${request.headerLines}${framing(request.method, request.body)}\r\n`;
    if (request.body.kind === "streamed") {
      this.#upload(head, request.body);
      return;
    }
    if (request.body.kind === "none" || request.body.bytes.length === 0) {
      this.#socket.write(head, "latin1");
    } else if (request.body.bytes.length <= JOIN_BYTES) {
      const joined = Buffer.allocUnsafe(head.length + request.body.bytes.length);
      joined.write(head, 0, "latin1");
      request.body.bytes.copy(joined, head.length);
      this.#socket.write(joined);
    } else {
      this.#socket.cork();
      this.#socket.write(head, "latin1");
      this.#socket.write(request.body.bytes);
      this.#socket.uncork();
    }
    this.#isRequestWritten = true;
    // The kernel refuses the very first byte on a connection that the server has reset.
    this.#hasLeft = this.#socket.errored === null;
  }

  /** Sends what has arrived and goes on as the client sends, no faster than the upstream takes it. */
  #upload(head: string, body: RequestBody & { kind: "streamed" }): void {
    const socket = this.#socket;
    const { rest, start } = body;
    const isChunked = body.length === null;
    const writePart = (part: Buffer): boolean => {
      if (part.length === 0) return true;
      if (!isChunked) return socket.write(part);
      socket.cork();
      socket.write(`${part.length.toString(16)}\r\n`, "latin1");
      socket.write(part);
      const hasRoom = socket.write("\r\n", "latin1");
      socket.uncork();
      return hasRoom;
    };
    const onData = (part: Buffer) => {
      if (!writePart(part)) rest.pause();
    };
    const onDrain = () => rest.resume();
    const onEnd = () => {
      if (isChunked) socket.write("0\r\n\r\n", "latin1");
      this.#isRequestWritten = true;
      this.#stopUpload?.();
    };
    this.#stopUpload = () => {
      rest.off("data", onData).off("end", onEnd);
      socket.off("drain", onDrain);
      this.#stopUpload = null;
    };
    this.#hasLeft = true;
    socket.write(head, "latin1");
    writePart(start);
    socket.on("drain", onDrain);
    rest.on("data", onData).once("end", onEnd);
    rest.resume();
  }

  #onData(data: Buffer): void {
    const call = this.#call;
    if (call === null || this.#state === "doubtful") {
      // Bytes nobody asked for: whatever they are, the next response could not be told from them.
      this.#socket.destroy();
      return;
    }
    if (!this.#hasResponseByte) {
      this.#hasResponseByte = true;
      this.#socket.setTimeout(this.#owner.timeouts.stallTimeoutMs);
    }
    try {
      this.#parser.push(data);
    } catch (error) {
      this.#error ??= error as Error;
      this.#socket.destroy();
      return;
    }
    if (this.#parser.isDone) this.#onResponseEnd();
    else call.onReadEnd();
  }

  #onResponseEnd(): void {
    this.#call = null;
    this.#stopUpload?.();
    if (
      !this.#isRequestWritten ||
      // An early answer: the rest of the request would be read as the beginning of the next one.
      this.#socket.writableLength > 0 ||
      !this.#parser.canReuse ||
      this.#state !== "busy"
    ) {
      this.#socket.destroy();
      return;
    }
    this.#state = "idle";
    this.#idleSince = performance.now();
    this.#hasServed = true;
    const { idleTimeoutMs } = this.#owner.timeouts;
    const announced = this.#parser.keepAliveMs;
    const idleMs =
      announced === null ? idleTimeoutMs : Math.min(idleTimeoutMs, Math.max(announced - IDLE_MARGIN_MS, 1));
    this.#socket.setTimeout(idleMs);
    // A pause for the last client must not outlive its call, or the end of the connection would go unseen.
    if (this.#socket.isPaused()) this.#socket.resume();
    this.#owner.onIdle(this);
  }

  #onTimeout(): void {
    if (this.#call !== null && this.#state !== "doubtful") {
      this.#error ??= this.#call.isPaused
        ? new UpstreamFailure("timeout", "the client stopped reading")
        : new UpstreamFailure(
            this.#state === "connecting" ? "unreachable" : "timeout",
            this.#state === "connecting"
              ? "no connection in time"
              : this.#hasResponseByte
                ? "the response stalled"
                : "no response in time",
          );
    }
    this.#socket.destroy();
  }

  #onClose(): void {
    const wasConnecting = this.#state === "connecting";
    this.#state = "closed";
    this.#stopUpload?.();
    const call = this.#call;
    this.#call = null;
    if (call !== null && !call.isEnded) this.#settle(call, wasConnecting);
    // Last, so that a pool that is about to be used again does not look empty.
    this.#owner.onClosed(this);
  }

  #settle(call: UpstreamCall, wasConnecting: boolean): void {
    if (this.#hasLeft && this.#error === undefined && this.#parser.finish()) return;
    if (this.#error instanceof UpstreamFailure) {
      call.fail(this.#error);
    } else if (this.#hasServed && !this.#hasResponseByte && (!this.#hasLeft || mayRepeat(call.request))) {
      this.#owner.resend(call);
    } else {
      call.fail(
        new UpstreamFailure(
          wasConnecting ? "unreachable" : "broken",
          wasConnecting ? "cannot connect" : "the connection broke off",
          this.#error,
        ),
      );
    }
  }
}

/**
 * Reads of all connections go into one buffer: it is emptied before the next read begins, since what is passed on is copied. Node
 * would allocate 64 KiB for each read and then shrink it.
 */
const READ_BUFFER = Buffer.allocUnsafeSlow(64 * 1024);

function openSocket(origin: Origin, session: Buffer | undefined, onData: (data: Buffer) => void): Socket {
  const options = {
    onread: {
      buffer: READ_BUFFER,
      callback(length: number, buffer: Uint8Array) {
        onData((buffer as Buffer).subarray(0, length));
        return true;
      },
    },
    host: origin.hostname,
    port: origin.port,
    keepAlive: true,
    ...(origin.mayBePrivate ? {} : { lookup: publicLookup }),
  };
  if (!origin.isTls) return connectTcp(options);
  return connectTls({
    ...options,
    ALPNProtocols: ["http/1.1"],
    ...(isIP(origin.hostname) === 0 ? { servername: origin.hostname } : {}),
    ...(session === undefined ? {} : { session }),
  });
}

/** For addresses that did not come from the operator. */
const publicLookup = createPublicLookup(
  lookup,
  () => new Error("the name resolves to an address that is not public"),
);

function framing(method: string, body: RequestBody): string {
  switch (body.kind) {
    case "none":
      // A method that usually has a body says so explicitly (RFC 9110, section 8.6).
      return method === "POST" || method === "PUT" || method === "PATCH" ? "content-length: 0\r\n" : "";
    case "whole":
      return `content-length: ${body.bytes.length}\r\n`;
    case "streamed":
      return body.length === null ? "transfer-encoding: chunked\r\n" : `content-length: ${body.length}\r\n`;
  }
}
