import { connect } from "node:net";
import { randomBytes } from "node:crypto";
import { expect, it, onTestFinished } from "vitest";
import { FRAME_KINDS, FrameReader, FrameWriter } from "./frame.ts";
import { DiallerHandshake, toLinkKey } from "./handshake.ts";
import { LinkError } from "./link-failure.ts";
import type { LinkHandler } from "./link.ts";
import { WINDOW_BYTES, type LinkStream } from "./link-stream.ts";
import type { LinksOptions } from "./links.ts";
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

it("a slow consumer reads a complete stream to its end, although the link breaks meanwhile", async () => {
  const { two } = await pair();
  const sent = randomBytes(200_000);
  const stream = two.to("1")?.openStream("echo", Buffer.alloc(0)) as LinkStream;
  stream.write(sent);
  stream.end();
  // The first call is answered when the stream has been read, the second one when what that has caused was sent.
  for (let i = 0; i < 2; i++) await two.call("1", "echo", Buffer.alloc(0));
  two.to("1")?.close({ code: "broken", message: "cut" });
  expect((await readStream(stream)).equals(sent)).toBe(true);
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

it("an answer above the limit fails its own call, and the link goes on", async () => {
  const { one, two } = await pair({
    ...ECHO,
    onCall: (name, payload) => (name === "large" ? new Uint8Array(33 * 1024 * 1024) : payload),
  });
  const stream = two.to("1")?.openStream("echo", Buffer.from("a")) as LinkStream;
  const [large, small] = [two.call("1", "large", Buffer.from("")), two.call("1", "echo", Buffer.from("b"))];
  expect(await codeOf(large)).toBe("answer_too_large");
  expect(String(await small)).toBe("b");
  stream.end();
  expect(String(await readStream(stream))).toBe("a");
  expect(one.linked).toEqual(["2"]);
});

it("a node with another secret is refused", async () => {
  const one = await openLinks("1", ECHO);
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
  expect(refused[0]).toBe("the other node refused the link: wrong cluster secret");
  expect(one.linked).toEqual([]);
});

it.each([false, true])(
  "a node that dials before it is a member is heard when it is one, and nothing is reported meanwhile (TLS: %s)",
  async (isEncrypted) => {
    const events: string[] = [];
    const options: Partial<LinksOptions> = {
      security: { secret: "a secret of the cluster", isEncrypted },
      memberWaitMs: 60_000,
      onUp: (node) => events.push(`up ${node}`),
      onDown: (node) => events.push(`down ${node}`),
      onProblem: (node) => events.push(`problem ${node}`),
    };
    const one = await openLinks("1", ECHO, options);
    const newcomer = await openLinks("2", ECHO, options);
    onTestFinished(async () => {
      await Promise.all([one.close(), newcomer.close()]);
    });
    newcomer.setPeers([peerOf("1", one, true)]);
    await expect.poll(() => newcomer.linked).toEqual(["1"]);
    const call = codeOf(newcomer.call("1", "echo", Buffer.from("early")));
    // Long enough for the proof and the call to arrive; not heard however long it takes.
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect([one.linked, one.to("2"), events]).toEqual([[], null, ["up 1"]]);
    one.setPeers([peerOf("2", newcomer, false)]);
    expect(await call).toBe("answered");
    expect([one.linked, events]).toEqual([["2"], ["up 1", "up 2"]]);
  },
);

it("a node that does not become a member is refused", async () => {
  const problems: (string | null)[] = [];
  const one = await openLinks("1", ECHO, {
    memberWaitMs: 20,
    onProblem: (node, { message }) => problems.push(node, message),
  });
  const outsider = await openLinks("5");
  onTestFinished(async () => {
    await Promise.all([one.close(), outsider.close()]);
  });
  outsider.setPeers([peerOf("1", one, true)]);
  await expect.poll(() => problems.slice(0, 2)).toEqual(["5", "the node is not a member"]);
  expect([one.linked, one.to("5")]).toEqual([[], null]);
});

it("a node that was declared dead is refused at once, and learns why", async () => {
  const problems: string[] = [];
  const one = await openLinks("1", ECHO, { memberWaitMs: 3_600_000, isGone: (node) => node === "5" });
  const dead = await openLinks("5", ECHO, { onDown: (_, { message }) => problems.push(message) });
  onTestFinished(async () => {
    await Promise.all([one.close(), dead.close()]);
  });
  dead.setPeers([peerOf("1", one, true)]);
  await expect.poll(() => problems.length).toBeGreaterThan(1);
  expect(one.linked).toEqual([]);
});

it("a call that arrives together with the proof is answered", async () => {
  const one = await openLinks("1", ECHO);
  onTestFinished(() => one.close());
  one.setPeers([{ node: "2", host: "127.0.0.1", port: 1, isDialled: false }]);
  const handshake = new DiallerHandshake(toLinkKey("a secret of the cluster"), {
    node: "2",
    cluster: "test",
  });
  const socket = connect(one.port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  const frames: Buffer[] = [];
  const writer = new FrameWriter({
    cork: () => undefined,
    uncork: () => undefined,
    write: (bytes) => frames.push(bytes) > 0,
  });
  const send = () => {
    writer.flush();
    socket.write(Buffer.concat(frames.splice(0)));
  };
  writer.write(FRAME_KINDS.hello, 0, handshake.hello);
  send();
  const reader = new FrameReader(1 << 20);
  const answer = await new Promise<string>((resolve, reject) => {
    socket.on("close", () => reject(new Error("refused")));
    socket.on("data", (chunk: Buffer) =>
      reader.read(chunk, ({ kind, payload }) => {
        if (kind === FRAME_KINDS.answer) resolve(payload.toString());
        if (kind !== FRAME_KINDS.hello) return;
        writer.write(FRAME_KINDS.proof, 0, handshake.answer(payload).proof);
        writer.write(FRAME_KINDS.call, 1, Buffer.alloc(9000, "x"), Buffer.from("\x04echo"));
        send();
      }),
    );
  });
  expect(answer).toBe("x".repeat(9000));
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
