/** Values on the wire arrive as a local transfer makes them. */
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { transferArguments } from "../../objects/rpc-values.ts";
import { createStub, targetOf } from "../../objects/rpc-stub.ts";
import type { Finds, Offers } from "./references.ts";
import { describeThrown, thrownOf } from "./wire-errors.ts";
import { decodeValue, encodeValue } from "./wire-values.ts";

const transferOne = (value: unknown): unknown => transferArguments([value], null)[0];

const offered: unknown[] = [];
const offer = (value: unknown) => offered.push(value) - 1;
const OFFERS: Offers = { sharesObjects: true, target: offer, signal: offer, socket: offer };
const FINDS: Finds = {
  target: (reference) => offered[reference] as never,
  signal: () => new AbortController().signal,
  socket: (reference) => offered[reference] as never,
  object: (address) => ({ object: address }),
};

function roundTrip(value: unknown): unknown {
  return decodeValue(encodeValue(transferOne(value), OFFERS), FINDS).value;
}

/** Everything that a clone can hold, with the keys that hurt. */
const leaf = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.integer(),
  fc.double(),
  fc.bigInt(),
  fc.boolean(),
  fc.constantFrom(null, undefined, -0),
  fc.date({ noInvalidDate: false }),
  fc.uint8Array(),
  fc.float64Array(),
  fc.int16Array(),
  fc.uint8Array().map((bytes) => bytes.slice().buffer),
  fc.uint8Array().map((bytes) => new DataView(bytes.slice().buffer)),
  fc.constantFrom(/a+/gi, /[^]/u),
  fc
    .tuple(fc.constantFrom(Error, TypeError, RangeError, SyntaxError), fc.string())
    .map(([type, message]) => new type(message)),
  fc.webUrl().map((url) => new URL(url)),
);
const key = fc.oneof(
  fc.string(),
  fc.constantFrom("__proto__", "then", "at", "kind", "constructor", "toJSON"),
);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    leaf,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(key, tie("value"), { maxKeys: 4, noNullPrototype: true }),
    fc.array(fc.tuple(leaf, tie("value")), { maxLength: 3 }).map((entries) => new Map(entries)),
    fc.array(tie("value"), { maxLength: 3 }).map((items) => new Set(items)),
  ),
}));

describe("a value", () => {
  test("arrives as a local transfer copies it", () => {
    fc.assert(
      fc.property(value, (given) => {
        // Not a matcher: those compare the property "constructor" as a class.
        expect(isDeepStrictEqual(roundTrip(given), transferOne(given))).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  test("keeps the identity of its parts", () => {
    fc.assert(
      fc.property(value, (shared) => {
        const holder: { a: unknown; list: unknown[]; self?: unknown } = { a: shared, list: [shared, shared] };
        holder.self = holder;
        const copy = roundTrip(holder) as typeof holder;
        expect(copy.self).toBe(copy);
        expect(Object.is(copy.a, copy.list[0]) && Object.is(copy.list[0], copy.list[1])).toBe(true);
      }),
    );
  });

  test("has stubs where functions and stubs were, also as keys of maps and among empty objects", async () => {
    const stub = createStub({ send: async (path) => path });
    const copy = roundTrip({
      empty: {},
      list: [{}, (n: number) => 2 * n],
      map: new Map([[stub, stub]]),
      set: new Set([{}]),
    }) as {
      empty: object;
      list: [object, (n: number) => Promise<number>];
      map: Map<object, object>;
      set: Set<object>;
    };
    expect(copy.empty).toEqual({});
    expect(copy.set).toEqual(new Set([{}]));
    expect(await copy.list[1](4)).toBe(8);
    const [[one, other] = []] = copy.map;
    expect(one).toBe(other);
    expect(targetOf(one ?? {})).toBeDefined();
  });

  test("of an error keeps cause, flags and the class of exceptions", () => {
    const cause = new TypeError("inner", { cause: "text" });
    const error = Object.assign(new AggregateError([new RangeError("one")], "outer", { cause }), {
      retryable: true,
    });
    const copy = thrownOf(describeThrown(error)) as AggregateError & { retryable?: boolean };
    expect(copy).toBeInstanceOf(AggregateError);
    expect(copy.retryable).toBe(true);
    expect(copy.errors[0]).toBeInstanceOf(RangeError);
    expect(copy.cause).toBeInstanceOf(TypeError);
    expect((copy.cause as Error).cause).toBe("text");
    const exception = roundTrip(new DOMException("no", "AbortError")) as DOMException;
    expect(exception).toBeInstanceOf(DOMException);
    expect(exception.name).toBe("AbortError");
  });
});
