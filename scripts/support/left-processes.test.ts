import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { endProcessesOf } from "./left-processes.ts";

const WAITING = "process.stdout.write('waits'); setInterval(() => undefined, 1000)";

it("ends what has the folder of the run, and nothing else", async () => {
  const folder = `/tmp/a-run-${process.pid}`;
  const [left, other] = await Promise.all([start(folder), start(`${folder}0`)]);
  try {
    expect(endProcessesOf(folder)).toEqual([`${left.pid} ${process.execPath} --eval ${WAITING}`]);
    expect(await once(left, "exit")).toEqual([null, "SIGKILL"]);
    expect([other.exitCode, other.signalCode]).toEqual([null, null]);
    expect(endProcessesOf(folder)).toEqual([]);
  } finally {
    other.kill();
  }
});

async function start(folder: string) {
  const child = spawn(process.execPath, ["--eval", WAITING], {
    env: { TMPDIR: folder },
    stdio: ["ignore", "pipe", "ignore"],
  });
  await once(child.stdout, "data");
  return child;
}
