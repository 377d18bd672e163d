/** What the examples do without a page, and over time; example-pages.test.ts opens their pages. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Device, Fleet } from "../../examples/device-fleet/agents.ts";
import { startAgents } from "../../packages/signalbox/src/testing/index.ts";
import { atNoon } from "../support/noon.ts";
import { runExample, type RunningExample } from "./run-example.ts";

const EXAMPLES = join(import.meta.dirname, "../../examples");

let folder: string;
const running: RunningExample[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-examples-"));
});

afterAll(async () => {
  await Promise.all(running.map((example) => example.stop()));
  await rm(folder, { recursive: true, force: true });
});

function startIn(environment: Record<string, string>, name: string, ...args: string[]): RunningExample {
  const data = join(folder, `${name}-${running.length}`);
  const example = runExample(name, ["--port", "0", "--data-dir", data, ...args], environment);
  running.push(example);
  return example;
}

it("support inbox: its own tests pass", async () => {
  const child = spawn("npm", ["test", "--silent", "-w", "@signalbox/example-support-inbox"], {
    cwd: join(EXAMPLES, ".."),
    stdio: ["ignore", "pipe", "inherit"],
  });
  const output = child.stdout.setEncoding("utf8").toArray();
  expect([await once(child, "exit").then(([code]) => code as number), (await output).join("")]).toEqual([
    0,
    expect.stringMatching(/pass 4/),
  ]);
});

it("device fleet: a device is silent a minute after its last report, also across a crash", async () => {
  const agents = await startAgents({ config: join(EXAMPLES, "device-fleet/signalbox.config.ts") });
  const fleet = agents.get<Fleet>("Fleet", "all");
  const boiler = agents.get<Device>("Device", "boiler");
  const report = (temperature: number) =>
    agents.webhook("devices", { payload: { device: "boiler", temperature } });
  expect((await report(20)).status).toBe(200);
  await agents.advance(50_000);
  await report(21);
  await agents.advance(50_000);
  expect(await fleet.state()).toMatchObject({ online: 1 });
  await agents.crash();
  await agents.advance(10_000);
  expect(await fleet.state()).toMatchObject({ online: 0, devices: { boiler: { temperature: 21 } } });
  await report(22);
  expect(await fleet.state()).toMatchObject({ online: 1 });
  expect((await boiler.call("readings")).map(({ temperature }) => temperature)).toEqual([20, 21, 22]);
  await agents.advance(40 * 24 * 3_600_000);
  expect(await boiler.sql("SELECT * FROM reading")).toEqual([]);
  await agents.close();
});

it("tenants: a budget refuses calls of its tenant only, and cost is added up by tag", async () => {
  // The budgets are for a day.
  const example = startIn(atNoon(), "tenants", "--once");
  expect(await example.ended()).toBe(0);
  const output = example.output();
  expect(output).toContain("acme: 8 calls answered, 0 refused by the budget");
  expect(output).toMatch(/hobby: [1-7] calls answered, [1-7] refused by the budget/);
  expect(output).toMatch(/Cost by plan\n {2}team +16 calls {2}\$0\.00\d+\n {2}free/);
});
