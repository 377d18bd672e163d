/** Three nodes, one PostgreSQL, and a proxy between each node and PostgreSQL and between each pair of nodes. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CLUSTER_ENVIRONMENT } from "../../support/cluster.ts";
import { freePort } from "../../support/free-port.ts";
import { openTestPostgres, type TestPostgres } from "../../support/test-postgres.ts";
import { TcpProxy } from "../network/tcp-proxy.ts";
import { ChaosNode } from "./chaos-node.ts";

export interface ChaosClusterOptions {
  readonly nodes: number;
  /** The configuration file of all nodes. */
  readonly file: object;
  readonly env?: Readonly<Record<string, string>>;
  readonly onExit: (name: string, reason: string) => void;
}

export class ChaosCluster {
  readonly postgres: TestPostgres;
  readonly nodes: readonly ChaosNode[];
  /** By index of the node. */
  readonly toPostgres: readonly TcpProxy[];
  /** By index of the node that dials, then of the other one; undefined for the node itself. */
  readonly links: readonly (readonly (TcpProxy | undefined)[])[];
  readonly #folder: string;

  private constructor(parts: {
    postgres: TestPostgres;
    nodes: readonly ChaosNode[];
    toPostgres: readonly TcpProxy[];
    links: readonly (readonly (TcpProxy | undefined)[])[];
    folder: string;
  }) {
    this.postgres = parts.postgres;
    this.nodes = parts.nodes;
    this.toPostgres = parts.toPostgres;
    this.links = parts.links;
    this.#folder = parts.folder;
  }

  static async start(options: ChaosClusterOptions): Promise<ChaosCluster> {
    const postgres = await openTestPostgres();
    const folder = await mkdtemp(join(tmpdir(), "signalbox-chaos-"));
    const config = join(folder, "config.json");
    await writeFile(config, JSON.stringify(options.file));
    const indexes = Array.from({ length: options.nodes }, (_, i) => i);
    const ports = await Promise.all(indexes.map(() => freePort()));
    const database = new URL(postgres.url);
    const toPostgres = await Promise.all(indexes.map(() => TcpProxy.open(Number(database.port))));
    const links = await Promise.all(
      indexes.map((from) =>
        Promise.all(indexes.map(async (to) => (to === from ? undefined : TcpProxy.open(ports[to] ?? 0)))),
      ),
    );
    const nodes = indexes.map((i) => {
      database.port = String(toPostgres[i]?.port);
      const dataDir = join(folder, `node-${i + 1}`);
      return new ChaosNode({
        name: `node-${i + 1}`,
        args: ["--data-dir", dataDir, "--config", config, "--database-url", database.href].concat([
          "--cluster-host",
          "127.0.0.1",
          "--cluster-port",
          String(ports[i]),
        ]),
        env: { ...CLUSTER_ENVIRONMENT, ...options.env },
        redirects: Object.fromEntries(
          indexes.flatMap((to) => {
            const proxy = links[i]?.[to];
            return proxy === undefined ? [] : [[String(ports[to]), proxy.port]];
          }),
        ),
        onExit: options.onExit,
      });
    });
    const cluster = new ChaosCluster({ postgres, nodes, toPostgres, links, folder });
    try {
      await Promise.all(nodes.map((node) => node.start()));
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  /** The proxies of both directions between this node and all others. */
  linksOf(index: number): TcpProxy[] {
    return this.links
      .flatMap((row, from) => row.filter((_, to) => from === index || to === index))
      .filter((proxy) => proxy !== undefined);
  }

  healNetwork(): void {
    for (const proxy of [...this.toPostgres, ...this.links.flat()]) proxy?.heal();
  }

  async stop(): Promise<void> {
    for (const node of this.nodes) {
      node.resume();
      await node.kill();
    }
    for (const proxy of [...this.toPostgres, ...this.links.flat()]) await proxy?.close();
    await this.postgres.drop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
