import * as fc from "fast-check";
import { expect, it } from "vitest";
import { type Running, RunningCalls } from "./running-calls.ts";

it("cancels exactly the calls that were added and not deleted, also when that deletes them", () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 20 }), { maxLength: 60 }), (picks) => {
      const running = new RunningCalls();
      const expected: Running[] = [];
      const cancelled = new Set<Running>();
      for (const pick of picks) {
        if (pick < 12 || expected.length === 0) {
          const call: Running = {
            place: -1,
            cancel() {
              cancelled.add(call);
              running.delete(call);
            },
          };
          running.add(call);
          expected.push(call);
        } else {
          const [gone] = expected.splice(pick % expected.length, 1);
          if (gone !== undefined) running.delete(gone);
        }
      }
      running.cancelAll();
      expect(cancelled).toEqual(new Set(expected));
    }),
  );
});
