import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readEventStream, type ServerSentEvent } from "./event-stream.ts";

function streamOf(chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
}

async function readAll(...chunks: readonly Uint8Array[]): Promise<ServerSentEvent[]> {
  const events: ServerSentEvent[] = [];
  for await (const event of readEventStream(streamOf(chunks))) events.push(event);
  return events;
}

const bytes = (text: string) => new TextEncoder().encode(text);

describe("readEventStream", () => {
  it.each([
    ["an event with a type", "event: turn\ndata: 1\n\n", [{ type: "turn", data: "1" }]],
    ["an event without a type", "data: 1\n\n", [{ type: "message", data: "1" }]],
    ["data of several lines", "data: 1\ndata:\ndata:2\n\n", [{ type: "message", data: "1\n\n2" }]],
    ["one removed leading space", "data:  x\n\n", [{ type: "message", data: " x" }]],
    ["comments and unknown fields", ": hello\nretry: 5\nid\ndata: 1\n\n", [{ type: "message", data: "1" }]],
    ["no event without data", "event: turn\n\ndata: 1\n\n", [{ type: "message", data: "1" }]],
    ["no event without a final empty line", "data: 1\n", []],
    [
      "all kinds of line ends",
      "data: 1\r\n\r\ndata: 2\r\rdata: 3\n\n",
      ["1", "2", "3"].map((data) => ({ type: "message", data })),
    ],
  ])("reads %s", async (_title, text, events) => {
    expect(await readAll(bytes(text))).toEqual(events);
  });

  it("reads the same events wherever the bytes are split", async () => {
    const line = fc.string({ unit: fc.constantFrom("a", ":", " ", "é", "😀") });
    const block = fc.record({ type: line, data: fc.array(line, { minLength: 1, maxLength: 3 }) });
    const end = fc.constantFrom("\n", "\r", "\r\n");
    await fc.assert(
      fc.asyncProperty(fc.array(block), end, fc.array(fc.nat()), async (blocks, lineEnd, cuts) => {
        const lines = blocks.flatMap(({ type, data }) => [
          `event: ${type}`,
          ...data.map((one) => `data: ${one}`),
          "",
        ]);
        const whole = bytes(lines.map((one) => one + lineEnd).join(""));
        const places = [0, ...cuts.map((cut) => cut % (whole.length + 1)), whole.length].toSorted(
          (a, b) => a - b,
        );
        const chunks = places.slice(1).map((place, i) => whole.subarray(places[i], place));
        expect(await readAll(...chunks)).toEqual(
          blocks.map(({ type, data }) => ({ type: type === "" ? "message" : type, data: data.join("\n") })),
        );
      }),
    );
  });

  it("cancels the body when the reader stops", async () => {
    let isCancelled = false;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(bytes("data: 1\n\n")),
      cancel: () => {
        isCancelled = true;
      },
    });
    for await (const { data } of readEventStream(body)) {
      expect(data).toBe("1");
      break;
    }
    expect(isCancelled).toBe(true);
  });
});
