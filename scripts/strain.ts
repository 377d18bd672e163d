/**
 * `npm run strain -- <kind> [arguments of npm test]`: the tests on a machine that is short of time. They must pass as on a quiet one.
 *
 * - `pauses`: everything stops for 0.1 to 10 s, again and again;
 * - `slow`: 0.8 of a core;
 * - `busy`: every core also has a process that never waits.
 *
 * Linux, root (control groups).
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ControlGroup } from "./support/control-group.ts";

const KINDS = ["pauses", "slow", "busy"];
const SLOW_CORES = 0.8;
const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 10_000;
/** Between two pauses. */
const MAX_RUN_MS = 40_000;
const BUSY = "for (;;);";

const [kind = "", ...args] = process.argv.slice(2);
if (KINDS.includes(kind)) process.exitCode = await run();
else {
  console.error(`usage: npm run strain -- ${KINDS.join("|")} [arguments of npm test]`);
  process.exitCode = 2;
}

async function run(): Promise<number> {
  const group = new ControlGroup(`signalbox-strain-${process.pid}`);
  if (kind === "slow") group.limitCores(SLOW_CORES);
  const test = [process.execPath, join(import.meta.dirname, "test.ts"), ...args];
  const child = spawn("sh", ["-c", group.wrap('"$@"'), "sh", ...test], { stdio: "inherit" });
  // Signals of a terminal reach the tests by themselves.
  const others = kind === "busy" ? startBusyProcesses() : [];
  const ended = new AbortController();
  const pauses = kind === "pauses" ? pauseAgainAndAgain(group, ended.signal) : null;
  try {
    const [code] = (await once(child, "exit")) as [number | null];
    return code ?? 1;
  } finally {
    for (const other of others) other.kill();
    ended.abort();
    await pauses;
    await removeWhenEmpty(group);
  }
}

function startBusyProcesses() {
  return Array.from({ length: availableParallelism() }, () => spawn(process.execPath, ["--eval", BUSY]));
}

/** Until the signal; the group is never left stopped. */
async function pauseAgainAndAgain(group: ControlGroup, signal: AbortSignal): Promise<void> {
  let pauses = 0;
  let pausedMs = 0;
  while (!signal.aborted) {
    await sleep(Math.random() * MAX_RUN_MS, null, { signal }).catch(() => undefined);
    if (signal.aborted) break;
    // As many short as long ones.
    const pauseMs = MIN_PAUSE_MS * (MAX_PAUSE_MS / MIN_PAUSE_MS) ** Math.random();
    group.freeze();
    await sleep(pauseMs);
    group.thaw();
    pauses += 1;
    pausedMs += pauseMs;
  }
  console.log(`${pauses} pauses, ${Math.round(pausedMs / 1000)} s in all`);
}

/** Processes that a test has killed may still be ending. */
async function removeWhenEmpty(group: ControlGroup): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    try {
      group.remove();
      return;
    } catch {
      await sleep(100);
    }
  }
  console.error("processes of the tests are still running");
}
