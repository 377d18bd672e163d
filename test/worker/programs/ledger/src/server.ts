/**
 * The program of the chaos test. As the agent there, a ledger has a row for each event with the hash of the previous row's hash and its own id, and
 * counts its activations. Alarms and workflows leave receipts.
 */
import { DurableObject, WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "cloudflare:workers";
import { nextHash, START_HASH } from "../../../../chaos/load/agents/chain-hash.ts";

interface Env {
  readonly Ledger: DurableObjectNamespace<Ledger>;
  readonly Receipts: DurableObjectNamespace<Receipts>;
  readonly ERRANDS: Workflow<Errand>;
}

/** What a workflow does, and where it leaves its receipts. */
interface Errand {
  readonly id: string;
  readonly receipts: string;
}

const ALARM_MS = 1000;
const SLEEP_MS = 500;

interface Head {
  readonly seq: number;
  readonly hash: string;
}

/** Different for each start of a node. */
const PROCESS = `${process.env["CHAOS_NODE"] ?? "node"} ${crypto.randomUUID().slice(0, 8)}`;

export class Ledger extends DurableObject<Env> {
  readonly #epoch: number;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const { sql, kv } = ctx.storage;
    sql.exec(`CREATE TABLE IF NOT EXISTS event (
      seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, kind TEXT NOT NULL, hash TEXT NOT NULL, epoch INTEGER NOT NULL)`);
    this.#epoch = (kv.get<number>("epoch") ?? 0) + 1;
    kv.put("epoch", this.#epoch);
  }

  append(id: string): object {
    const hash = nextHash(this.#head().hash, id);
    this.ctx.storage.sql.exec(
      "INSERT INTO event (id, kind, hash, epoch) VALUES (?, 'call', ?, ?)",
      id,
      hash,
      this.#epoch,
    );
    return this.read();
  }

  read(): object {
    return { ...this.#head(), epoch: this.#epoch, process: PROCESS };
  }

  audit(after: number, limit: number): object {
    const events = this.ctx.storage.sql
      .exec("SELECT seq, id, kind, hash, epoch FROM event WHERE seq > ? ORDER BY seq LIMIT ?", after, limit)
      .toArray();
    return { answer: this.read(), events };
  }

  #head(): Head {
    const [head] = this.ctx.storage.sql
      .exec<Head & Record<string, SqlStorageValue>>("SELECT seq, hash FROM event ORDER BY seq DESC LIMIT 1")
      .toArray();
    return head ?? { seq: 0, hash: START_HASH };
  }
}

/** Counts what was done: by workflows, and by its own alarm. */
export class Receipts extends DurableObject<Env> {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS receipt (id TEXT PRIMARY KEY, times INTEGER NOT NULL)");
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS due (id TEXT PRIMARY KEY, at INTEGER NOT NULL)");
  }

  put(id: string): void {
    this.ctx.storage.sql.exec(
      "INSERT INTO receipt VALUES (?, 1) ON CONFLICT (id) DO UPDATE SET times = times + 1",
      id,
    );
  }

  /** The alarm leaves a receipt about a second later. */
  async arm(id: string): Promise<void> {
    const at = Date.now() + ALARM_MS;
    this.ctx.storage.sql.exec("INSERT OR IGNORE INTO due VALUES (?, ?)", id, at);
    if ((await this.ctx.storage.getAlarm()) === null) await this.ctx.storage.setAlarm(at);
  }

  override async alarm(): Promise<void> {
    const { sql } = this.ctx.storage;
    for (const { id } of sql.exec<{ id: string }>("SELECT id FROM due WHERE at <= ?", Date.now()).toArray()) {
      this.put(id);
      sql.exec("DELETE FROM due WHERE id = ?", id);
    }
    const [next] = sql.exec<{ at: number | null }>("SELECT min(at) AS at FROM due").toArray();
    if (typeof next?.at === "number") await this.ctx.storage.setAlarm(next.at);
  }

  all(): object {
    const { sql } = this.ctx.storage;
    return {
      receipts: Object.fromEntries(sql.exec("SELECT id, times FROM receipt").raw()),
      due: sql.exec("SELECT id FROM due").toArray().length,
    };
  }
}

export class ErrandWorkflow extends WorkflowEntrypoint<Env, Errand> {
  override async run({ payload }: WorkflowEvent<Errand>, step: WorkflowStep): Promise<void> {
    const leave = async (text: string) => {
      await this.env.Receipts.getByName(payload.receipts).put(`${payload.id} ${text}`);
    };
    await step.do("begin", () => leave("begun"));
    await step.sleep("pause", SLEEP_MS);
    await step.do("end", () => leave("ended"));
  }
}

async function begin(env: Env, errand: Errand): Promise<void> {
  await env.ERRANDS.create({ id: errand.id, params: errand });
}

export default {
  /** `/ledger/<name>/<method>` and `/receipts/<name>/<method>`; `/errands/all/begin` begins a workflow. The body has the arguments. */
  async fetch(request: Request, env: Env): Promise<Response> {
    const [, kind, name = "", method = ""] = new URL(request.url).pathname.split("/");
    const target =
      kind === "errands"
        ? { begin: (errand: Errand) => begin(env, errand) }
        : (kind === "receipts" ? env.Receipts : env.Ledger).getByName(name);
    const stub = target as unknown as Record<string, (...args: unknown[]) => unknown>;
    const args = (await request.json()) as unknown[];
    try {
      return Response.json({ result: await stub[method]?.(...args) });
    } catch (error) {
      // The object cannot be reached, or its node was lost: the caller may not know the outcome.
      const { message, retryable, overloaded } = error as Error & {
        retryable?: boolean;
        overloaded?: boolean;
      };
      const status = retryable === true || overloaded === true ? 503 : 500;
      return Response.json({ error: message }, { status });
    }
  },
} satisfies ExportedHandler<Env>;
