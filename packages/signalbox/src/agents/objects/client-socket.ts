/** Joins an end of a pair to the WebSocket of a client outside. The frames pass as they are: no protocol of ours reads them. */
import type { Duplex } from "node:stream";
import type { RawData, WebSocket } from "ws";
import { toFrame } from "../../engines/http-server/index.ts";
import { LiveConnection } from "../connections/live-connection.ts";
import { LocalSocket } from "../../engines/http-server/index.ts";
import type { SocketHub } from "../connections/socket-hub.ts";
import { endOf, type SocketFrame } from "./web-socket.ts";

/** Messages of one client that may wait for their events; beyond it the socket is not read until half of them have ended. */
const MAX_UNANSWERED = 256;
/** Connections of worker programs are one group: their ends know which object they belong to. */
const GROUP = "\0worker";
/** The code for an end without a close frame (RFC 6455, section 7.4.1). */
const ABNORMAL = 1006;
const NO_STATUS = 1005;
const CUT = "WebSocket disconnected without sending Close frame.";

/** `end` is the `webSocket` of a response with status 101; `socket` is the connection below `webSocket`. */
export function joinClient(hub: SocketHub, end: object, webSocket: WebSocket, socket: Duplex): void {
  const group = hub.group(GROUP);
  const local = new LocalSocket(webSocket, socket, hub.limits);
  const connection = new LiveConnection(group, "", "", local, false);
  hub.addSocket(local);
  hub.add(group);
  const ours = endOf(end);
  ours.connect((frame) => {
    if (frame.kind === "message") {
      connection.write(toFrame(typeof frame.data === "string" ? frame.data : new Uint8Array(frame.data)));
    } else if (frame.code === ABNORMAL) webSocket.terminate();
    else if (frame.code === NO_STATUS) {
      connection.markClosed();
      webSocket.close();
    } else connection.closeNow(frame.code, frame.reason);
    return undefined;
  });

  let unanswered = 0;
  let isPaused = false;
  /** A socket that is not read still delivers what it has read: thousands of small messages. */
  const waiting: SocketFrame[] = [];
  const answered = () => {
    unanswered -= 1;
    if (unanswered > MAX_UNANSWERED / 2) return;
    while (unanswered < MAX_UNANSWERED) {
      const frame = waiting.shift();
      if (frame === undefined) break;
      deliver(frame);
    }
    if (!isPaused || waiting.length > 0 || unanswered > MAX_UNANSWERED / 2) return;
    isPaused = false;
    local.resume();
  };
  const deliver = (frame: SocketFrame) => {
    const handled = ours.transmit(frame);
    if (handled === undefined) return;
    unanswered += 1;
    handled.then(answered, answered);
  };
  const pass = (frame: SocketFrame) => {
    if (waiting.length > 0 || unanswered >= MAX_UNANSWERED) waiting.push(frame);
    else deliver(frame);
    if (isPaused || unanswered < MAX_UNANSWERED) return;
    isPaused = true;
    local.pause();
  };
  webSocket.on("message", (data: RawData, isBinary: boolean) => {
    local.isAlive = true;
    const bytes = toBuffer(data);
    pass({ kind: "message", data: isBinary ? toArrayBuffer(bytes) : bytes.toString("utf8") });
  });
  webSocket.on("pong", () => {
    local.isAlive = true;
  });
  // A broken connection also emits "close".
  webSocket.on("error", () => undefined);
  webSocket.on("close", (code: number, reason: Buffer) => {
    connection.markClosed();
    hub.removeSocket(local);
    hub.remove(group);
    pass({
      kind: "close",
      code,
      reason: code === ABNORMAL ? CUT : reason.toString("utf8"),
      wasClean: code !== ABNORMAL,
    });
  });
}

function toBuffer(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}

function toArrayBuffer(bytes: Buffer): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}
