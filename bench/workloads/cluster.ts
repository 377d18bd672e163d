/**
 * Instances on PostgreSQL against the embedded journal: the same turns, the same events, one process. Node.js has one core and PostgreSQL the
 * other; there is no HTTP and no network.
 */
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "pg";
import { openTestPostgres } from "../../test/support/test-postgres.ts";
import { readCpuTimes, totalUs } from "../support/cpu-times.ts";
import { roundsOf, sized } from "../support/quick.ts";
import { type Contender, ownFigure, type RunningContender, type Workload } from "../support/workload.ts";

const PROGRAM = join(import.meta.dirname, "../support/instance-events.ts");
const CORE = "0";
const POSTGRES_CORE = "1";
const EVENTS = sized(20_000);
const WAKES = sized(200);
const RESTORES = 10;

const WARM = "1,000 warm entities, 64 at a time";
const HELD = "the same, with an old snapshot open in PostgreSQL";
const WAKE = "wake on the same node";
const RESTORE = "restore of 600 KB on an empty machine";

/** The program on the core, driven line by line. */
async function startProgram(args: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-instances-"));
  chmodSync(folder, 0o755);
  const [engine = "", ...rest] = args;
  const command = [process.execPath, PROGRAM, engine, folder, ...rest];
  const child = spawn("taskset", ["-c", CORE, ...command], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  await lines.next();
  return {
    async send(line: string): Promise<Record<string, number>> {
      child.stdin.write(`${line}\n`);
      const { value } = (await lines.next()) as { value: string };
      return JSON.parse(value) as Record<string, number>;
    },
    async stop() {
      child.stdin.end();
      await new Promise((resolve) => child.once("exit", resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function startJournal(): Promise<RunningContender> {
  const program = await startProgram(["journal"]);
  await program.send(`events ${EVENTS}`);
  return {
    measure(scenario) {
      if (scenario === WARM) return program.send(`events ${EVENTS}`);
      return scenario === WAKE ? program.send(`wake ${WAKES}`) : Promise.resolve(null);
    },
    stop: () => program.stop(),
  };
}

async function startShared(): Promise<RunningContender> {
  const postgres = await openTestPostgres(["fsync=on", "shared_buffers=256MB", "max_wal_size=4GB"]);
  const admin = new Client({ connectionString: postgres.url });
  await admin.connect();
  const server = await pinServer(admin);
  const program = await startProgram(["shared", postgres.url]);
  await program.send(`events ${EVENTS}`);
  const walBytes = async () => {
    const { rows } = await admin.query<{ n: string }>("SELECT pg_current_wal_lsn() - '0/0' AS n");
    return Number(rows[0]?.n);
  };
  const sendEvents = async () => {
    const cpu = cpuOf(server);
    const wal = await walBytes();
    const result = await program.send(`events ${EVENTS}`);
    const postgresUs = (cpuOf(server) - cpu) / EVENTS;
    return { ...result, postgres: postgresUs, wal: ((await walBytes()) - wal) / EVENTS / 1024 };
  };
  return {
    async measure(scenario) {
      if (scenario === WARM) return sendEvents();
      if (scenario === WAKE) return program.send(`wake ${WAKES}`);
      if (scenario === RESTORE) return program.send(`restore ${RESTORES}`);
      const reader = new Client({ connectionString: postgres.url });
      await reader.connect();
      await reader.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM agent_owner");
      const result = await sendEvents();
      await reader.end();
      return result;
    },
    async stop() {
      await program.stop();
      await admin.end();
      await postgres.drop();
    },
  };
}

/** Moves the server to its core; its later processes inherit that. Returns the pid of the first process. */
async function pinServer(admin: Client): Promise<number> {
  const { rows } = await admin.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  const stat = readFileSync(`/proc/${rows[0]?.pid}/stat`, "utf8");
  const server = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  for (const pid of processesOf(server)) spawnSync("taskset", ["-a", "-cp", POSTGRES_CORE, String(pid)]);
  return server;
}

/** The server and its child processes. */
function processesOf(server: number): number[] {
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
        return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === server;
      } catch {
        // The process has ended meanwhile.
        return false;
      }
    });
  return [server, ...children.map(Number)];
}

function cpuOf(server: number): number {
  return processesOf(server).reduce((sum, pid) => sum + totalUs(readCpuTimes(pid)), 0);
}

const METRICS = [
  { name: "cpu", unit: "µs/event", better: "lower" },
  { name: "postgres", unit: "µs/event", better: "lower" },
  { name: "wal", unit: "KB/event", better: "lower" },
  { name: "events", unit: "1/s", better: "higher" },
  { name: "p50", unit: "ms", better: "lower", isDetail: true },
  { name: "p99", unit: "ms", better: "lower", isDetail: true },
] as const;
const TIME = [{ name: "ms", unit: "ms", better: "lower" }] as const;

const OURS = "on PostgreSQL";
const LOCAL = "embedded journal";
const contenders: readonly Contender[] = [
  { name: OURS, start: startShared },
  { name: LOCAL, start: startJournal },
];

export const workload: Workload = {
  name: "cluster",
  summary:
    "instances on PostgreSQL against the embedded journal, 4 KB events, Node.js and PostgreSQL on a core each",
  rounds: roundsOf(3),
  contenders,
  scenarios: [
    { name: WARM, metrics: METRICS },
    { name: HELD, metrics: METRICS },
    { name: WAKE, metrics: TIME },
    { name: RESTORE, metrics: TIME },
  ],
  headlines: [
    ownFigure(
      "of instances on PostgreSQL, Node.js and PostgreSQL on a core each",
      WARM,
      "events",
      "events/s",
      OURS,
    ),
  ],
  goals: [
    {
      text: "at least 65 % of the embedded journal's events/s, without HTTP",
      isMet: (median) =>
        (median(OURS, WARM, "events") ?? 0) >= 0.65 * (median(LOCAL, WARM, "events") ?? Infinity),
    },
    {
      text: "at most 60 µs more CPU time of Node.js for an event",
      isMet: (median) => (median(OURS, WARM, "cpu") ?? Infinity) <= (median(LOCAL, WARM, "cpu") ?? 0) + 60,
    },
    {
      text: "at most 50 µs of PostgreSQL and 3 KB of its WAL for an event",
      isMet: (median) =>
        (median(OURS, WARM, "postgres") ?? Infinity) <= 50 && (median(OURS, WARM, "wal") ?? Infinity) <= 3,
    },
    {
      text: "an old snapshot at most doubles the p99",
      isMet: (median) => (median(OURS, HELD, "p99") ?? Infinity) <= 2 * (median(OURS, WARM, "p99") ?? 0),
    },
    { text: "wake under 3 ms", isMet: (median) => (median(OURS, WAKE, "ms") ?? Infinity) < 3 },
    { text: "restore under 50 ms", isMet: (median) => (median(OURS, RESTORE, "ms") ?? Infinity) < 50 },
  ],
};
