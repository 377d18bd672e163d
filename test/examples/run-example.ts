/** An example started with the npm command of its README. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Readable } from "node:stream";

export interface RunningExample {
  /** Resolves with the first match in the output; rejects if the process ends without one. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  output(): string;
  /** Resolves with the exit code when the process has ended by itself. */
  ended(): Promise<number | null>;
  stop(): Promise<void>;
}

export function runExample(
  name: string,
  args: readonly string[],
  environment: Record<string, string> = {},
): RunningExample {
  const child: ChildProcessByStdio<null, Readable, Readable> = spawn(
    "npm",
    ["start", "--silent", "-w", `@signalbox/example-${name}`, "--", ...args],
    {
      cwd: join(import.meta.dirname, "../.."),
      stdio: ["ignore", "pipe", "pipe"],
      // A separate process group, so that a signal reaches all processes as Ctrl-C in a terminal does; npm forwards
      // no signals.
      detached: true,
      env: { ...process.env, ...environment },
    },
  );
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      child.emit("printed");
    });
  }
  const closed = once(child, "close").then(([code]) => code as number | null);
  return {
    async printed(pattern) {
      for (;;) {
        const match = pattern.exec(output);
        if (match !== null) return match;
        const ended = await Promise.race([once(child, "printed").then(() => false), closed.then(() => true)]);
        if (ended) throw new Error(`the example ended without printing ${pattern.source}:\n${output}`);
      }
    },
    output: () => output,
    ended: () => closed,
    async stop() {
      const isRunning = child.exitCode === null && child.signalCode === null;
      if (child.pid !== undefined && isRunning) process.kill(-child.pid, "SIGTERM");
      await closed;
    },
  };
}
