import { expect, it, onTestFinished } from "vitest";
import { LinkError } from "./link-failure.ts";
import type { LinkHandler } from "./link.ts";
import type { LinkStream } from "./link-stream.ts";
import { openLinks, openPair, peerOf, REFUSING } from "./links-fixture.ts";

/** Calls and streams that the test answers itself. */
class Held implements LinkHandler {
  readonly calls: ((answer: Uint8Array) => void)[] = [];
  readonly streams: LinkStream[] = [];

  onCall(): Promise<Uint8Array> {
    return new Promise((resolve) => this.calls.push(resolve));
  }

  onStream(_name: string, _payload: Buffer, stream: LinkStream): void {
    stream.start({ onData: () => undefined, onEnd: () => undefined, onFailure: () => undefined });
    this.streams.push(stream);
  }
}

async function pair(handler: LinkHandler) {
  const opened = await openPair(handler);
  onTestFinished(opened.close);
  return opened;
}

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "answered",
    (error: unknown) => (error instanceof LinkError ? error.code : String(error)),
  );

const NOTHING = Buffer.alloc(0);

it("a node that leaves waits until the answers have arrived; later calls are refused unsent", async () => {
  const held = new Held();
  const { one, two } = await pair(held);
  const large = Buffer.alloc(3_000_000, "x");
  const before = two.call("1", "work", NOTHING);
  const stream = two.to("1")?.openStream("work", NOTHING);
  let ended = 0;
  stream?.start({ onData: () => undefined, onEnd: () => (ended += 1), onFailure: () => undefined });
  stream?.end();
  await expect.poll(() => [held.calls.length, held.streams.length]).toEqual([1, 1]);
  let hasLeft = false;
  const left = one.leave(AbortSignal.timeout(60_000)).then(() => (hasLeft = true));
  await expect.poll(() => two.to("1")).toBe(null);
  expect(await codeOf(two.call("1", "work", NOTHING))).toBe("unreachable");
  expect(hasLeft).toBe(false);
  held.calls[0]?.(large);
  expect((await before).equals(large)).toBe(true);
  expect(hasLeft).toBe(false);
  held.streams[0]?.end();
  await left;
  await one.close();
  expect(ended).toBe(1);
  expect(held.calls).toHaveLength(1);
});

it("no call of a thousand under way is lost when the node leaves and closes its links", async () => {
  const served = new Set<string>();
  const { one, two } = await pair({
    ...REFUSING,
    onCall: async (_name, payload) => {
      served.add(payload.toString());
      await new Promise((resolve) => setImmediate(resolve));
      return payload;
    },
  });
  const answered = new Set<string>();
  const codes = new Set<string>();
  const send = async (id: string) => {
    try {
      answered.add(String(await two.call("1", "work", Buffer.from(id))));
    } catch (error) {
      codes.add(error instanceof LinkError ? error.code : String(error));
    }
  };
  const calls: Promise<void>[] = [];
  let stopped: Promise<void> | null = null;
  for (let i = 0; i < 1000; i++) {
    calls.push(send(String(i)));
    if (i === 500) stopped = one.leave(AbortSignal.timeout(60_000)).then(() => one.close());
    if (i % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all([...calls, stopped]);
  expect(answered).toEqual(served);
  expect([...codes]).toEqual(["unreachable"]);
});

it("the node that leaves can still call, and gives up waiting when its signal aborts", async () => {
  const held = new Held();
  const one = await openLinks("1", held);
  const two = await openLinks("2", { ...REFUSING, onCall: (_name, payload) => payload });
  onTestFinished(async () => {
    await Promise.all([one.close(), two.close()]);
  });
  one.setPeers([peerOf("2", two, false)]);
  two.setPeers([peerOf("1", one, true)]);
  await expect.poll(() => one.to("2") !== null && two.to("1") !== null).toBe(true);
  const unanswered = codeOf(two.call("1", "never", NOTHING));
  await expect.poll(() => held.calls.length).toBe(1);
  const deadline = new AbortController();
  const left = one.leave(deadline.signal);
  expect(String(await one.call("2", "echo", Buffer.from("hello")))).toBe("hello");
  deadline.abort();
  await left;
  await one.close();
  expect(await unanswered).toBe("broken");
});
