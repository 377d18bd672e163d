import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./scripts/support/longest-first.ts";
import { SecondTryReporter } from "./scripts/support/second-try-reporter.ts";

/** Files without processes, threads or globals of their own: they share a worker and what it has imported, which saves a third of their time. */
const PLAIN = [
  "packages/{client,dashboard,protocol,translate}/src/**/*.test.ts",
  "packages/signalbox/src/{accounts,config,core,gateway,http}/**/*.test.ts",
];
const OTHERS = [
  "packages/*/src/**/*.test.ts",
  "test/**/*.test.ts",
  "scripts/**/*.test.ts",
  "bench/**/*.test.ts",
];

export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: "plain", include: PLAIN, isolate: false } },
      {
        extends: true,
        test: { name: "own worker", include: OTHERS, exclude: [...PLAIN, "**/node_modules/**"] },
      },
    ],
    // A test that waits for a real process or browser on a busy two-core machine needs room; nothing asserts on time.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 20_000 } },
    // Files wait for servers, databases and browsers a good part of their time, so three at once pay off even on two cores.
    maxWorkers: Math.max(3, availableParallelism()),
    sequence: { sequencer: LongestFirst },
    // A test of real processes can meet a pause of the machine. The second try is reported with the error of the first.
    retry: 1,
    globalSetup: ["scripts/support/postgres-template.ts"],
    setupFiles: ["scripts/support/no-second-try.ts"],
    reporters: [new SecondTryReporter(), "default"],
  },
});
