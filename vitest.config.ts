import { availableParallelism } from "node:os";
import { configDefaults, defineConfig } from "vitest/config";
import { LongestFirst } from "./scripts/support/longest-first.ts";
import { SuiteReporter } from "./scripts/support/suite-reporter.ts";

/** What is long by nature: many kills, power cuts, chaos, fuzzing, deployment files, published packages, other programs. */
const LONG = "{packages,test}/**/*.long.test.ts";
/** What shows nothing about a change that a long test does not show: for a job that runs every day (`npm run clients`). */
const DAILY = "test/coding-clients/*.daily.test.ts";
/**
 * Files that share a worker and what it has imported: a worker of its own costs a file that imports the service 3 s of CPU time. A file that
 * changes globals of the process cleans up after itself.
 */
const SHARED = ["packages/*/src/**/*.test.ts", "test/{browser,conformance,hostile}/**/*.test.ts"];
/** Attacks on the listener and what depends on it: they run a second time on `listener.engine: "node"`, by which requests are parsed by Node.js alone. */
const ON_BOTH_ENGINES = [
  "test/hostile/{crowded-listener,ended-credentials,gateway-memory,hosts-and-upgrades,left-connections,listener-refusals,pipelining}.test.ts",
  "test/hostile/{shares,unauthenticated-callers,untrusted-responses,websocket-bytes}.test.ts",
  "test/conformance/{gateway-streaming,listener,tls,webhook-intake}.test.ts",
];
/** They replace modules, which must not be imported yet. */
const REPLACES_MODULES = [
  "packages/signalbox/src/engines/call-log/versions.test.ts",
  "packages/signalbox/src/engines/instance-store/shared/cache-files.test.ts",
];
/** Most of these start programs, and import little. */
const OWN = ["test/!(browser|conformance|hostile)/**/*.test.ts", "{scripts,bench}/**/*.test.ts"];

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: "shared worker",
          include: SHARED,
          exclude: [...configDefaults.exclude, LONG, ...REPLACES_MODULES],
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: "node engine",
          include: ON_BOTH_ENGINES,
          env: { SIGNALBOX_TEST_ENGINE: "node" },
          isolate: false,
        },
      },
      {
        extends: true,
        test: { name: "own worker", include: OWN, exclude: [...configDefaults.exclude, LONG, DAILY] },
      },
      {
        extends: true,
        test: {
          name: "replaced modules",
          include: REPLACES_MODULES,
          experimental: { viteModuleRunner: true },
        },
      },
      { extends: true, test: { name: "long", include: [LONG] } },
      { extends: true, test: { name: "daily", include: [DAILY] } },
    ],
    // Nothing asserts on time. The limits only end what hangs, so they are longer than a machine may be paused or short of processor time: many minutes have been seen.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    expect: { poll: { timeout: 600_000 } },
    // Files wait for servers, databases and browsers a good part of their time, so four at once pay off even on two cores.
    maxWorkers: Math.max(4, availableParallelism()),
    sequence: { sequencer: LongestFirst },
    // Node loads the modules, as it does for a server: the transformer of Vite takes a fifth more CPU time. See docs/decisions/0254.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    globalSetup: ["scripts/support/postgres-template.ts", "scripts/support/compile-cache.ts"],
    reporters: [new SuiteReporter()],
  },
});
