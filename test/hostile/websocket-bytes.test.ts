/** Arbitrary bytes over a WebSocket: the process stays alive, and the sender is soon disconnected. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { RawSocket, rawWebSocket } from "../support/raw-socket.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { ROOT_TOKEN } from "../support/test-server.ts";

let folder: string;
let server: ServerProcess;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-hostile-"));
  server = await startServerProcess(["--data-dir", folder], {
    cwd: folder,
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
  });
});
afterAll(async () => {
  await server.end("SIGTERM");
  await rm(folder, { recursive: true, force: true });
});

const MASK = Buffer.from([1, 2, 3, 4]);

/** A complete masked text message of the given size. */
function message(bytes: number): Buffer {
  const header = Buffer.alloc(10);
  header[0] = 0x81;
  header[1] = 0x80 | 127;
  header.writeBigUInt64BE(BigInt(bytes), 2);
  return Buffer.concat([header, MASK, Buffer.alloc(bytes, 0x20)]);
}

const ATTACKS: readonly (readonly [string, Buffer])[] = [
  ["reserved bits", Buffer.from([0xf1, 0x80, 1, 2, 3, 4])],
  ["an unmasked frame", Buffer.from([0x81, 0x02, 0x68, 0x69])],
  ["an unknown opcode", Buffer.from([0x83, 0x80, 1, 2, 3, 4])],
  ["a fragmented control frame", Buffer.from([0x09, 0x80, 1, 2, 3, 4])],
  ["a close frame of one byte", Buffer.from([0x88, 0x81, 1, 2, 3, 4, 9])],
  ["text that is not UTF-8", Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0xc3, 0x28])],
  ["a message of 2 MiB", message(2 * 1024 * 1024)],
  ["a message that claims to be of 2^63 bytes", Buffer.from([0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0])],
  ["plain HTTP", Buffer.from("GET / HTTP/1.1\r\nhost: x\r\n\r\n")],
  ["noise", Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 7919) % 256))],
];

const isUp = async () => (await fetch(`${server.url}/healthz`)).status;

describe("a WebSocket that was refused", () => {
  it.each(ATTACKS)(
    "a refused socket that sends %s is closed, and the process stays alive",
    async (_title, bytes) => {
      const raw = await rawWebSocket(server.url, "/agents/webhook-agent/x");
      raw.write(bytes);
      await raw.closed();
      // The close frame with 4401 was sent first.
      expect(raw.received.includes(Buffer.from([0x11, 0x31]))).toBe(true);
      expect(await isUp()).toBe(200);
    },
  );

  it.each(ATTACKS)("a refused socket may send %s together with its handshake", async (_title, bytes) => {
    const raw = new RawSocket(server.url);
    raw.write(
      Buffer.concat([
        Buffer.from(
          "GET /agents/nobody/x HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n" +
            "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n",
        ),
        bytes,
      ]),
    );
    await raw.closed();
    expect(await isUp()).toBe(200);
  });

  it("a refused socket that neither closes nor reads, and never stops sending, is closed", async () => {
    const silent = await rawWebSocket(server.url, "/agents/webhook-agent/x");
    const deaf = await rawWebSocket(server.url, "/agents/webhook-agent/x");
    deaf.socket.pause();
    const chatty = await rawWebSocket(server.url, "/agents/webhook-agent/x");
    const talk = setInterval(() => chatty.write(Buffer.from([0x89, 0x80, 1, 2, 3, 4])), 20);
    onTestFinished(() => clearInterval(talk));
    const isClosed = () => {
      // A client that does not read learns of the close when it writes.
      deaf.write("x");
      return [silent.isClosed, deaf.isClosed, chatty.isClosed];
    };
    await expect.poll(isClosed).toEqual([true, true, true]);
    expect(await isUp()).toBe(200);
  });

  it("refused sockets cost others nothing: of many silent ones the oldest are closed first", async () => {
    const crowd = await Promise.all(
      Array.from({ length: 400 }, () => rawWebSocket(server.url, "/agents/webhook-agent/x")),
    );
    await expect.poll(() => crowd.every(({ isClosed }) => isClosed)).toBe(true);
    expect(await isUp()).toBe(200);
  });
});

describe("a WebSocket that was accepted", () => {
  it.each(ATTACKS)(
    "an accepted socket that sends %s is closed, and others stay open",
    async (_title, bytes) => {
      const raw = await rawWebSocket(server.url, "/agents/webhook-agent/x", {
        authorization: `Bearer ${ROOT_TOKEN}`,
      });
      await raw.until("cf_agent_state");
      raw.write(bytes);
      await expect.poll(() => raw.isClosed).toBe(true);
      expect(await isUp()).toBe(200);
    },
  );

  it("a client may disconnect at any moment of the handshake", async () => {
    for (const path of ["/agents/webhook-agent/x", `/agents/webhook-agent/y?token=${ROOT_TOKEN}`]) {
      const half = new RawSocket(server.url);
      half.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n`);
      half.destroy();
      const gone = new RawSocket(server.url);
      gone.write(
        `GET ${path} HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n` +
          "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n",
      );
      gone.socket.resetAndDestroy();
      const reset = await rawWebSocket(server.url, path);
      reset.socket.resetAndDestroy();
    }
    expect(await isUp()).toBe(200);
  });

  it.each([
    ["without a key", "sec-websocket-version: 13\r\n"],
    [
      "with an unknown version",
      "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 99\r\n",
    ],
    [
      "with a malformed list of protocols",
      "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\nsec-websocket-protocol: ,,\r\n",
    ],
  ])("an invalid handshake is refused as HTTP %s", async (_title, lines) => {
    const raw = new RawSocket(server.url);
    raw.write(
      `GET /agents/webhook-agent/x?token=${ROOT_TOKEN} HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n${lines}\r\n`,
    );
    await raw.until("HTTP/1.1 400");
    await raw.closed();
    expect(await isUp()).toBe(200);
  });
});
