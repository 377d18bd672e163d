import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { UNSTARTED_VARIABLE, UnstartedReporter } from "./unstarted-reporter.ts";

const UNSTARTED = { message: "[vitest-pool]: Failed to start forks worker for test files /b.test.ts." };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-unstarted-"));
  vi.stubEnv(UNSTARTED_VARIABLE, join(folder, "list"));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

/** The list after a run of two files. */
function listed(states: Readonly<Record<string, string>>, errors: readonly { message: string }[]): unknown {
  const reporter = new UnstartedReporter();
  reporter.onTestRunStart([{ moduleId: "/a.test.ts" }, { moduleId: "/b.test.ts" }]);
  const files = Object.entries(states).map(([moduleId, state]) => ({ moduleId, state: () => state }));
  reporter.onTestRunEnd(files, errors);
  const list = join(folder, "list");
  return existsSync(list) ? JSON.parse(readFileSync(list, "utf8")) : null;
}

it("lists the files that were not run, whether the runner knows them or not", () => {
  expect(listed({ "/a.test.ts": "passed" }, [UNSTARTED])).toEqual(["/b.test.ts"]);
  expect(listed({ "/a.test.ts": "passed", "/b.test.ts": "queued" }, [UNSTARTED])).toEqual(["/b.test.ts"]);
});

it.each([
  ["a run without an error", { "/a.test.ts": "passed", "/b.test.ts": "passed" }, []],
  ["a run in which a test failed, too", { "/a.test.ts": "failed" }, [UNSTARTED]],
  ["a run with another error", { "/a.test.ts": "passed" }, [UNSTARTED, { message: "odd" }]],
])("%s has no list", (_, states, errors) => {
  expect(listed(states, errors)).toBeNull();
});
