/** Tests of durability, money and access have no second try (decision 0137): one lost write, or one stranger let in, is a defect. */
import { expect, vi } from "vitest";

const PATTERN = /\/test\/(?:faults|hostile)\//;
/** The runner reads `retry` from here, but the type of the options lacks it; `test/hostile/no-second-try.test.ts` watches that. */
const OPTIONS: object = { retry: 0 };

if (PATTERN.test(expect.getState().testPath ?? "")) vi.setConfig(OPTIONS);
// The worker may have run such a test before.
else vi.resetConfig();
