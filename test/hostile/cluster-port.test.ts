/** Strangers at the port on which the nodes of a cluster reach each other. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { FRAME_KINDS, HEADER_BYTES } from "../../packages/signalbox/src/engines/node-link/frame.ts";
import {
  openLinks,
  openPair,
  peerOf,
  REFUSING,
} from "../../packages/signalbox/src/engines/node-link/links-fixture.ts";
import type { Links } from "../../packages/signalbox/src/engines/node-link/links.ts";
import { MAX_NEWCOMERS } from "../../packages/signalbox/src/engines/node-link/newcomers.ts";

const ECHO = { ...REFUSING, onCall: (_name: string, payload: Buffer) => payload };

async function victim(isEncrypted = false) {
  const pair = await openPair(ECHO, isEncrypted);
  onTestFinished(pair.close);
  const works = async () => {
    const answer = await pair.two.call("1", "echo", Buffer.from("still here"));
    return String(answer) === "still here";
  };
  return { ...pair, works };
}

interface Stranger {
  readonly socket: Socket;
  received(): Buffer;
  isClosed(): boolean;
}

function dial(links: Links): Stranger {
  const socket = connect(links.port, "127.0.0.1");
  const chunks: Buffer[] = [];
  let isClosed = false;
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.on("error", () => undefined);
  socket.on("close", () => (isClosed = true));
  onTestFinished(() => void socket.destroy());
  return { socket, received: () => Buffer.concat(chunks), isClosed: () => isClosed };
}

function frame(kind: number, payload: string | Buffer, length?: number): Buffer {
  const bytes = Buffer.from(payload);
  const head = Buffer.alloc(HEADER_BYTES);
  head.writeUInt32LE(length ?? bytes.length, 0);
  head[4] = kind;
  return Buffer.concat([head, bytes]);
}

const helloOf = (rest: object = {}) =>
  JSON.stringify({
    node: "7",
    cluster: "test",
    minVersion: 1,
    maxVersion: 1,
    nonce: "n".repeat(43),
    ...rest,
  });

it.each([
  ["another protocol", Buffer.from("GET / HTTP/1.1\r\nhost: x\r\n\r\n")],
  ["a frame of 4 GiB", frame(FRAME_KINDS.hello, "", 0xffff_ffff)],
  ["a hello that is longer than allowed", frame(FRAME_KINDS.hello, "x".repeat(5000))],
  ["a hello that is not JSON", frame(FRAME_KINDS.hello, "{")],
  ["a hello that is null", frame(FRAME_KINDS.hello, "null")],
  ["a hello with wrong types", frame(FRAME_KINDS.hello, helloOf({ node: {}, nonce: [] }))],
  ["a hello of no common version", frame(FRAME_KINDS.hello, helloOf({ minVersion: 900, maxVersion: 901 }))],
  ["a proof without a hello", frame(FRAME_KINDS.proof, "p".repeat(43))],
  ["a call without a handshake", frame(FRAME_KINDS.call, "\u0004echoX")],
  [
    "a wrong proof",
    Buffer.concat([frame(FRAME_KINDS.hello, helloOf()), frame(FRAME_KINDS.proof, "p".repeat(43))]),
  ],
  ["two hellos", Buffer.concat([frame(FRAME_KINDS.hello, helloOf()), frame(FRAME_KINDS.hello, helloOf())])],
  ["an unknown kind of frame", frame(200, "x")],
])("%s ends the connection, and no frame of it is handled", async (_name, bytes) => {
  const { one, works } = await victim();
  const stranger = dial(one);
  stranger.socket.write(bytes);
  await expect.poll(() => stranger.isClosed()).toBe(true);
  expect(await works()).toBe(true);
  expect(one.linked).toEqual(["2"]);
});

it("a stranger that sends hellos without end gets one answer", async () => {
  const { one, works } = await victim();
  const stranger = dial(one);
  const hello = frame(FRAME_KINDS.hello, helloOf());
  const flood = Buffer.concat(Array.from({ length: 20_000 }, () => hello));
  stranger.socket.write(flood);
  await expect.poll(() => stranger.isClosed()).toBe(true);
  expect(stranger.received().length).toBeLessThan(2000);
  expect(await works()).toBe(true);
});

it.each([false, true])(
  "strangers that hold connections open do not keep a node out (TLS: %s)",
  async (isEncrypted) => {
    const { one, two, works } = await victim(isEncrypted);
    const strangers = Array.from({ length: MAX_NEWCOMERS * 3 }, () => {
      const stranger = dial(one);
      // Half of a frame, then silence.
      stranger.socket.write(Buffer.from([1, 0]));
      return stranger;
    });
    // The oldest make room for the youngest.
    await expect
      .poll(() => strangers.filter((stranger) => stranger.isClosed()).length)
      .toBeGreaterThanOrEqual(MAX_NEWCOMERS * 2);
    two.to("1")?.close({ code: "broken", message: "test" });
    await expect.poll(() => works().catch(() => false)).toBe(true);
    // The time limit of the handshake ends the others.
    await expect.poll(() => strangers.every((stranger) => stranger.isClosed())).toBe(true);
  },
);

it("a stranger that sends byte by byte has the time of one handshake", async () => {
  const { one, works } = await victim();
  const stranger = dial(one);
  const bytes = frame(FRAME_KINDS.hello, helloOf());
  for (let i = 0; i < bytes.length && !stranger.isClosed(); i++) {
    stranger.socket.write(bytes.subarray(i, i + 1));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await expect.poll(() => stranger.isClosed()).toBe(true);
  expect(await works()).toBe(true);
});

it.each([
  ["the current version", helloOf({ cluster: "guessed", maxVersion: 2 })],
  ["the former version, without the id of the cluster", helloOf({ cluster: "guessed" })],
])("a stranger that dials with %s gets no name, no id and no proof", async (_name, hello) => {
  const { one, works } = await victim();
  const stranger = dial(one);
  stranger.socket.write(frame(FRAME_KINDS.hello, hello));
  await expect.poll(() => stranger.received().length).toBeGreaterThan(HEADER_BYTES);
  stranger.socket.write(frame(FRAME_KINDS.proof, "p".repeat(43)));
  await expect.poll(() => stranger.isClosed()).toBe(true);
  const text = stranger.received().toString("latin1");
  expect(text).not.toMatch(/"node"|"cluster"|"proof"/);
  expect(await works()).toBe(true);
});

it("a recorded handshake cannot be replayed, and a proof cannot be reflected", async () => {
  // Records what node 3 sends to node 1 in a successful handshake.
  const one = await openLinks("1", ECHO);
  const three = await openLinks("3", ECHO);
  const sent: Buffer[] = [];
  const tap = createServer((client) => {
    const target = connect(one.port, "127.0.0.1");
    client.on("data", (chunk: Buffer) => {
      sent.push(chunk);
      target.write(chunk);
    });
    target.on("data", (chunk: Buffer) => client.write(chunk));
    for (const socket of [client, target]) socket.on("error", () => undefined);
    onTestFinished(() => {
      client.destroy();
      target.destroy();
    });
  }).listen(0, "127.0.0.1");
  await once(tap, "listening");
  onTestFinished(async () => {
    await Promise.all([one.close(), three.close()]);
    tap.close();
  });
  one.setPeers([peerOf("3", three, false)]);
  three.setPeers([
    { node: "1", host: "127.0.0.1", port: (tap.address() as AddressInfo).port, isDialled: true },
  ]);
  await expect.poll(() => one.linked).toEqual(["3"]);
  const recorded = Buffer.concat(sent);
  three.setPeers([]);
  await expect.poll(() => one.linked).toEqual([]);
  const replay = dial(one);
  replay.socket.write(recorded);
  await expect.poll(() => replay.isClosed()).toBe(true);
  expect(String(replay.received())).toContain("wrong cluster secret");

  // The proof that a node of the former release gets from a listener, sent back to it.
  const mirror = dial(one);
  mirror.socket.write(frame(FRAME_KINDS.hello, helloOf({ node: "3" })));
  await expect.poll(() => mirror.received().length).toBeGreaterThan(HEADER_BYTES);
  const { proof } = JSON.parse(mirror.received().toString("utf8", HEADER_BYTES)) as { proof: string };
  mirror.socket.write(frame(FRAME_KINDS.proof, proof));
  await expect.poll(() => mirror.isClosed()).toBe(true);
  expect(one.linked).toEqual([]);
});

it("a node of another cluster is refused, with the same secret or another one", async () => {
  const { one, works } = await victim();
  const problems: string[] = [];
  const onProblem = (_peer: string | null, { message }: { message: string }) => problems.push(message);
  const sameSecret = await openLinks("5", ECHO, { self: { node: "5", cluster: "other" }, onProblem });
  const otherSecret = await openLinks("6", ECHO, {
    security: { secret: "the secret of another cluster", isEncrypted: false },
    onProblem,
  });
  onTestFinished(async () => {
    await Promise.all([sameSecret.close(), otherSecret.close()]);
  });
  for (const links of [sameSecret, otherSecret]) links.setPeers([peerOf("1", one, true)]);
  const refused = "the other node refused the link: ";
  await expect.poll(() => problems).toContain(`${refused}the other node uses another database`);
  await expect.poll(() => problems).toContain(`${refused}wrong cluster secret`);
  expect([one.linked, await works()]).toEqual([["2"], true]);
});
