/** Each fuzz target on its kept cases and on a short run of generated inputs, always the same; `npm run fuzz` makes long ones. */
import { describe, expect, it } from "vitest";
import { readCases } from "./fuzz/cases.ts";
import { attemptEach, fuzz } from "./fuzz/run-fuzz.ts";
import { FUZZ_TARGETS } from "./fuzz/targets.ts";

const SEED = 20_261_115;
/** A few seconds of work on a free machine. */
const TIMEOUT_MS = 180_000;

describe.each(FUZZ_TARGETS.map((target) => ({ name: target.name, target })))(
  "fuzzing of $name",
  ({ target }) => {
    it(
      "finds nothing in a short run",
      async () => {
        const { find } = await fuzz(target, SEED, (tried) => tried >= target.shortRun);
        expect(find).toBeNull();
      },
      TIMEOUT_MS,
    );

    const cases = readCases(target.name);
    if (cases.length > 0) {
      it(
        "holds what broke it once",
        async () => {
          expect(await attemptEach(target, cases)).toEqual([]);
        },
        TIMEOUT_MS,
      );
    }
  },
);
