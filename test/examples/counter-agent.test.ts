import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runCliProcess, startServerProcess } from "../support/server-process.ts";

const MODULE = join(import.meta.dirname, "../../examples/counter-agent/agent.ts");

it("the counter agent answers the commands of its README", async () => {
  const cwd = await mkdtemp(join(tmpdir(), "signalbox-counter-"));
  const server = await startServerProcess(["--agents", MODULE], { cwd });
  const run = async (...args: string[]) => (await runCliProcess(["agents", ...args], { cwd })).stdout;
  expect(await run("call", "counter-agent", "kitchen", "increment", "ann")).toBe("1\n");
  expect(JSON.parse(await run("call", "counter-agent", "kitchen", "leaders"))).toEqual([
    { by: "ann", hits: 1 },
  ]);
  expect(await run("show", "counter-agent", "kitchen")).toContain('"lastBy": "ann"');
  expect(await run("schedules", "counter-agent", "kitchen")).toContain("0 6 * * *");
  expect(await server.end("SIGTERM")).toBe(0);
  await rm(cwd, { recursive: true, force: true });
});
