/**
 * Processes that a test run has left: its tests end what they start, but a test runner that crashes or is killed ends nothing. They are known by
 * the temporary folder in their environment, which only Linux shows.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";

const PROCESSES = "/proc";

/** Ends all whose temporary folder is this one, and returns what they were. */
export function endProcessesOf(folder: string): string[] {
  if (!existsSync(`${PROCESSES}/self/environ`)) return [];
  return readdirSync(PROCESSES)
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      const variables = read(pid, "environ").split("\0");
      if (!variables.includes(`TMPDIR=${folder}`)) return [];
      const command = read(pid, "cmdline").replaceAll("\0", " ").trim();
      return end(Number(pid)) ? [`${pid} ${command}`] : [];
    });
}

/** Empty if it is another user's, or has ended. */
function read(pid: string, file: "cmdline" | "environ"): string {
  try {
    return readFileSync(`${PROCESSES}/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}

function end(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch {
    return false;
  }
}
