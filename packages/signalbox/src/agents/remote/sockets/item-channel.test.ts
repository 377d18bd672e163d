import { afterEach, beforeEach, expect, it } from "vitest";
import type { LinkStream } from "../../../engines/node-link/index.ts";
import { openPair } from "../../../engines/node-link/links-fixture.ts";
import { ItemChannel, readItems } from "./item-channel.ts";
import { encodeItem, ITEM_KINDS } from "./socket-items.ts";

let onStream: (received: number, stream: LinkStream) => void;
let current: LinkStream | null;
let pair: Awaited<ReturnType<typeof openPair>>;
beforeEach(async () => {
  current = null;
  pair = await openPair({
    onCall: () => Buffer.alloc(0),
    onStream: (_name, payload, stream) => onStream(Number(payload.toString()), stream),
  });
});
afterEach(() => pair.close());

const KIND = ITEM_KINDS.message;
const item = (text: string) => ({ encode: () => encodeItem(KIND, Buffer.from(text)) });
const until = async (isTrue: () => boolean) => {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 1));
};

/** Attaches both channels to a new stream, as the edge and the owner do: each learns how many items the other has. */
async function join(edge: ItemChannel, owner: ItemChannel): Promise<void> {
  // Only a stream that broke is continued.
  if (current !== null && edge.detach(current)) current.reset();
  await until(() => pair.one.to("2") !== null && pair.two.to("1") !== null);
  onStream = (received, stream) => {
    owner.attach(stream, received, encodeItem(ITEM_KINDS.welcome, Buffer.from(String(owner.received))));
    readItems(stream, {
      onItem: (arrived) => owner.deliver(stream, arrived),
      onEnd: () => owner.detach(stream),
      onDrain: () => owner.drained(stream),
    });
  };
  const stream = pair.one.to("2")?.openStream("x", Buffer.from(String(edge.received)));
  if (stream === undefined) throw new Error("there is no link");
  current = stream;
  let isWelcome = false;
  await new Promise<void>((resolve) => {
    readItems(stream, {
      onItem: (arrived) => {
        if (isWelcome) edge.deliver(stream, arrived);
        else {
          isWelcome = true;
          edge.attach(stream, Number(arrived.payload.toString()));
          resolve();
        }
      },
      onEnd: () => {
        edge.detach(stream);
        resolve();
      },
      onDrain: () => edge.drained(stream),
    });
  });
}

it("encodes no more than the other side reads, and sends the rest in order when it reads again", async () => {
  const received: number[] = [];
  const [edge, owner] = [
    new ItemChannel(({ payload }) => received.push(payload.readUInt32LE())),
    new ItemChannel(() => undefined),
  ];
  await join(edge, owner);
  current?.pause();
  let encoded = 0;
  const count = 100;
  for (let i = 0; i < count; i++) {
    const bytes = Buffer.alloc(50_000);
    bytes.writeUInt32LE(i);
    owner.send({
      encode: () => {
        encoded += 1;
        return encodeItem(KIND, bytes);
      },
    });
    owner.flush();
  }
  // A window, and what was on its way to become one.
  expect(encoded).toBeLessThan(20);
  current?.resume();
  await until(() => received.length === count);
  expect(received).toEqual(Array.from({ length: count }, (_, i) => i));
  expect(encoded).toBe(count);
});

it("delivers every item once and in order, although the link breaks again and again", async () => {
  const [atOwner, atEdge]: [string[], string[]] = [[], []];
  const owner = new ItemChannel(({ payload }) => atOwner.push(payload.toString()));
  const edge = new ItemChannel(({ payload }) => atEdge.push(payload.toString()));
  let arrived = 0;
  const count = 400;
  for (let i = 0; i < count; i++) {
    // Long ones are still on their way when the link breaks.
    edge.send({ ...item(`${i} ${"x".repeat((i % 7) * 5000)}`), onArrived: () => (arrived += 1) });
    owner.send(item(`${i}`));
    if (i % 40 === 0) {
      await join(edge, owner);
      for (let turn = 0; turn < i % 3; turn++) await new Promise((resolve) => setImmediate(resolve));
      if (i % 80 === 0) pair.one.to("2")?.close({ code: "broken", message: "cut" });
    }
  }
  await join(edge, owner);
  await until(() => atOwner.length >= count && atEdge.length >= count && arrived >= count);
  const expected = Array.from({ length: count }, (_, i) => String(i));
  expect(atOwner.map((text) => text.split(" ")[0])).toEqual(expected);
  expect(atEdge).toEqual(expected);
  expect(arrived).toBe(count);
});

it("an impossible count of the other side is refused", async () => {
  const owner = new ItemChannel(() => undefined);
  const refused = new Promise((resolve) => {
    onStream = (received, stream) => {
      try {
        owner.attach(stream, received);
      } catch (error) {
        resolve(error);
      }
    };
  });
  pair.one.to("2")?.openStream("x", Buffer.from("17"));
  expect(await refused).toMatchObject({ name: "ItemError" });
});

it("garbage ends the stream with a failure that both sides see", async () => {
  const ends: (string | undefined)[] = [];
  onStream = (_received, stream) =>
    readItems(stream, {
      onItem: () => undefined,
      onDrain: () => undefined,
      onEnd: (failure) => ends.push(failure?.code),
    });
  const stream = pair.one.to("2")?.openStream("x", Buffer.from("0"));
  if (stream === undefined) throw new Error("there is no link");
  readItems(stream, {
    onItem: () => undefined,
    onDrain: () => undefined,
    onEnd: (failure) => ends.push(failure?.code),
  });
  stream.write(Buffer.from([255, 255, 255, 255, 1]));
  await until(() => ends.length === 2);
  expect(ends).toEqual(["defect", "defect"]);
});
