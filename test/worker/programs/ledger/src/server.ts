/**
 * The object of the chaos test. As the agent there, it has a row for each event with the hash of the previous row's hash and its own id, and counts
 * its activations.
 */
import { DurableObject } from "cloudflare:workers";
import { nextHash, START_HASH } from "../../../../chaos/load/agents/chain-hash.ts";

interface Env {
  readonly Ledger: DurableObjectNamespace<Ledger>;
}

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

export default {
  /** `/ledger/<name>/<method>`, with the arguments as an array. */
  async fetch(request: Request, env: Env): Promise<Response> {
    const [, , name = "", method = ""] = new URL(request.url).pathname.split("/");
    const stub = env.Ledger.getByName(name) as unknown as Record<string, (...args: unknown[]) => unknown>;
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
