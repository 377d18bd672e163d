/**
 * A whole WebSocket frame as bytes (RFC 6455, section 5.2), made once and written to every socket of a broadcast. Servers do not mask.
 */
const FINAL_TEXT = 0x81;
const FINAL_BINARY = 0x82;

export function toFrame(message: string | Uint8Array): Buffer {
  const isText = typeof message === "string";
  const length = isText ? Buffer.byteLength(message) : message.byteLength;
  const headerLength = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const frame = Buffer.allocUnsafe(headerLength + length);
  frame[0] = isText ? FINAL_TEXT : FINAL_BINARY;
  if (headerLength === 2) frame[1] = length;
  else if (headerLength === 4) {
    frame[1] = 126;
    frame.writeUInt16BE(length, 2);
  } else {
    frame[1] = 127;
    frame.writeBigUInt64BE(BigInt(length), 2);
  }
  if (isText) frame.write(message, headerLength, "utf8");
  else frame.set(message, headerLength);
  return frame;
}
