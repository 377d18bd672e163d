/**
 * Writers that race for instances on a real PostgreSQL, without leases: each writer claims at any time, sleeps with an old epoch and then sends, makes
 * snapshots and deletes records. A record has its value and the hash of everything that its writer believed to be before it.
 */
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { History } from "./history.ts";
import { KINDS, type Statements } from "./statements.ts";
import type { StoreClient } from "./store-connections.ts";

export interface RaceOptions {
  readonly url: string;
  readonly statements: Statements;
  readonly writers: number;
  readonly instances: number;
  /** Steps of each writer, at least: more if something happened too seldom to test anything. */
  readonly steps: number;
  readonly random: () => number;
  /** False: records are deleted at once. True: only when the statements that ran at the snapshot have ended. */
  readonly hasGrace: boolean;
}

export interface RaceResult {
  readonly acknowledged: number;
  readonly refused: number;
  readonly claims: number;
  readonly lostClaims: number;
  readonly snapshots: number;
  /** What is wrong with the histories. */
  readonly violations: readonly string[];
}

interface RaceRecord {
  readonly value: string;
  readonly base: string;
}

/** An instance as one writer knows it. */
interface Session {
  readonly id: number;
  readonly epoch: number;
  readonly claimSeq: number;
  head: number;
  readonly values: string[];
}

const MAX_SLEEP_MS = 20;
/** A busy machine changes how often each thing happens. */
export const MIN_COUNT = 10;
const MAX_STEPS = 2000;
const IDLE_IN_TRANSACTION = "25P03";

export async function race(options: RaceOptions): Promise<RaceResult> {
  const histories = Array.from(
    { length: options.writers },
    () => new History(options.url, options.statements),
  );
  const [first] = histories;
  if (first === undefined) throw new Error("there is no writer");
  await first.open();
  const keys = Array.from({ length: options.instances }, (_, i) => Buffer.from(`race-${i}`));
  await first.locate(
    keys,
    keys.map(() => 0),
    "1",
    1,
  );
  const counts = { acknowledged: 0, refused: 0, claims: 0, lostClaims: 0, snapshots: 0 };
  const acknowledged = new Map<number, string[]>();
  const running = new Set<Promise<unknown>>();
  await Promise.all(
    histories.map((history, i) =>
      new Writer({ history, node: String(i + 1), keys, options, counts, acknowledged, running }).run(),
    ),
  );
  const violations: string[] = [];
  for (const { id } of await first.find(keys)) {
    const values = await readValues(first, id, Number.MAX_SAFE_INTEGER, violations);
    const all = new Set(values);
    if (all.size !== values.length) violations.push(`instance ${id} has a record twice`);
    for (const value of acknowledged.get(id) ?? [])
      if (!all.has(value)) violations.push(`instance ${id} has lost ${value}`);
  }
  await Promise.all(histories.map((history) => history.close()));
  return { ...counts, violations };
}

interface WriterParts {
  readonly history: History;
  readonly node: string;
  readonly keys: readonly Buffer[];
  readonly options: RaceOptions;
  readonly counts: Record<"acknowledged" | "refused" | "claims" | "lostClaims" | "snapshots", number>;
  readonly acknowledged: Map<number, string[]>;
  /** Appends of all writers that have been sent. */
  readonly running: Set<Promise<unknown>>;
}

class Writer {
  readonly #parts: WriterParts;
  readonly #sessions = new Map<string, Session>();
  #connection: StoreClient | null = null;
  #values = 0;

  constructor(parts: WriterParts) {
    this.#parts = parts;
  }

  async run(): Promise<void> {
    const { history, keys, options } = this.#parts;
    const { random } = options;
    this.#connection = await history.connections.open();
    for (let step = 0; step < options.steps || (this.#isSeldom && step < MAX_STEPS); step++) {
      const key = keys[Math.floor(random() * keys.length)];
      if (key === undefined) continue;
      const session = this.#sessions.get(key.toString());
      if (session === undefined || random() < 0.1) {
        await this.#attempt(key, () => this.#claim(key));
        continue;
      }
      // An old session: others claim meanwhile.
      if (random() < 0.4) await sleep(random() * MAX_SLEEP_MS);
      if (random() < 0.2) await this.#attempt(key, () => this.#snapshot(key, session));
      else await this.#append(key, session);
    }
  }

  /** PostgreSQL ends a transaction whose process is stopped for two seconds, and a machine may pause for longer. Its writer begins anew. */
  async #attempt(key: Buffer, transaction: () => Promise<void>): Promise<void> {
    try {
      await transaction();
    } catch (error) {
      if ((error as { code?: unknown }).code !== IDLE_IN_TRANSACTION) throw error;
      this.#sessions.delete(key.toString());
    }
  }

