import { array, assert, constantFrom, integer, property, string, uint8Array } from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeHello, decodeWelcome } from "./hello.ts";
import { decodeFacts, decodeOpened, encodeFacts } from "./opened-connection.ts";
import {
  decodeClose,
  decodeCount,
  decodeFrame,
  decodeMessage,
  decodeValue,
  encodeClose,
  encodeCount,
  encodeItem,
  encodeMessage,
  encodeReceivers,
  type Item,
  ItemError,
  ItemReader,
} from "./socket-items.ts";

const bytes = uint8Array().map((value) => Buffer.from(value));
const number = integer({ min: 0, max: 0xffff_ffff });

/** Reads what was cut into chunks of the given sizes. */
function readAll(whole: Buffer, sizes: readonly number[]): Item[] {
  const reader = new ItemReader();
  const items: Item[] = [];
  let offset = 0;
  for (let i = 0; offset < whole.length; i++) {
    const size = sizes[i % Math.max(1, sizes.length)] ?? whole.length;
    items.push(...reader.push(whole.subarray(offset, offset + size)));
    offset += size;
  }
  return items;
}

describe("items", () => {
  it("are read as they were written, however the stream is cut", () => {
    const items = array(
      array(bytes, { maxLength: 3 }).chain((pieces) => constantFrom({ pieces })),
      { maxLength: 8 },
    );
    assert(
      property(items, array(integer({ min: 1, max: 40 })), (written, sizes) => {
        const whole = Buffer.concat(written.flatMap(({ pieces }, i) => encodeItem(i, ...pieces)));
        const read = readAll(whole, sizes);
        expect(read.map(({ kind, payload }) => [kind, Buffer.from(payload)])).toEqual(
          written.map(({ pieces }, i) => [i, Buffer.concat(pieces)]),
        );
      }),
    );
  });

  it("keep frames, messages, closes and counts", () => {
    assert(
      property(array(number, { maxLength: 50 }), bytes, (to, frame) => {
        expect(decodeFrame(Buffer.concat([encodeReceivers(to), frame]))).toEqual({ to, frame });
      }),
      { numRuns: 30 },
    );
    assert(
      property(number, number, string({ unit: "binary" }), bytes, (connection, ticket, text, binary) => {
        for (const message of [text, binary]) {
          const item = { number: connection, ticket, message };
          expect(decodeMessage(Buffer.concat(encodeMessage(item)))).toEqual(item);
        }
      }),
      { numRuns: 30 },
    );
    assert(
      property(number, number, number, string({ unit: "binary" }), (connection, ticket, code, reason) => {
        const item = { number: connection, ticket, code, reason };
        expect(decodeClose(encodeClose(item))).toEqual(item);
      }),
    );
    assert(
      property(integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), (count) => {
        expect(decodeCount(encodeCount(count))).toBe(count);
      }),
    );
  });

  it("that are garbage cause an item error, and nothing else", () => {
    const decoders = [
      decodeFrame,
      decodeMessage,
      decodeClose,
      decodeCount,
      decodeValue,
      decodeOpened,
      decodeFacts,
      decodeHello,
      decodeWelcome,
      (payload: Buffer) => [...new ItemReader().push(payload)],
    ];
    assert(
      property(constantFrom(...decoders), bytes, (decode, payload) => {
        try {
          decode(payload);
        } catch (error) {
          expect(error).toBeInstanceOf(ItemError);
        }
      }),
      { numRuns: 1000 },
    );
  });
});

describe("the facts of a connection", () => {
  const facts = {
    tags: ["a", "b"],
    attachment: new Map([[1, new Date(0)]]),
    isReadonlyForAgent: true,
    hasProtocol: false,
    joinedAt: 5,
  };

  it("keep every value that can be cloned", () => {
    const state = { list: [1n, undefined, new Uint8Array([1])] };
    expect(decodeFacts(encodeFacts({ ...facts, state }))).toEqual({ ...facts, state });
  });

  it("lose a state that another node cannot have, and nothing else", () => {
    expect(decodeFacts(encodeFacts({ ...facts, state: { call: () => 1 } }))).toEqual({
      ...facts,
      state: null,
    });
  });
});
