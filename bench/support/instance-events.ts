/**
 * The server of the workload `cluster`: instances that take events of 4 KB in turns, as a webhook agent does, on one of two engines. It reads commands
 * from standard input, one per line, and prints the result of each as JSON.
 *
 *   node instance-events.ts journal|shared <folder> [connection string]
 *
 *   events <n>   events over 1,000 warm instances, 64 at a time
 *   wake <n>     closes an instance and opens it again
 *   restore <n>  opens an instance of about 600 KB on an empty folder (shared only)
 */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { BASE_SCHEMA, RESERVED_NAMES } from "../../packages/signalbox/src/agents/index.ts";
import { sql } from "../../packages/signalbox/src/core/sql.ts";
import {
  type InstanceDatabase,
  type InstanceStore,
  openInstanceStore,
  openSharedStore,
} from "../../packages/signalbox/src/engines/instance-store/index.ts";
import { TurnRuntime } from "../../packages/signalbox/src/engines/turn-runtime/index.ts";
import { percentile } from "./statistics.ts";

const INSTANCES = 1000;
const IN_FLIGHT = 64;
const BODY_BYTES = 4096;
const KEPT_EVENTS = 100;
const LARGE_BYTES = 600 * 1024;
const TABLES = `CREATE TABLE ledger (id TEXT PRIMARY KEY, at INTEGER) WITHOUT ROWID;
  CREATE TABLE event (n INTEGER PRIMARY KEY, body TEXT); CREATE TABLE state (k INTEGER PRIMARY KEY, v TEXT);`;

const [engine = "", folder = "", url = ""] = process.argv.slice(2);
let nodes = 0;

const fail = (error: unknown): never => {
  throw error;
};

function openStore(path: string): Promise<InstanceStore> {
  const common = {
    folder: path,
    baseSchema: BASE_SCHEMA,
    reservedNames: RESERVED_NAMES,
    onFailure: fail,
    onStall: fail,
  };
  if (engine === "journal") return openInstanceStore("journal", { ...common, segmentBytes: 64 * 2 ** 20 });
  nodes += 1;
  return openSharedStore({
    ...common,
    stores: [url],
    nodes: { self: String(nodes), isLeaseFresh: true, readLiving: () => Promise.resolve(new Set()) },
    maxCacheBytes: 2 ** 32,
    onError: (error) => console.error(error),
  });
}

/** A push event: text that compresses as JSON of a real sender does, and differs from event to event. */
function bodyOf(n: number): string {
  const commits: object[] = [];
  for (let i = 0; JSON.stringify(commits).length < BODY_BYTES - 400; i++) {
    const id = ((n * 7919 + i * 104_729) * 2_654_435_761)
      .toString(16)
      .padStart(16, "0")
      .repeat(3)
      .slice(0, 40);
    const files = [`src/part-${(n * 31 + i) % 97}/door-${(n + i * 13) % 1009}.ts`];
    commits.push({
      id,
      message: `Commit ${n}.${i}: the door opens`,
      author: { name: "Mona Lisa", email: "mona@example.com" },
      modified: files,
    });
  }
  return JSON.stringify({ ref: "refs/heads/main", commits, sender: { login: "octocat", id: n } }).padEnd(
    BODY_BYTES,
    " ",
  );
}

const BODIES = Array.from({ length: 256 }, (_, n) => bodyOf(n));

class Subject {
  readonly database: InstanceDatabase;
  readonly runtime: TurnRuntime<Subject>;

  private constructor(database: InstanceDatabase) {
    this.database = database;
    this.runtime = new TurnRuntime<Subject>({
      owner: this,
      key: "bench",
      maxWaiting: 10_000,
      timeoutMs: 0,
      isInterleaving: false,
      createOverloadError: () => new Error("overloaded"),
      createTimeoutError: () => new Error("timed out"),
      onTurnEnd: () => undefined,
      onIdle: () => undefined,
      onCommitFailure: fail,
    });
  }

