import fc from "fast-check";
import { expect, it } from "vitest";
import { decodePacket, encodePacket, encodeStreamHead, PacketError, StreamHeadReader } from "./packet.ts";

const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: fc.nat(0xffff).map((c) => String.fromCharCode(c)) }),
);
const anyPacket = fc.record({
  kind: fc.nat(255),
  texts: fc.array(fc.option(anyText), { maxLength: 40 }),
  bytes: fc.uint8Array({ maxLength: 5000 }),
});

it("texts and bytes arrive as they were", () => {
  fc.assert(
    fc.property(anyPacket, ({ kind, texts, bytes }) => {
      const decoded = decodePacket(encodePacket(kind, texts, bytes));
      expect(decoded.kind).toBe(kind);
      expect(decoded.texts).toEqual(texts);
      expect(Buffer.compare(decoded.bytes, bytes)).toBe(0);
    }),
  );
});

it("bytes that are not a packet are refused, and never read beyond their end", () => {
  fc.assert(
    fc.property(anyPacket, fc.nat(), fc.uint8Array({ minLength: 1, maxLength: 4 }), (given, at, noise) => {
      const packet = encodePacket(given.kind, given.texts, given.bytes);
      const changed = Buffer.from(packet.subarray(0, at % (packet.length + 1)));
      changed.set(noise.subarray(0, changed.length), Math.max(0, changed.length - noise.length));
      try {
        const { texts, bytes } = decodePacket(changed);
        expect(texts.join("").length + bytes.length).toBeLessThanOrEqual(changed.length);
      } catch (error) {
        expect(error).toBeInstanceOf(PacketError);
      }
    }),
  );
});

it("the head of a stream is read however the bytes are split", () => {
  fc.assert(
    fc.property(anyPacket, fc.array(fc.nat()), ({ kind, texts, bytes }, cuts) => {
      const all = Buffer.concat([encodeStreamHead(encodePacket(kind, texts)), bytes]);
      const points = [...new Set([...cuts.map((cut) => cut % all.length), all.length])].toSorted(
        (a, b) => a - b,
      );
      const reader = new StreamHeadReader(1 << 20);
      let from = 0;
      for (const to of points) {
        const read = reader.read(all.subarray(from, to));
        from = to;
        if (read === null) continue;
        expect(read.packet.texts).toEqual(texts);
        expect(Buffer.concat([read.rest, all.subarray(to)])).toEqual(Buffer.from(bytes));
        return;
      }
      throw new Error("the head was not found");
    }),
  );
});

it("a head that is longer than the limit is refused before it has arrived", () => {
  const reader = new StreamHeadReader(100);
  expect(() => reader.read(encodeStreamHead(encodePacket(1, ["x".repeat(200)])).subarray(0, 8))).toThrow(
    PacketError,
  );
});
