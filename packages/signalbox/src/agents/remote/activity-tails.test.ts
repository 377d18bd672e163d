import { once } from "node:events";
import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { ActivityTails, endWhenMoved } from "./activity-tails.ts";

const REF = { account: "default", agent: "a", name: "n" };

function source(): Readable {
  return new Readable({ read: () => undefined });
}

/** What the tail has passed on so far. */
function collect(tail: Readable): { text: string } {
  const received = { text: "" };
  tail.on("data", (chunk: Buffer) => (received.text += chunk.toString()));
  return received;
}

it("a tail continues with the next source when one ends or fails, and passes on whole events only", async () => {
  const sources = [source(), source(), source()];
  const [first, second, third] = sources as [Readable, Readable, Readable];
  let opened = 0;
  const tail = new ActivityTails().follow(first, async () => {
    opened += 1;
    if (opened === 1) throw new Error("no owner yet");
    return opened === 2 ? second : third;
  });
  const received = collect(tail);
  first.push("event: a\ndata: 1\n\nevent: b\nda");
  first.push("ta: 2\n\nevent: cut");
  await expect.poll(() => received.text).toBe("event: a\ndata: 1\n\nevent: b\ndata: 2\n\n");
  first.destroy(new Error("the node was lost"));
  second.push("event: c\n\n");
  second.push(null);
  await expect.poll(() => received.text).toContain("event: c\n\n");
  third.push("event: d\n\n");
  await expect
    .poll(() => received.text)
    .toBe("event: a\ndata: 1\n\nevent: b\ndata: 2\n\nevent: c\n\nevent: d\n\n");
  tail.destroy();
  await expect.poll(() => third.destroyed).toBe(true);
});

it("a reader that leaves ends the source", async () => {
  const first = source();
  const tail = new ActivityTails().follow(first, () => Promise.reject(new Error("no")));
  tail.destroy();
  await expect.poll(() => first.destroyed).toBe(true);
});

it("closing ends all tails as complete, and opens no further source", async () => {
  const tails = new ActivityTails();
  let opened = 0;
  const first = source();
  const tail = tails.follow(first, async () => {
    opened += 1;
    return source();
  });
  collect(tail);
  tails.close();
  await once(tail, "end");
  expect([opened, first.destroyed]).toEqual([0, true]);
});

it("a source ends when its instance has moved", async () => {
  let owner: string | null = null;
  const placement = {
    find: async () => owner,
    learn: () => undefined,
    reach: () => Promise.reject(new Error("no")),
  };
  const stream = endWhenMoved(source(), REF, placement);
  await placement.find();
  expect(stream.destroyed).toBe(false);
  owner = "2";
  await once(stream, "close");
});