  static async open(store: InstanceStore, name: string): Promise<Subject> {
    const subject = new Subject(await store.open(name, TABLES));
    subject.runtime.open(subject.database, () => subject.database.sync());
    await subject.runtime.start(subject, { kind: "start", label: "", body: () => undefined });
    return subject;
  }

  deliver(n: number): Promise<void> {
    return this.runtime.run({ kind: "event", label: "event", body: (subject) => subject.#take(n) });
  }

  #take(n: number): void {
    this.runtime.transactions.open();
    const body = BODIES[n % BODIES.length] ?? "";
    this.database.run(sql`INSERT INTO ledger VALUES (${`delivery-${n}`}, ${n})`);
    this.database.run(sql`INSERT INTO event VALUES (${n}, ${body})`);
    this.database.run(sql`DELETE FROM event WHERE n <= ${n - KEPT_EVENTS * INSTANCES}`);
    this.database.run(
      sql`INSERT INTO state VALUES (1, ${String(n)}) ON CONFLICT (k) DO UPDATE SET v = excluded.v`,
    );
  }
}

const store = await openStore(join(folder, "one"));
const subjects: Subject[] = [];
let sent = 0;

async function warmUp(): Promise<void> {
  const names = Array.from({ length: INSTANCES }, (_, i) => `warm-${i}`).values();
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => {
      for (const name of names) subjects.push(await Subject.open(store, name));
    }),
  );
}

async function sendEvents(count: number): Promise<object> {
  if (subjects.length === 0) await warmUp();
  const latencies: number[] = [];
  let left = count;
  const before = process.cpuUsage();
  const startedAt = performance.now();
  const send = async () => {
    while (left-- > 0) {
      sent += 1;
      const at = performance.now();
      await subjects[sent % INSTANCES]?.deliver(sent);
      latencies.push(performance.now() - at);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, send));
  const ms = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(before);
  latencies.sort((a, b) => a - b);
  return {
    events: (count * 1000) / ms,
    cpu: (user + system) / count,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
  };
}

async function wake(count: number): Promise<object> {
  const times: number[] = [];
  let database = await store.open("wake", TABLES);
  for (let n = 0; n < count; n++) {
    database.begin();
    database.run(sql`INSERT INTO event VALUES (${n}, ${BODIES[n % BODIES.length] ?? ""})`);
    database.commit();
    await database.close();
    const at = performance.now();
    database = await store.open("wake");
    times.push(performance.now() - at);
  }
  await database.close();
  await store.destroy("wake");
  return {
    ms: percentile(
      times.toSorted((a, b) => a - b),
      0.5,
    ),
  };
}

async function restore(count: number): Promise<object> {
  const large = await store.open("large", TABLES);
  for (let n = 0; n * BODY_BYTES < LARGE_BYTES; n++) {
    large.begin();
    large.run(sql`INSERT INTO event VALUES (${n}, ${BODIES[n % BODIES.length] ?? ""})`);
    large.commit();
    await large.sync();
  }
  await large.close();
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    const empty = mkdtempSync(join(folder, "empty-"));
    const other = await openStore(empty);
    // The connections are open, as in a running node.
    await (await other.open(`other-${n}`)).close();
    const at = performance.now();
    const database = await other.open("large");
    times.push(performance.now() - at);
    await database.close();
    await other.close();
    rmSync(empty, { recursive: true });
  }
  await store.open("large").then((database) => database.close());
  await store.destroy("large");
  return {
    ms: percentile(
      times.toSorted((a, b) => a - b),
      0.5,
    ),
  };
}

const COMMANDS: Readonly<Record<string, (count: number) => Promise<object>>> = {
  events: sendEvents,
  wake,
  restore,
};

console.log("ready");
for await (const line of createInterface(process.stdin)) {
  const [command = "", count] = line.split(" ");
  console.log(JSON.stringify(await COMMANDS[command]?.(Number(count))));
}
process.exit(0);
