/** A process that is alone: whatever happens to it, all work that it has accepted is done in the end, and nobody has to ask for it. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { patiently } from "../support/patience.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { openSmallDisk, type SmallDisk } from "../support/small-disk.ts";
import { SECRET } from "../support/webhook-sender.ts";
import { WORK_KINDS, type WorkKind, WorkOracle } from "../support/work-oracle.ts";

const PROGRAM = join(import.meta.dirname, "../worker/programs/work/src/server.ts");
const AGENTS = join(import.meta.dirname, "../fixtures/working-agents.ts");
const PRELOAD = pathToFileURL(join(import.meta.dirname, "../support/clock-preload.ts")).href;
const CONFIG = {
  agents: { access: "worker" as const, modules: [AGENTS], journalFileBytes: 64 * 1024, idleTimeoutMs: 2000 },
  webhooks: {
    answerWithinMs: 3000,
    sources: { tasks: { scheme: "generic" as const, agent: "tasker", secretVariable: "TASK_SECRET" } },
  },
};
/** Long enough that the fault comes first. */
const SOON_MS = 4000;

let folder: string;
let disk: SmallDisk;
let oracle: WorkOracle;
let server: ServerProcess;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-work-goes-on-"));
  disk = await openSmallDisk(64);
  oracle = await WorkOracle.open();
  await writeFile(join(folder, "config.json"), JSON.stringify(patiently(CONFIG)));
  server = await start();
});
afterEach(async () => {
  oracle.close();
  await server.kill();
  await disk.drop();
  await rm(folder, { recursive: true, force: true });
});

function start(): Promise<ServerProcess> {
  return startServerProcess(
    ["--data-dir", `${disk.folder}/data`, "--config", join(folder, "config.json"), "--worker", PROGRAM],
    {
      env: {
        SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN,
        TASK_SECRET: SECRET,
        ORACLE_URL: oracle.url,
        NODE_OPTIONS: `--import=${PRELOAD}`,
        SIGNALBOX_TEST_CLOCK_FILE: join(folder, "clock"),
      },
      through: disk.through,
    },
  );
}

const give = (kind: WorkKind, delayMs: number, instance?: string) =>
  oracle.start(server, kind, delayMs, SECRET, instance);
/** Some work of each kind, which the server accepts. */
const giveAll = async (delayMs: number) => {
  const given = await Promise.all(WORK_KINDS.flatMap((kind) => [give(kind, delayMs), give(kind, delayMs)]));
  expect(given).not.toContain(false);
};
const setClock = async (ms: number) => {
  await writeFile(join(folder, "clock"), String(ms));
  process.kill(server.pid, "SIGUSR2");
};

it("after kill -9 and a restart", async () => {
  await giveAll(SOON_MS);
  await server.end("SIGKILL");
  server = await start();
  await oracle.wait();
});

it("after a stop and a restart", async () => {
  await giveAll(SOON_MS);
  await server.end("SIGTERM");
  server = await start();
  await oracle.wait();
});

it("after the clock was set ahead by an hour", async () => {
  await giveAll(1_800_000);
  await setClock(3_600_000);
  await oracle.wait();
});

it("after the clock was set back by an hour, what waits for no time", async () => {
  const isAccepted = await Promise.all([
    ...Array.from({ length: 20 }, () => give("queue", 0, "one")),
    give("workflow", 0),
  ]);
  expect(isAccepted).not.toContain(false);
  await setClock(-3_600_000);
  await oracle.wait();
});

it("after a disk that was full again and again under load", async () => {
  oracle.patienceMs = 20_000;
  let isOver = false;
  let refused = 0;
  /** Few instances with queues, so that they are in use all the time; not too many of the others, which fill the disk for ever. */
  const load = async (kind: WorkKind, instance?: string) => {
    while (!isOver) {
      if (!(await give(kind, SOON_MS / 2, instance))) refused += 1;
      await sleep(instance === undefined ? 200 : 20);
    }
  };
  const loads = [
    ...["w1", "w2", "w3"].flatMap((name) => [load("queue", name), load("schedule", name)]),
    load("alarm"),
    load("workflow"),
    load("delivery"),
  ];
  for (let round = 0; round < 8; round += 1) {
    const before = refused;
    await disk.fill((round % 4) * 16);
    await expect.poll(() => refused, { interval: 20 }).toBeGreaterThan(before + round);
    await disk.makeRoom();
    const { queue, workflow } = oracle.accepted;
    await expect.poll(() => oracle.accepted.queue, { interval: 20 }).toBeGreaterThan(queue + 5);
    await expect.poll(() => oracle.accepted.workflow, { interval: 20 }).toBeGreaterThan(workflow);
    oracle.release();
  }
  isOver = true;
  oracle.releaseAll();
  await Promise.all(loads);
  for (const kind of WORK_KINDS) expect(oracle.accepted[kind]).toBeGreaterThan(0);
  await oracle.wait();
});
