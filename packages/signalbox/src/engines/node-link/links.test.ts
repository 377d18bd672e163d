import { connect } from "node:net";
import { randomBytes } from "node:crypto";
import { expect, it, onTestFinished } from "vitest";
import { LinkError } from "./link-failure.ts";
import type { LinkHandler } from "./link.ts";
import { WINDOW_BYTES, type LinkStream } from "./link-stream.ts";
import { openLinks, openPair, peerOf, REFUSING } from "./links-fixture.ts";

const ECHO: LinkHandler = {
  onCall: (name, payload) => {
    if (name === "fail") throw new LinkError({ code: "moved", message: "moved", details: { owner: "3" } });
    if (name === "crash") throw new Error("secret detail");
    if (name === "never") return new Promise<Uint8Array>(() => undefined);
    return name === "later" ? Promise.resolve(payload) : payload;
  },
  onStream: (_name, payload, stream) => {
    stream.write(Buffer.from(payload));
    stream.start({
      onData: (bytes) => {
        if (!stream.write(bytes)) stream.pause();
      },
      onDrain: () => stream.resume(),
      onEnd: () => stream.end(),
      onFailure: () => undefined,
    });
  },
};

async function pair(handler: LinkHandler = ECHO, isEncrypted = false) {
  const opened = await openPair(handler, isEncrypted);
  onTestFinished(opened.close);
  return opened;
}

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "answered",
    (error: unknown) => (error instanceof LinkError ? error.code : String(error)),
  );

function readStream(stream: LinkStream): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    stream.start({
      onData: (bytes) => parts.push(bytes),
      onEnd: () => resolve(Buffer.concat(parts)),
      onFailure: (failure) => reject(new LinkError(failure)),
    });
  });
}

for (const isEncrypted of [false, true]) {
  it(`calls go both ways, at once and later (TLS: ${isEncrypted})`, async () => {
    const { one, two } = await pair(ECHO, isEncrypted);
    const large = randomBytes(1_500_000);
    const answers = await Promise.all([
      one.call("2", "echo", Buffer.from("a")),
      two.call("1", "later", Buffer.from("b")),
      two.call("1", "echo", large),
    ]);
    expect(answers.map(String).slice(0, 2)).toEqual(["a", "b"]);
    expect(answers[2]?.equals(large)).toBe(true);
  });

  it(`a stream echoes more than a window in both directions (TLS: ${isEncrypted})`, async () => {
    const { two } = await pair(ECHO, isEncrypted);
    const sent = randomBytes(WINDOW_BYTES * 5 + 123);
    const stream = two.to("1")?.openStream("echo", Buffer.from("hi"));
    if (stream === undefined) throw new Error("no link");
    const received = readStream(stream);
    stream.write(sent);
    stream.end();
    expect((await received).equals(Buffer.concat([Buffer.from("hi"), sent]))).toBe(true);
  });
}

it("failures arrive with their code; defects of the other node without their text", async () => {
  const { two } = await pair();
  await expect(two.call("1", "fail", Buffer.alloc(0))).rejects.toMatchObject({
    failure: { code: "moved", details: { owner: "3" } },
  });
  await expect(two.call("1", "crash", Buffer.alloc(0))).rejects.toMatchObject({
    failure: { code: "internal", message: "internal error of the other node" },
  });
  expect(await codeOf(two.call("7", "echo", Buffer.alloc(0)))).toBe("unreachable");
});

it("a broken link fails what is under way with `broken`, and is dialled again", async () => {
  const { one, two } = await pair();
  const call = codeOf(two.call("1", "never", Buffer.from("x")));
  const stream = two.to("1")?.openStream("echo", Buffer.alloc(0));
  const failed = stream === undefined ? null : readStream(stream).catch((error: LinkError) => error.code);
  await one.call("2", "echo", Buffer.alloc(0));
  one.to("2")?.close({ code: "broken", message: "test" });
  expect([await call, await failed]).toEqual(["broken", "broken"]);
  await expect.poll(() => codeOf(two.call("1", "echo", Buffer.from("again")))).toBe("answered");
});

