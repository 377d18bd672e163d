/**
 * A WebSocket client that uses little CPU, so that the server is measured and not the client: it masks with a key of zeros, which changes
 * no byte, passes text frames on as bytes, answers pings and ignores everything else.
 */
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";

const OPCODE_TEXT = 0x1;
const OPCODE_CLOSE = 0x8;
const OPCODE_PING = 0x9;
const OPCODE_PONG = 0xa;
const FINAL = 0x80;
const MASKED = 0x80;

export class LeanSocket {
  readonly #socket: Socket;
  #rest: Buffer;
  /** Called with every text message. */
  onText: (text: Buffer) => void = () => undefined;
  /** Called once, when the server or the network ends the connection. */
  onEnd: (reason: string) => void = () => undefined;

  private constructor(socket: Socket, rest: Buffer) {
    this.#socket = socket;
    this.#rest = rest;
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.once("close", () => this.onEnd("the connection was closed"));
    socket.on("error", () => undefined);
  }

  /** Resolves after the handshake. Frames that arrived with it are delivered in the next turn of the event loop. */
  static open(port: number, path: string): Promise<LeanSocket> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1");
      socket.setNoDelay(true);
      let head = Buffer.alloc(0);
      const onData = (chunk: Buffer) => {
        head = Buffer.concat([head, chunk]);
        const end = head.indexOf("\r\n\r\n");
        if (end === -1) return;
        socket.off("data", onData).off("error", reject);
        const status = head.subarray(0, head.indexOf("\r\n")).toString("latin1");
        if (!status.startsWith("HTTP/1.1 101")) {
          socket.destroy();
          reject(new Error(`no WebSocket at ${path}: ${status}`));
          return;
        }
        const opened = new LeanSocket(socket, head.subarray(end + 4));
        resolve(opened);
        setImmediate(() => opened.#read(Buffer.alloc(0)));
      };
      socket.on("data", onData).once("error", reject);
      socket.once("connect", () =>
        socket.write(
          `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n` +
            `sec-websocket-version: 13\r\nsec-websocket-key: ${randomBytes(16).toString("base64")}\r\n\r\n`,
        ),
      );
    });
  }

  /** Sends a frame made by `encodeText`. */
  send(frame: Buffer): void {
    this.#socket.write(frame);
  }

  close(): void {
    this.onEnd = () => undefined;
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const header = readHeader(bytes);
      if (header === null || bytes.length < header.start + header.length) break;
      const payload = bytes.subarray(header.start, header.start + header.length);
      bytes = bytes.subarray(header.start + header.length);
      if (header.opcode === OPCODE_TEXT) this.onText(payload);
      else if (header.opcode === OPCODE_PING) this.#socket.write(encode(OPCODE_PONG, payload));
      else if (header.opcode === OPCODE_CLOSE)
        this.onEnd(`the server closed: ${payload.length < 2 ? "no code" : payload.readUInt16BE(0)}`);
    }
    this.#rest = bytes;
  }
}

export function encodeText(text: string): Buffer {
  return encode(OPCODE_TEXT, Buffer.from(text));
}

function encode(opcode: number, payload: Buffer): Buffer {
  const head =
    payload.length < 126
      ? Buffer.from([FINAL | opcode, MASKED | payload.length])
      : Buffer.from([FINAL | opcode, MASKED | 126, payload.length >> 8, payload.length & 0xff]);
  return Buffer.concat([head, Buffer.alloc(4), payload]);
}

function readHeader(bytes: Buffer): { opcode: number; start: number; length: number } | null {
  if (bytes.length < 2) return null;
  const opcode = bytes.readUInt8(0) & 0x0f;
  const short = bytes.readUInt8(1) & 0x7f;
  if (short < 126) return { opcode, start: 2, length: short };
  if (short === 126) return bytes.length < 4 ? null : { opcode, start: 4, length: bytes.readUInt16BE(2) };
  return bytes.length < 10 ? null : { opcode, start: 10, length: Number(bytes.readBigUInt64BE(2)) };
}
