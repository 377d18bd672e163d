import * as fc from "fast-check";
import { expect, it } from "vitest";
import { type Placed, PlaceList } from "./place-list.ts";

interface Running extends Placed {
  cancel(): void;
}

it("contains exactly the added and not deleted items, also if items are deleted during iteration", () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 20 }), { maxLength: 60 }), (picks) => {
      const running = new PlaceList<Running>();
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
      for (const call of running.all()) call.cancel();
      expect(running.all()).toEqual([]);
      expect(cancelled).toEqual(new Set(expected));
    }),
  );
});