it("an aborted call ends, and its late answer is ignored", async () => {
  const { two } = await pair();
  const controller = new AbortController();
  const call = codeOf(two.call("1", "later", Buffer.from("x"), controller.signal));
  controller.abort();
  expect(await call).toBe("broken");
  expect(await codeOf(two.call("1", "echo", Buffer.from("y")))).toBe("answered");
});

it("a consumer that is paused holds at most one window, and loses nothing", async () => {
  let taken: LinkStream | undefined;
  const { two } = await pair({ ...REFUSING, onStream: (_name, _payload, stream) => (taken = stream) });
  const sent = randomBytes(WINDOW_BYTES * 3);
  const stream = two.to("1")?.openStream("slow", Buffer.alloc(0));
  if (stream === undefined) throw new Error("no link");
  let isDrained = false;
  stream.start({ onData: () => {}, onEnd: () => {}, onFailure: () => {}, onDrain: () => (isDrained = true) });
  expect(stream.write(sent)).toBe(false);
  stream.end();
  await expect.poll(() => taken).toBeDefined();
  // The other side answers a call after everything that was sent before it.
  await codeOf(two.call("1", "echo", Buffer.alloc(0)));
  expect(isDrained).toBe(false);
  if (taken === undefined) throw new Error("no stream");
  expect((await readStream(taken)).equals(sent)).toBe(true);
});

it("reset reaches the other side as a failure, and frees the stream", async () => {
  const failures: string[] = [];
  const { two } = await pair({
    ...REFUSING,
    onStream: (_name, _payload, stream) =>
      stream.start({ onData: () => {}, onEnd: () => {}, onFailure: ({ code }) => failures.push(code) }),
  });
  const link = two.to("1");
  link?.openStream("s", Buffer.alloc(0)).reset();
  link?.openStream("s", Buffer.alloc(0)).reset({ code: "gone", message: "gone" });
  await expect.poll(() => failures).toEqual(["cancelled", "gone"]);
});

it("calls above the limits fail without being sent", async () => {
  const { two } = await pair();
  const mebi = Buffer.alloc(1 << 20);
  expect(await codeOf(two.call("1", "echo", Buffer.alloc(33 << 20)))).toBe("too_large");
  const waiting = Array.from({ length: 129 }, () => codeOf(two.call("1", "never", mebi)));
  expect(await waiting[128]).toBe("overloaded");
});

it("a node with another secret, and a node that is no member, are refused", async () => {
  const problems: string[] = [];
  const one = await openLinks("1", ECHO, { onProblem: (_peer, { message }) => problems.push(message) });
  const refused: string[] = [];
  const stranger = await openLinks("2", ECHO, {
    security: { secret: "another secret", isEncrypted: false },
    onProblem: (_peer, { message }) => refused.push(message),
  });
  onTestFinished(async () => {
    await Promise.all([one.close(), stranger.close()]);
  });
  one.setPeers([peerOf("2", stranger, false)]);
  stranger.setPeers([peerOf("1", one, true)]);
  await expect.poll(() => refused.length).toBeGreaterThan(0);
  expect(refused[0]).toBe("wrong cluster secret");
  const outsider = await openLinks("5");
  onTestFinished(() => outsider.close());
  outsider.setPeers([peerOf("1", one, true)]);
  await expect.poll(() => problems.length).toBeGreaterThan(1);
  expect([one.linked, one.to("5")]).toEqual([[], null]);
});

it("bytes of a stranger are refused, and do not disturb the links", async () => {
  const { one, two } = await pair();
  for (const bytes of [Buffer.from("GET / HTTP/1.1\r\n\r\n"), Buffer.alloc(64, 0xff), randomBytes(10_000)]) {
    const socket = connect(one.port, "127.0.0.1");
    socket.on("error", () => undefined);
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.write(bytes);
    socket.resume();
    await closed;
  }
  expect(await codeOf(two.call("1", "echo", Buffer.from("x")))).toBe("answered");
});

it("a second connection of a peer replaces the first", async () => {
  const { one, two } = await pair();
  const first = one.to("2");
  const again = await openLinks("2", ECHO);
  onTestFinished(() => again.close());
  again.setPeers([peerOf("1", one, true)]);
  await expect.poll(() => one.to("2") !== null && one.to("2") !== first).toBe(true);
  expect(first?.isClosed).toBe(true);
  two.setPeers([]);
});
