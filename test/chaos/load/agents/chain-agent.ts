/**
 * The agent of the chaos test. Its rows show what the cluster did to it:
 *
 * - Each event has a row with the hash of the previous row's hash and its own id, so that a lost, doubled or reordered event is visible. Ids are
 *   not unique on purpose: a constraint would hide a second execution.
 * - Each activation has a row with its number, the epoch, and the process in which it runs. Each answer names both.
 */
import { randomUUID } from "node:crypto";
import { Agent, type Connection, type WebhookEvent } from "signalbox";
import { nextHash, START_HASH } from "./chain-hash.ts";

/** Different for each start of a node. */
const PROCESS = `${process.env["CHAOS_NODE"] ?? "node"} ${randomUUID().slice(0, 8)}`;
/** An attempt is counted before it runs; a run that kills nodes must not turn work into dead letters. */
const RETRY = { maxAttempts: 100, baseDelayMs: 50, maxDelayMs: 500 };
const SCHEDULE_S = 1;

export type EventKind = "delivery" | "call" | "queue" | "schedule";

export interface ChainHead {
  readonly seq: number;
  readonly hash: string;
}

/** What an answer says about the activation that gave it. */
export interface Activation {
  readonly epoch: number;
  readonly process: string;
}

export interface ChainAnswer extends ChainHead, Activation {}

export interface EventRow extends ChainHead {
  readonly id: string;
  readonly kind: EventKind;
  readonly epoch: number;
}

export interface ChainAudit {
  readonly answer: ChainAnswer;
  /** At most `limit` rows after the given one. */
  readonly events: readonly EventRow[];
}

export interface WorkAudit {
  readonly activations: readonly (Activation & { readonly at: number })[];
  /** Work that ran, with the number of times that its effects are there. */
  readonly work: readonly { readonly id: string; readonly times: number; readonly lateMs: number }[];
  readonly waiting: readonly string[];
  readonly deadLetters: number;
  /** Connections by the number that the client gave them. */
  readonly connects: readonly { readonly nonce: string; readonly times: number }[];
}

interface Work {
  readonly id: string;
  readonly dueAt: number;
}

export class Chain extends Agent<unknown, ChainAnswer> {
  static override readonly callable = [
    "append",
    "read",
    "appendAndQueue",
    "appendAndSchedule",
    "audit",
    "auditWork",
  ];

  #epoch = 0;

  override onStart(): void {
    if (this.sql`SELECT 1 FROM sqlite_schema WHERE name = 'event'`.length === 0) {
      this.sql`CREATE TABLE event (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, kind TEXT NOT NULL, hash TEXT NOT NULL, epoch INTEGER NOT NULL)`;
      this
        .sql`CREATE TABLE activation (epoch INTEGER PRIMARY KEY AUTOINCREMENT, process TEXT NOT NULL, at INTEGER NOT NULL)`;
      this.sql`CREATE TABLE work (id TEXT PRIMARY KEY, times INTEGER NOT NULL, late_ms INTEGER NOT NULL)`;
      this.sql`CREATE TABLE connect (nonce TEXT PRIMARY KEY, times INTEGER NOT NULL)`;
    }
    const [row] = this.sql<{ epoch: number }>`
      INSERT INTO activation (process, at) VALUES (${PROCESS}, ${Date.now()}) RETURNING epoch`;
    this.#epoch = row?.epoch ?? 0;
  }

  onEvent(event: WebhookEvent): void {
    this.append(event.id, "delivery");
  }

  append(id: string, kind: EventKind = "call"): ChainAnswer {
    const hash = nextHash(this.#head().hash, id);
    this.sql`INSERT INTO event (id, kind, hash, epoch) VALUES (${id}, ${kind}, ${hash}, ${this.#epoch})`;
    const answer = this.read();
    this.setState(answer);
    return answer;
  }

  read(): ChainAnswer {
    return { ...this.#head(), epoch: this.#epoch, process: PROCESS };
  }

  async appendAndQueue(id: string): Promise<ChainAnswer> {
    await this.queue("work", { id, dueAt: Date.now() }, { retry: RETRY });
    return this.append(id, "queue");
  }

  async appendAndSchedule(id: string): Promise<ChainAnswer> {
    await this.schedule(SCHEDULE_S, "work", { id, dueAt: Date.now() + SCHEDULE_S * 1000 }, { retry: RETRY });
    return this.append(id, "schedule");
  }

  work({ id, dueAt }: Work): void {
    this.sql`INSERT INTO work (id, times, late_ms) VALUES (${id}, 1, ${Date.now() - dueAt})
      ON CONFLICT (id) DO UPDATE SET times = times + 1`;
  }

  override onConnect(connection: Connection, { request }: { request: Request }): void {
    const nonce = new URL(request.url).searchParams.get("nonce") ?? "";
    this
      .sql`INSERT INTO connect (nonce, times) VALUES (${nonce}, 1) ON CONFLICT (nonce) DO UPDATE SET times = times + 1`;
    connection.send(JSON.stringify({ connected: nonce }));
  }

  audit(after: number, limit: number): ChainAudit {
    return {
      answer: this.read(),
      events: this
        .sql`SELECT seq, id, kind, hash, epoch FROM event WHERE seq > ${after} ORDER BY seq LIMIT ${limit}`,
    };
  }

  async auditWork(): Promise<WorkAudit> {
    const queued = await this.getQueues<Work>();
    const scheduled = await this.listSchedules<Work>();
    return {
      activations: this.sql`SELECT epoch, process, at FROM activation ORDER BY epoch`,
      work: this.sql`SELECT id, times, late_ms AS lateMs FROM work`,
      waiting: [...queued, ...scheduled].map(({ payload }) => payload.id),
      deadLetters: (await this.getDeadLetters()).length,
      connects: this.sql`SELECT nonce, times FROM connect`,
    };
  }

  #head(): ChainHead {
    const [head] = this.sql<{
      seq: number;
      hash: string;
    }>`SELECT seq, hash FROM event ORDER BY seq DESC LIMIT 1`;
    return head ?? { seq: 0, hash: START_HASH };
  }
}
