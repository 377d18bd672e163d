import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StateMirror } from "./state-mirror.ts";

describe("StateMirror", () => {
  it("equals the server's state after any sequence of accepted and rejected updates, once all are decided", () => {
    // A server that rejects negative numbers and sends its state after each rejection; its frames arrive after any number of sends.
    const update = fc.record({ value: fc.integer({ min: -3, max: 3 }), verdictsNow: fc.nat({ max: 4 }) });
    fc.assert(
      fc.property(fc.array(update, { maxLength: 20 }), (updates) => {
        const mirror = new StateMirror<{ n: number; at: number }>();
        let truth = { n: 0, at: -1 };
        mirror.receive(truth);
        const onTheWay: { n: number; at: number }[] = [];
        const decide = (count: number) => {
          for (const next of onTheWay.splice(0, count)) {
            if (next.n >= 0) {
              truth = next;
            } else {
              mirror.refuse();
              mirror.receive({ ...truth });
            }
          }
        };
        for (const [at, { value, verdictsNow }] of updates.entries()) {
          mirror.sent({ n: value, at });
          onTheWay.push({ n: value, at });
          decide(verdictsNow);
        }
        decide(Infinity);
        expect(mirror.current).toEqual(truth);
      }),
    );
  });

  it("reverts the newest update if no state follows the rejection", () => {
    const mirror = new StateMirror<string>();
    mirror.receive("base");
    mirror.sent("a");
    mirror.sent("b");
    mirror.refuse();
    expect(mirror.current).toBe("a");
  });

  it("treats null as a state", () => {
    const mirror = new StateMirror<string | null>();
    mirror.receive("base");
    mirror.sent(null);
    expect(mirror.current).toBeNull();
  });

  it("drops updates sent on a lost connection when the next one sends the state, but keeps unsent updates", () => {
    const mirror = new StateMirror<string>();
    mirror.sent("sent");
    mirror.keep("waiting");
    mirror.disconnect(true);
    mirror.receive("truth");
    expect(mirror.current).toBe("waiting");
    mirror.sent("waiting");
    mirror.refuse();
    expect(mirror.current).toBe("truth");
  });
});