  get #isSeldom(): boolean {
    const { acknowledged, refused, claims, snapshots } = this.#parts.counts;
    return Math.min(acknowledged, refused, claims, snapshots) <= MIN_COUNT;
  }

  async #claim(key: Buffer): Promise<void> {
    const { history, node, counts } = this.#parts;
    this.#sessions.delete(key.toString());
    const [row] = await history.find([key]);
    if (row === undefined) return;
    const [claimed] = (await history.takeOver(node, 1, [row])) ?? [];
    if (claimed === undefined) {
      counts.lostClaims += 1;
      return;
    }
    counts.claims += 1;
    const problems: string[] = [];
    const values = await readValues(history, row.id, claimed.seq, problems);
    // Another claim came between: what was read may be incomplete, and every append of this session is refused.
    const { id, epoch, seq } = claimed;
    this.#sessions.set(key.toString(), { id, epoch, claimSeq: seq, head: seq, values });
  }

  async #append(key: Buffer, session: Session): Promise<void> {
    const { history, node, counts, acknowledged, running } = this.#parts;
    const { id, epoch, head, values } = session;
    this.#values += 1;
    const value = `${node}.${this.#values}`;
    const record: RaceRecord = { value, base: digest(values) };
    const data = Buffer.from(JSON.stringify(record));
    if (this.#connection === null) return;
    const sent = history.append(
      this.#connection,
      [{ id, seq: head + 1, epoch, node, kind: KINDS.pages, data }],
      data,
    );
    running.add(sent);
    const written = await sent;
    running.delete(sent);
    if (!written.has(id)) {
      counts.refused += 1;
      this.#sessions.delete(key.toString());
      return;
    }
    counts.acknowledged += 1;
    session.head += 1;
    values.push(value);
    acknowledged.set(id, [...(acknowledged.get(id) ?? []), value]);
  }

  async #snapshot(key: Buffer, session: Session): Promise<void> {
    const { history, node, counts, options, running } = this.#parts;
    const { id, epoch, head, claimSeq, values } = session;
    const data = Buffer.from(JSON.stringify(values));
    async function* parts() {
      yield await Promise.resolve({ part: 0, data });
    }
    const size = { pages: 1, pageBytes: 1, partCount: 1 };
    if ((await history.snapshot({ id, epoch, node, seq: head, ...size, parts: parts() })) === null) {
      this.#sessions.delete(key.toString());
      return;
    }
    counts.snapshots += 1;
    if (options.hasGrace) await Promise.allSettled(running);
    await history.sweep([{ id, epoch, node, upTo: head, claimSeq }]);
  }
}

/** The values of the snapshot and of the records after it. Reports records that do not follow what their writer had seen. */
async function readValues(history: History, id: number, upTo: number, problems: string[]): Promise<string[]> {
  return history.connections.use(async ({ client }) => {
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
    const owner = await client.query<{ snap: number }>(
      "SELECT snap_seq AS snap FROM agent_owner WHERE id = $1",
      [id],
    );
    const snapSeq = owner.rows[0]?.snap ?? 0;
    const parts = await client.query<{ data: Buffer }>("SELECT data FROM agent_part WHERE agent = $1", [id]);
    const records = await client.query<{ seq: number; kind: string; data: Buffer }>(
      "SELECT seq, kind::text AS kind, data FROM agent_log WHERE agent = $1 AND seq > $2 AND seq <= $3 ORDER BY seq",
      [id, snapSeq, upTo],
    );
    await client.query("COMMIT");
    const values = JSON.parse(parts.rows[0]?.data.toString() ?? "[]") as string[];
    let last = snapSeq;
    for (const { seq, kind, data } of records.rows) {
      if (seq !== last + 1) problems.push(`instance ${id} lacks record ${last + 1}`);
      last = seq;
      if (kind === KINDS.claim) continue;
      const { value, base } = JSON.parse(data.toString()) as RaceRecord;
      if (base !== digest(values)) problems.push(`record ${value} of instance ${id} follows other records`);
      values.push(value);
    }
    return values;
  });
}

function digest(values: readonly string[]): string {
  return createHash("sha256").update(values.join("\n")).digest("base64url").slice(0, 16);
}
