import fc from "fast-check";
import { expect, it } from "vitest";
import { FRAME_KINDS, type Frame, FrameError, FrameReader, FrameWriter } from "./frame.ts";

function collect() {
  const written: Buffer[] = [];
  const target = { cork() {}, uncork() {}, write: (bytes: Buffer) => written.push(bytes) > 0 };
  return { written, writer: new FrameWriter(target) };
}

function readAll(bytes: Buffer, cuts: readonly number[], maxBytes = 1 << 20): Frame[] {
  const frames: Frame[] = [];
  const reader = new FrameReader(maxBytes);
  const points = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].toSorted(
    (a, b) => a - b,
  );
  for (let i = 1; i < points.length; i++) {
    reader.read(bytes.subarray(points[i - 1], points[i]), (frame) => frames.push(frame));
  }
  return frames;
}

it("reads the same frames however the bytes are split", () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ stream: fc.nat(0xffff_ffff), payload: fc.uint8Array({ maxLength: 40_000 }) }), {
        maxLength: 8,
      }),
      fc.array(fc.nat()),
      (frames, cuts) => {
        const { written, writer } = collect();
        for (const { stream, payload } of frames) writer.write(FRAME_KINDS.data, stream, payload);
        writer.flush();
        const read = readAll(Buffer.concat(written), cuts);
        expect(read.map(({ stream, payload }) => ({ stream, payload: Buffer.from(payload) }))).toEqual(
          frames.map(({ stream, payload }) => ({ stream, payload: Buffer.from(payload) })),
        );
      },
    ),
    { numRuns: 200 },
  );
});

it("refuses a frame above the limit as soon as its length is known", () => {
  const { written, writer } = collect();
  writer.write(FRAME_KINDS.data, 1, Buffer.alloc(101));
  writer.flush();
  const head = Buffer.concat(written).subarray(0, 9);
  expect(() => readAll(head, [], 100)).toThrow(FrameError);
  expect(() => readAll(head, [3, 5], 100)).toThrow(FrameError);
});

it("drops frames that were not flushed when it is closed", () => {
  const { written, writer } = collect();
  writer.write(FRAME_KINDS.data, 1, Buffer.from("x"));
  expect(writer.queuedBytes).toBeGreaterThan(0);
  writer.close();
  writer.flush();
  expect([written, writer.queuedBytes]).toEqual([[], 0]);
});
