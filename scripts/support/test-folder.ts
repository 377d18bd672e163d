/**
 * The temporary folder of a test run, in memory where the machine has enough of it. Tests open hundreds of data folders and PostgreSQL clusters;
 * on a disk, creating, syncing and deleting their files takes a seventh of the processor time and a quarter of the run. No test needs a disk:
 * those about power cuts and full disks bring their own.
 */
import { spawnSync } from "node:child_process";
import {
  accessSync,
  chmodSync,
  constants,
  mkdirSync,
  readdirSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";
import { endProcessesOf } from "./left-processes.ts";

const MEMORY = "/dev/shm";
/** A run has at most about 2 GB in this folder. */
const ENOUGH_BYTES = 6 * 1024 ** 3;
const NAME = /^signalbox-test-(\d+)$/;

/** What a killed run has left, processes and folders, ends here: folders in memory would stay until the next start of the machine. */
export function createTestFolder(): string {
  for (const parent of [MEMORY, tmpdir()]) removeLeftIn(parent);
  if (isUsable(MEMORY)) {
    const inMemory = createIn(MEMORY);
    if (canExecute(inMemory)) return inMemory;
    rmSync(inMemory, { recursive: true });
  }
  return createIn(tmpdir());
}

function isUsable(parent: string): boolean {
  try {
    accessSync(parent, constants.W_OK);
    const { bavail, bsize } = statfsSync(parent);
    return Math.min(bavail * bsize, freemem()) >= ENOUGH_BYTES;
  } catch {
    return false;
  }
}

function createIn(parent: string): string {
  const folder = join(parent, `signalbox-test-${process.pid}`);
  mkdirSync(folder);
  // PostgreSQL runs as another user if this one is root.
  chmodSync(folder, 0o1777);
  return folder;
}

/** Containers often forbid it in their folder in memory; tests install packages with commands. */
function canExecute(folder: string): boolean {
  const script = join(folder, "try.sh");
  writeFileSync(script, "#!/bin/sh\n", { mode: 0o755 });
  return spawnSync(script).status === 0;
}

function removeLeftIn(parent: string): void {
  try {
    for (const name of readdirSync(parent)) {
      const pid = NAME.exec(name)?.[1];
      // A container gives its first process the same number each time.
      if (pid !== undefined && (Number(pid) === process.pid || !isRunning(Number(pid))))
        removeRun(join(parent, name));
    }
  } catch {
    // Another user's, or no such folder.
  }
}

function removeRun(folder: string): void {
  endProcessesOf(folder);
  rmSync(folder, { recursive: true, force: true });
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
