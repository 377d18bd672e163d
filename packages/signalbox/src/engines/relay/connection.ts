/**
 * One connection to an upstream server, carrying one call at a time.
 *
 * States: connecting → busy ⇄ idle → closed, and idle → checking → busy.
 *   connecting/idle → busy: `send`; idle → checking: `send` after a pause, until a close by the server would have been read;
 *   busy → idle: request and response are complete and both sides keep the connection; any → closed: error, end of stream, timeout,
 *   `destroy`.
 *
 * The socket's timer always belongs to the current state: connect, first byte, stall, idle. The rules for using a connection again and
 * for sending a request again are invariants 2 and 3 of the README.
 * See docs/decisions/0072.
 */
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { lookup } from "node:dns";
import { createPublicLookup } from "../ip-address/index.ts";
import { type ResponseEvents, ResponseParser } from "./response-parser.ts";
import type { RequestBody } from "../../core/request-body.ts";
import { type Origin, UpstreamFailure, type UpstreamRequest, type UpstreamTimeouts } from "./upstream.ts";

/** The part of a connection that the carried call controls. */
export interface Carrier {
  pause(): void;
  resume(): void;
  destroy(): void;
}

/** A call as its connection sees it. */
export interface CarriedCall extends ResponseEvents {
  readonly request: UpstreamRequest;
  readonly isEnded: boolean;
  readonly isPaused: boolean;
  attach(carrier: Carrier): void;
  onReadEnd(): void;
  fail(failure: UpstreamFailure): void;
}

export interface ConnectionOwner {
  readonly timeouts: UpstreamTimeouts;
  /** TLS session of the origin, to resume. */
  session: Buffer | undefined;
  onIdle(connection: Connection): void;
  /** The server has sent bytes for which there was no request. */
  onStrayBytes(): void;
  onClosed(connection: Connection): void;
  /** Sends the call over a new connection. */
  resend(call: CarriedCall): void;
}

/** Response headers of known providers stay below 10 KB. */
const MAX_HEAD_BYTES = 64 * 1024;
/** Bodies up to this size are copied behind the header block: one buffer to write costs less than two. */
const JOIN_BYTES = 64 * 1024;
/** Subtracted from the idle time that a server announces, so that this side closes first. */
const IDLE_MARGIN_MS = 1000;
/**
 * A connection that was idle for longer is checked before it is used: one turn of the event loop shows a close that has arrived and was
 * not read yet. Connections under load are younger and skip the check.
 */
const CHECK_AFTER_MS = 50;
/** RFC 9110, section 9.2.2. */
const IDEMPOTENT: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);

export class Connection {
  readonly #owner: ConnectionOwner;
  readonly #socket: Socket;
  readonly #parser = new ResponseParser(MAX_HEAD_BYTES);
  #call: CarriedCall | null = null;
  #state: "connecting" | "busy" | "idle" | "checking" | "closed" = "connecting";
  #idleSince = 0;
  #isRequestWritten = false;
  /** Whether a byte of the request may have reached the server. */
  #mayHaveArrived = false;
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

