import * as fc from "fast-check";
import { expect, it } from "vitest";
import { callRecord } from "./call-log-fixture.ts";
import { packedRows } from "./packed-row.ts";
import type { RowMemory } from "./row-batch.ts";
import { type QueuedBatch, RowQueue } from "./row-queue.ts";

/** The body of each call of a batch, which identifies the call. */
function bodies({ batch }: QueuedBatch): string[] {
  return Array.from(packedRows([batch]), (call) =>
    Buffer.from(call.responseBody ?? [])
      .toString()
      .trimEnd(),
  );
}

it("passes every call to the writer once and in order, and keeps its bytes until it is released", () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("add" as const), bytes: fc.constantFrom(10, 3000, 60_000, 400_000) }),
    fc.constant({ kind: "take" as const }),
    fc.constant({ kind: "release" as const }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const queue = new RowQueue();
      const held: { queued: QueuedBatch; expected: string[] }[] = [];
      let added = 0;
      let taken = 0;
      for (const one of steps) {
        if (one.kind === "add") {
          added += 1;
          queue.add(
            callRecord({ requestBody: null, responseBody: Buffer.from(String(added).padEnd(one.bytes)) }),
          );
        } else if (one.kind === "take") {
          for (const queued of queue.takeBatches()) {
            const expected = Array.from({ length: queued.position - taken }, (_, i) => String(taken + i + 1));
            taken = queued.position;
            held.push({ queued, expected });
          }
          expect(taken).toBe(added);
        } else {
          const first = held.shift();
          if (first !== undefined) queue.release(first.queued.position);
        }
        for (const { queued, expected } of held) expect(bodies(queued)).toEqual(expected);
        expect(queue.unreleased.map((queued) => queued.position)).toEqual(
          held.map(({ queued }) => queued.position),
        );
      }
      for (const queued of queue.takeBatches()) held.push({ queued, expected: [] });
      queue.release(added);
      expect(queue.length).toBe(0);
      expect(queue.bodyBytes).toBe(0);
    }),
    { numRuns: 60 },
  );
});

it("reuses a piece of memory when its rows are committed", () => {
  const queue = new RowQueue();
  const pieces = new Set<RowMemory>();
  for (let round = 0; round < 50; round++) {
    for (let i = 0; i < 3; i++) {
      queue.add(callRecord({ requestBody: null, responseBody: Buffer.alloc(100_000) }));
    }
    for (const { batch, position } of queue.takeBatches()) {
      pieces.add(batch.memory);
      queue.release(position);
    }
  }
  expect(pieces.size).toBeLessThanOrEqual(3);
});
