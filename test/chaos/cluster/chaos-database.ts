/** PostgreSQL of the cluster under test, with the proxies that lead to it, so that another server can take its place. */
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { openTestPostgres, type TestPostgres } from "../../support/test-postgres.ts";
import { TcpProxy } from "../network/tcp-proxy.ts";

export class ChaosDatabase {
  /** By index of the node. */
  readonly proxies: readonly TcpProxy[];
  /** For the oracle: no fault touches it. */
  readonly #observer: TcpProxy;
  #primary: TestPostgres;

  private constructor(primary: TestPostgres, proxies: readonly TcpProxy[], observer: TcpProxy) {
    this.#primary = primary;
    this.proxies = proxies;
    this.#observer = observer;
  }

  static async start(nodes: number): Promise<ChaosDatabase> {
    const primary = await openTestPostgres();
    const open = () => TcpProxy.open(portOf(primary));
    return new ChaosDatabase(primary, await Promise.all(Array.from({ length: nodes }, open)), await open());
  }

  get primary(): TestPostgres {
    return this.#primary;
  }

  urlFor(node: number): string {
    return through(this.#primary, this.proxies[node]);
  }

  get observerUrl(): string {
    return through(this.#primary, this.#observer);
  }

  /** A synchronous standby joins, which restarts the primary. After a time with both, the primary crashes and the standby takes its place. */
  async failOver(togetherMs: number): Promise<void> {
    const old = this.#primary;
    // Takes effect with the restart, for every commit. After a reload commits go on without the standby until the checkpointer has read it.
    await query(old.url, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    const standby = await old.openStandby();
    await query(standby.url, "ALTER SYSTEM RESET synchronous_standby_names");
    await query(standby.url, "SELECT pg_reload_conf()");
    while ((await query(old.url, "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'")) === 0)
      await sleep(20);
    await sleep(togetherMs);
    await old.stop("kill");
    await standby.promote();
    this.#primary = standby;
    for (const proxy of [...this.proxies, this.#observer]) proxy.targetPort = portOf(standby);
    await old.drop();
  }

  /** Ends some sessions of the nodes, as an operator or a pooler does. */
  async endSessions(): Promise<void> {
    await query(
      this.#primary.url,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND random() < 0.5`,
    );
  }

  async stop(): Promise<void> {
    for (const proxy of [...this.proxies, this.#observer]) await proxy.close();
    await this.#primary.drop();
  }
}

const portOf = ({ url }: TestPostgres): number => Number(new URL(url).port);

function through({ url }: TestPostgres, proxy: TcpProxy | undefined): string {
  const address = new URL(url);
  address.port = String(proxy?.port);
  return address.href;
}

/** Runs one statement; resolves to the number of its rows. */
async function query(url: string, text: string): Promise<number> {
  const client = new Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query(text)).rowCount ?? 0;
  } finally {
    await client.end();
  }
}
