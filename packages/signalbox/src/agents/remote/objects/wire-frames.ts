/** Frames of WebSockets as messages of a session. */
import type { SocketFrame } from "../../objects/web-socket.ts";
import { type MessageKind, MESSAGES } from "./wire-message.ts";

export type CloseFrame = SocketFrame & { readonly kind: "close" };

/** What a cut connection shows: no close frame was received (RFC 6455, section 7.4.1). */
export const CUT: CloseFrame = { kind: "close", code: 1006, reason: "", wasClean: false };
export const LOST: CloseFrame = { ...CUT, reason: "WebSocket disconnected without sending Close frame." };

export function kindOf(frame: SocketFrame): MessageKind {
  if (frame.kind === "close") return MESSAGES.close;
  return typeof frame.data === "string" ? MESSAGES.text : MESSAGES.binary;
}

export function payloadOf(frame: SocketFrame): Uint8Array {
  if (frame.kind === "close") return closePayload(frame);
  return typeof frame.data === "string" ? Buffer.from(frame.data) : new Uint8Array(frame.data);
}

/** Null for a message that is no frame. */
export function frameOf(kind: number, payload: Buffer): SocketFrame | null {
  if (kind === MESSAGES.text) return { kind: "message", data: payload.toString("utf8") };
  if (kind === MESSAGES.binary) return { kind: "message", data: new Uint8Array(payload).buffer };
  return kind === MESSAGES.close ? readClose(payload) : null;
}

export function closePayload(frame: CloseFrame): Buffer {
  const head = Buffer.from([0, 0, frame.wasClean ? 1 : 0]);
  head.writeUInt16LE(frame.code);
  return Buffer.concat([head, Buffer.from(frame.reason)]);
}

function readClose(payload: Buffer): CloseFrame {
  return {
    kind: "close",
    code: payload.readUInt16LE(),
    wasClean: payload[2] === 1,
    reason: payload.toString("utf8", 3),
  };
}
