import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { SECOND_TRY_VARIABLE, SecondTryReporter } from "./second-try.ts";

const NOT_STARTED = { message: "[vitest-pool]: Failed to start forks worker for test files /b.test.ts." };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-second-try-"));
  vi.stubEnv(SECOND_TRY_VARIABLE, join(folder, "list"));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

/** The list after a run of two files, and of those that it names. */
function listed(
  states: Readonly<Record<string, string>>,
  errors: readonly { message: string }[] = [],
): unknown {
  const reporter = new SecondTryReporter();
  reporter.onTestRunStart([{ moduleId: "/a.test.ts" }, { moduleId: "/b.test.ts" }]);
  const files = Object.entries(states).map(([moduleId, state]) => ({ moduleId, state: () => state }));
  reporter.onTestRunEnd(files, errors);
  const list = join(folder, "list");
  return existsSync(list) ? JSON.parse(readFileSync(list, "utf8")) : null;
}

it("lists the files that failed", () => {
  expect(listed({ "/a.test.ts": "passed", "/b.test.ts": "failed" })).toEqual({
    failed: ["/b.test.ts"],
    notStarted: [],
  });
});

it("lists the files that were not run, whether the runner knows them or not", () => {
  const expected = { failed: [], notStarted: ["/b.test.ts"] };
  expect(listed({ "/a.test.ts": "passed" }, [NOT_STARTED])).toEqual(expected);
  expect(listed({ "/a.test.ts": "passed", "/b.test.ts": "queued" }, [NOT_STARTED])).toEqual(expected);
});

it.each(["faults", "hostile", "chaos"])("a run in which a test of %s failed has failed", (name) => {
  const file = `/clone/test/${name}/x.test.ts`;
  expect(listed({ "/a.test.ts": "passed", "/b.test.ts": "failed", [file]: "failed" })).toBeNull();
});

it("a run in which many files failed has failed", () => {
  const files = (count: number) => ({
    "/a.test.ts": "passed",
    "/b.test.ts": "passed",
    ...Object.fromEntries(Array.from({ length: count }, (_, i) => [`/${i}.test.ts`, "failed"])),
  });
  expect(listed(files(21))).toBeNull();
  expect(listed(files(20))).toMatchObject({ failed: { length: 20 } });
});

it.each([
  ["a run without an error", { "/a.test.ts": "passed", "/b.test.ts": "passed" }, []],
  ["a run with another error", { "/a.test.ts": "passed" }, [NOT_STARTED, { message: "odd" }]],
])("%s has no list", (_, states, errors) => {
  expect(listed(states, errors)).toBeNull();
});
