/** Each fuzz target on its kept cases and on a short deterministic run; `npm run fuzz` makes long runs. */
import { describe, expect, it } from "vitest";
import { readCases } from "./fuzz/cases.ts";
import { attemptEach, fuzz } from "./fuzz/run-fuzz.ts";
import { FUZZ_TARGETS } from "./fuzz/targets.ts";

const SEED = 20_261_115;

describe.each(FUZZ_TARGETS.map((target) => ({ name: target.name, target })))(
  "fuzzing of $name",
  ({ target }) => {
    it("a short run finds no failure", async () => {
      const { find } = await fuzz(target, SEED, (tried) => tried >= target.shortRun);
      expect(find).toBeNull();
    });

    const cases = readCases(target.name);
    if (cases.length > 0) {
      it("kept cases cause no failure", async () => {
        expect(await attemptEach(target, cases)).toEqual([]);
      });
    }
  },
);
