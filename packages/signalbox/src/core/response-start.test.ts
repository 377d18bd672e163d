import { expect, it } from "vitest";
import { readStart } from "./response-start.ts";

it("a response that fits is whole", async () => {
  for (const text of ["", "abc"]) {
    const { bytes, isWhole } = await readStart(new Response(text), 3);
    expect([bytes.toString(), isWhole]).toEqual([text, true]);
  }
  expect(await readStart(new Response(null), 3)).toMatchObject({ isWhole: true });
});

it("of an endless response the beginning is read, and the sender is told to stop", async () => {
  let sent = 0;
  let isCancelled = false;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 1;
      controller.enqueue(Buffer.from("ab"));
    },
    cancel() {
      isCancelled = true;
    },
  });
  const { bytes, isWhole } = await readStart(new Response(endless), 5);
  expect([bytes.toString(), isWhole, isCancelled]).toEqual(["ababa", false, true]);
  expect(sent).toBeLessThan(6);
});

it("the rest is read up to a limit", async () => {
  let isCancelled = false;
  const body = (pieces: number) =>
    new ReadableStream<Uint8Array>({
      pull(controller) {
        pieces -= 1;
        if (pieces < 0) controller.close();
        else controller.enqueue(Buffer.from("ab"));
      },
      cancel() {
        isCancelled = true;
      },
    });
  const read = async (pieces: number) => {
    const { bytes, isWhole } = await readStart(new Response(body(pieces)), 3, 6);
    return [bytes.toString(), isWhole, isCancelled];
  };
  expect(await read(1)).toEqual(["ab", true, false]);
  expect(await read(3)).toEqual(["aba", false, false]);
  expect(await read(9)).toEqual(["aba", false, true]);
});
