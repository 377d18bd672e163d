/** A TCP connection that sends raw text and keeps what it receives. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";

export class RawSocket {
  readonly socket: Socket;
  #received = Buffer.alloc(0);
  isClosed = false;

  /** `allowHalfOpen`: the socket can write after the peer has ended its side. */
  constructor(url: string, { allowHalfOpen = false } = {}) {
    const { hostname, port } = new URL(url);
    this.socket = connect({ port: Number(port), host: hostname, allowHalfOpen });
    this.socket.on("data", (chunk) => (this.#received = Buffer.concat([this.#received, chunk])));
    this.socket.on("close", () => (this.isClosed = true));
    // Some tests wait for the peer to reset the connection.
    this.socket.on("error", () => undefined);
  }

  get received(): Buffer {
    return this.#received;
  }

  write(bytes: string | Uint8Array): void {
    this.socket.write(bytes);
  }

  /** Resolves when the text has arrived; rejects if the connection ends without it. */
  async until(text: string): Promise<void> {
    while (!this.#received.includes(text)) {
      if (this.isClosed) throw new Error(`closed after ${this.#received.toString("latin1")}`);
      await Promise.race([once(this.socket, "data"), once(this.socket, "close")]);
    }
  }

  async closed(): Promise<void> {
    if (!this.isClosed) await once(this.socket, "close");
  }

  destroy(): void {
    this.socket.destroy();
  }
}

/** Opens a WebSocket by hand; resolves when the server has switched protocols. */
export async function rawWebSocket(
  url: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawSocket> {
  const raw = new RawSocket(url);
  const lines = Object.entries({
    host: new URL(url).host,
    upgrade: "websocket",
    connection: "Upgrade",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version": "13",
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  raw.write(`GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
  await raw.until("\r\n\r\n");
  return raw;
}
