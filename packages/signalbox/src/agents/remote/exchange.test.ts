import { once } from "node:events";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { SignalboxError } from "@signalbox/protocol";
import { afterEach, beforeEach, expect, it } from "vitest";
import { LinkError } from "../../engines/node-link/index.ts";
import { type Exchange, openExchange } from "./exchange.ts";
import { openTestNodes, type TestNodes } from "./network-fixture.ts";
import { type ExchangeReply, ExchangeServer, type ServedExchange } from "./serve-exchanges.ts";

let nodes: TestNodes;
beforeEach(async () => {
  nodes = await openTestNodes();
});
afterEach(() => nodes.close());

function serve(
  run: (exchange: ServedExchange) => ExchangeReply | Promise<ExchangeReply>,
  maxBytes = 10_000_000,
) {
  new ExchangeServer(nodes.two.network, maxBytes).serve("test", async (exchange) => run(exchange));
}

const ask = (exchange: Partial<Exchange> = {}) =>
  openExchange(nodes.one.network, "2", { name: "test", head: { a: "ü\u{1f375}" }, body: null, ...exchange });

/** A body without an end, and the number of pieces that were taken from it. */
function endless(pieceBytes: number) {
  const taken = { pieces: 0, isCancelled: false };
  const body = new ReadableStream({
    pull(controller) {
      taken.pieces += 1;
      controller.enqueue(new Uint8Array(pieceBytes));
    },
    cancel() {
      taken.isCancelled = true;
    },
  });
  return { body, taken };
}

it("head, attachment and body arrive, and the answer comes back", async () => {
  serve(({ head, attachment, body }) => ({
    head: { head, attachment: attachment.toString(), bytes: body.length },
    body: new Response("first second").body,
  }));
  const answer = await ask({ attachment: Buffer.from("props"), body: Buffer.alloc(2_000_000, "x") });
  expect(answer.head).toEqual({ head: { a: "ü\u{1f375}" }, attachment: "props", bytes: 2_000_000 });
  expect(await text(answer.body ?? Readable.from([]))).toBe("first second");
});

it("an answer without a body has none", async () => {
  let released = 0;
  serve(() => ({ head: null, body: null, release: () => void (released += 1) }));
  expect(await ask()).toEqual({ head: null, body: null });
  expect(released).toBe(1);
});

it("an error of the other node is the error of the caller", async () => {
  serve(() => {
    throw new SignalboxError("agent_call_cycle", { message: "a waits for b" });
  });
  await expect(ask()).rejects.toMatchObject({
    id: "agent_call_cycle",
    message: "a waits for b",
    status: 409,
  });
});

it("a slow reader slows the body down at the other node", async () => {
  const { body, taken } = endless(64 * 1024);
  serve(() => ({ head: null, body }));
  const answer = await ask();
  let before = -1;
  // Until nothing moves any more: the window and the buffers are full.
  while (taken.pieces !== before) {
    before = taken.pieces;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(taken.pieces).toBeLessThan(20);
  answer.body?.destroy();
  await expect.poll(() => taken.isCancelled).toBe(true);
});

it("a reader that goes away cancels the body, and the instance is released", async () => {
  const { body, taken } = endless(10);
  let isReleased = false;
  serve(() => ({ head: null, body, release: () => void (isReleased = true) }));
  const answer = await ask();
  answer.body?.destroy();
  await expect.poll(() => taken.isCancelled && isReleased).toBe(true);
});

it("a caller that gives up before the answer aborts the work", async () => {
  const started = Promise.withResolvers<AbortSignal>();
  serve(({ signal }) => {
    started.resolve(signal);
    return new Promise<ExchangeReply>(() => undefined);
  });
  const caller = new AbortController();
  const answer = ask({ signal: caller.signal });
  const signal = await started.promise;
  caller.abort(new Error("gone"));
  await expect(answer).rejects.toThrow("gone");
  if (!signal.aborted) await once(signal, "abort");
});

it("an answer that comes too late for its caller is given up", async () => {
  const { body, taken } = endless(10);
  const late = Promise.withResolvers<ExchangeReply>();
  const started = Promise.withResolvers<AbortSignal>();
  let isReleased = false;
  serve(({ signal }) => {
    started.resolve(signal);
    return late.promise;
  });
  const caller = new AbortController();
  const answer = ask({ signal: caller.signal });
  const signal = await started.promise;
  caller.abort();
  await expect(answer).rejects.toThrow();
  await expect.poll(() => signal.aborted).toBe(true);
  late.resolve({ head: null, body, release: () => void (isReleased = true) });
  await expect.poll(() => taken.isCancelled && isReleased).toBe(true);
});

it("a body that fails at the other node does not look complete", async () => {
  serve(() => ({
    head: null,
    body: new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from("half"));
        controller.error(new Error("pump broke"));
      },
    }),
  }));
  const answer = await ask();
  await expect(text(answer.body ?? Readable.from([]))).rejects.toThrow("pump broke");
});

it("a link that breaks ends the answer on both sides", async () => {
  const { body, taken } = endless(10);
  serve(() => ({ head: null, body }));
  const answer = await ask();
  const failure = once(answer.body ?? Readable.from([]), "error");
  nodes.one.links.to("2")?.close({ code: "broken", message: "test" });
  await failure;
  await expect.poll(() => taken.isCancelled).toBe(true);
});

it("a request beyond the memory of the other node is refused and not run", async () => {
  let runs = 0;
  serve(() => {
    runs += 1;
    return { head: runs, body: null };
  }, 1000);
  await expect(ask({ body: Buffer.alloc(2000) })).rejects.toMatchObject({ id: "overloaded" });
  expect(runs).toBe(0);
  expect((await ask({ body: Buffer.alloc(900) })).head).toBe(1);
  expect((await ask({ body: Buffer.alloc(900) })).head).toBe(2);
});

it("an answer that has no end does not hold the memory of its request", async () => {
  const { body, taken } = endless(10);
  const bodies = [body, null];
  serve(() => ({ head: null, body: bodies.shift() ?? null }), 1000);
  const streaming = await ask({ body: Buffer.alloc(900) });
  await ask({ body: Buffer.alloc(900) });
  streaming.body?.destroy();
  await expect.poll(() => taken.isCancelled).toBe(true);
});

it("200 answers stream at the same time", async () => {
  serve(({ head }) => ({ head: null, body: new Response(`${String(head)}:`.repeat(50_000)).body }));
  const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => ask({ head: i })));
  const texts = await Promise.all(answers.map(({ body }) => text(body ?? Readable.from([]))));
  expect(texts.every((received, i) => received === `${i}:`.repeat(50_000))).toBe(true);
});

it("a node without a link is not asked, and one without the service refuses", async () => {
  await expect(
    openExchange(nodes.one.network, "9", { name: "test", head: null, body: null }),
  ).rejects.toMatchObject({
    code: "unreachable",
  });
  await expect(ask()).rejects.toBeInstanceOf(LinkError);
});

it.each(["nonsense", ""])("the payload %j is refused", async (payload) => {
  serve(() => ({ head: null, body: null }));
  const stream = nodes.one.network.linkTo("2")?.openStream("test", Buffer.from(payload));
  const failure = await new Promise<string>((resolve) =>
    stream?.start({
      onData: () => resolve("data"),
      onEnd: () => resolve("end"),
      onFailure: ({ code }) => resolve(code),
    }),
  );
  expect(failure).toBe("internal");
});