  send(call: CarriedCall): void {
    this.#call = call;
    this.#hasResponseByte = false;
    this.#isRequestWritten = false;
    this.#mayHaveArrived = false;
    call.attach(this);
    if (this.#state === "connecting") return;
    if (performance.now() - this.#idleSince > CHECK_AFTER_MS) {
      this.#state = "checking";
      // The second callback runs after the event loop has polled the socket.
      setImmediate(() => setImmediate(() => this.#writeIfOpen(call)));
      return;
    }
    this.#state = "busy";
    this.#write(call);
  }

  #writeIfOpen(call: CarriedCall): void {
    if (this.#state !== "checking" || this.#socket.destroyed) return;
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

  #write(call: CarriedCall): void {
    const { request } = call;
    this.#parser.begin(call, request.method === "HEAD");
    this.#socket.setTimeout(this.#owner.timeouts.firstByteTimeoutMs);
    const head = `${request.method} ${request.target} HTTP/1.1\r\nhost: ${request.origin.hostHeader}\r\n${headerLines(request.headers)}${framing(request.method, request.body)}\r\n`;
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
    // On a connection that the server has reset, the kernel refuses the first byte.
    this.#mayHaveArrived = this.#socket.errored === null;
  }

  /** Sends the bytes that have arrived, and the rest as it arrives, no faster than the upstream accepts it. */
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
    this.#mayHaveArrived = true;
    socket.write(head, "latin1");
    writePart(start);
    socket.on("drain", onDrain);
    rest.on("data", onData).once("end", onEnd);
    rest.resume();
  }

  #onData(data: Buffer): void {
    const call = this.#call;
    if (call === null || this.#state === "checking") {
      // Bytes without a request: the next response could not be told apart from them.
      if (!isIdleTimeout(data)) this.#owner.onStrayBytes();
      this.#socket.destroy();
      return;
    }
    if (!this.#hasResponseByte) {
      this.#hasResponseByte = true;
      this.#socket.setTimeout(
        Math.max(this.#owner.timeouts.stallTimeoutMs, call.request.stallTimeoutMs ?? 0),
      );
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
      // An early response: the server would read the rest of this request as the beginning of the next one.
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
    // A socket that stays paused after its call would not report that the server closed it.
    if (this.#socket.isPaused()) this.#socket.resume();
    this.#owner.onIdle(this);
  }

  #onTimeout(): void {
    if (this.#call !== null && this.#state !== "checking") {
      this.#error ??= this.#call.isPaused
        ? new UpstreamFailure("timeout", "the reader of the response stopped reading")
        : new UpstreamFailure(
            this.#state === "connecting" ? "unreachable" : "timeout",
            this.#state === "connecting"
              ? "connecting took too long"
              : this.#hasResponseByte
                ? "the response stalled"
                : "the server did not respond in time",
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
    if (call !== null && !call.isEnded) this.#endCall(call, wasConnecting);
    // Last, because `resend` may just have added a connection to the pool.
    this.#owner.onClosed(this);
  }

  #endCall(call: CarriedCall, wasConnecting: boolean): void {
    if (this.#mayHaveArrived && this.#error === undefined && this.#parser.finish()) return;
    if (this.#error instanceof UpstreamFailure) {
      call.fail(this.#error);
    } else if (
      this.#hasServed &&
      !this.#hasResponseByte &&
      (!this.#mayHaveArrived || mayRepeat(call.request))
    ) {
      this.#owner.resend(call);
    } else {
      call.fail(
        new UpstreamFailure(
          wasConnecting ? "unreachable" : "broken",
          wasConnecting ? "cannot connect" : "the connection was closed before the response was complete",
          this.#error,
        ),
      );
    }
  }
}

/**
 * All connections read into one buffer: its bytes are parsed and copied before the next read begins. Without it Node allocates 64 KiB
 * for each read and shrinks it afterwards.
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

const publicLookup = createPublicLookup(
  lookup,
  () => new Error("the name resolves to an address that is not public"),
);

function framing(method: string, body: RequestBody): string {
  switch (body.kind) {
    case "none":
      // RFC 9110, section 8.6: a method that usually has a body states the length 0.
      return method === "POST" || method === "PUT" || method === "PATCH" ? "content-length: 0\r\n" : "";
    case "whole":
      return `content-length: ${body.bytes.length}\r\n`;
    case "streamed":
      return body.length === null ? "transfer-encoding: chunked\r\n" : `content-length: ${body.length}\r\n`;
  }
}

function headerLines(headers: readonly string[]): string {
  let lines = "";
  for (let i = 0; i + 1 < headers.length; i += 2) lines += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return lines;
}

/** Some proxies announce with a 408 that they close an idle connection (RFC 9110, section 15.5.9). */
function isIdleTimeout(data: Buffer): boolean {
  return /^HTTP\/1\.[01] 408 /.test(data.toString("latin1", 0, 13));
}

/** Whether the server may receive the request twice (invariant 3). */
function mayRepeat({ method, headers, body }: UpstreamRequest): boolean {
  if (body.kind === "streamed") return false;
  return IDEMPOTENT.has(method) || headers.some((text, i) => i % 2 === 0 && /^idempotency-key$/i.test(text));
}
