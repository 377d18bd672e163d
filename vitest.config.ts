import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { SecondTryReporter } from "./scripts/support/second-try-reporter.ts";

export default defineConfig({
  test: {
    include: [
      "packages/*/src/**/*.test.ts",
      "test/**/*.test.ts",
      "scripts/**/*.test.ts",
      "bench/**/*.test.ts",
    ],
    // A test that waits for a real process or browser on a busy two-core machine needs room; nothing asserts on time.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 20_000 } },
    // Files wait for servers and browsers more than they compute, so two at once pay off even on two cores.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    // A test of real processes can meet a pause of the machine. The second try is reported with the error of the first.
    retry: 1,
    setupFiles: ["scripts/support/no-second-try.ts"],
    reporters: [new SecondTryReporter(), "default"],
  },
});
