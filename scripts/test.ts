/**
 * `npm test`: everything that a change needs, in minutes. `npm run test:long` (`--long`): what is long by nature, `*.long.test.ts`. Other
 * arguments are passed to the test runner; files that they name run whichever kind they are.
 *
 * Before the tests, the dashboard is built if it is not current, and missing programs are fetched (`support/programs.ts`).
 */
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { endProcessesOf } from "./support/left-processes.ts";
import { CHROMIUM, OTHER_PROGRAMS, provide } from "./support/programs.ts";
import { createTestFolder } from "./support/test-folder.ts";

/** Names of projects in `vitest.config.ts`. */
const QUICK = ["shared worker", "node engine", "own worker", "replaced modules"];
const LONG = ["long"];
const DAILY = ["daily"];
const LONG_WORKERS = 8;

const args = process.argv.slice(2).filter((arg) => arg !== "--long");
const isLong = process.argv.includes("--long");
const files = args.filter((arg) => !arg.startsWith("-"));

spawnSync(process.execPath, [join(import.meta.dirname, "build-dashboard.ts"), "--if-stale"], {
  stdio: "inherit",
});

const missing = neededPrograms().filter((program) => !provide(program));
for (const { instructions } of missing) console.error(instructions);
process.exitCode = missing.length > 0 ? 1 : runTests();

function neededPrograms() {
  if (files.length > 0)
    return [CHROMIUM, ...OTHER_PROGRAMS].filter(({ usedBy }) => files.some((file) => usedBy.test(file)));
  return isLong ? [CHROMIUM, ...OTHER_PROGRAMS] : [CHROMIUM];
}

function runTests(): number {
  const projects = files.length > 0 ? [...QUICK, ...LONG, ...DAILY] : isLong ? LONG : QUICK;
  const selected = projects.flatMap((project) => ["--project", project]);
  const folder = createTestFolder();
  // A signal from a terminal reaches the test runner by itself, and this process goes on when the runner has ended.
  process.on("SIGINT", () => undefined);
  // Long tests wait for processes that start, end and time out more than they compute.
  const workers =
    projects === LONG && availableParallelism() < LONG_WORKERS ? [`--maxWorkers=${LONG_WORKERS}`] : [];
  const { status } = spawnSync("vitest", ["run", ...selected, ...workers, ...args], {
    stdio: "inherit",
    env: { ...process.env, TMPDIR: folder },
  });
  const left = endProcessesOf(folder);
  if (left.length > 0) console.error(`Left by the tests, and ended:\n  ${left.join("\n  ")}`);
  rmSync(folder, { recursive: true, force: true });
  return status ?? 1;
}
