/** Three nodes, one PostgreSQL, and a proxy between each node and PostgreSQL and between each pair of nodes. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CLUSTER_ENVIRONMENT } from "../../support/cluster.ts";
import { freePort } from "../../support/free-port.ts";
import { openSmallDisk } from "../../support/small-disk.ts";
import { TcpProxy } from "../network/tcp-proxy.ts";
import { ChaosDatabase } from "./chaos-database.ts";
import { ChaosNode } from "./chaos-node.ts";
import { FakeClock, findFaketime } from "./fake-clock.ts";

export interface ChaosClusterOptions {
  readonly nodes: number;
  /** The configuration file of all nodes. */
  readonly file: object;
  readonly env?: Readonly<Record<string, string>>;
  readonly onExit: (name: string, reason: string) => void;
}

/** Of the data folder of a node: much more than the copies of the instances need. */
const DISK_MB = 192;

export class ChaosCluster {
  readonly database: ChaosDatabase;
  readonly nodes: readonly ChaosNode[];
  /** By index of the node that dials, then of the other one; undefined for the node itself. */
  readonly links: readonly (readonly (TcpProxy | undefined)[])[];
  readonly #folder: string;

  private constructor(parts: {
    database: ChaosDatabase;
    nodes: readonly ChaosNode[];
    links: readonly (readonly (TcpProxy | undefined)[])[];
    folder: string;
  }) {
    this.database = parts.database;
    this.nodes = parts.nodes;
    this.links = parts.links;
    this.#folder = parts.folder;
  }

  static async start(options: ChaosClusterOptions): Promise<ChaosCluster> {
    const database = await ChaosDatabase.start(options.nodes);
    const folder = await mkdtemp(join(tmpdir(), "signalbox-chaos-"));
    const config = join(folder, "config.json");
    await writeFile(config, JSON.stringify(options.file));
    const indexes = Array.from({ length: options.nodes }, (_, i) => i);
    const ports = await Promise.all(indexes.map(() => freePort()));
    const disks = await Promise.all(indexes.map(() => openSmallDisk(DISK_MB)));
    const clock = new FakeClock(join(folder, "clock"));
    await clock.set(0);
    const links = await Promise.all(
      indexes.map((from) =>
        Promise.all(indexes.map(async (to) => (to === from ? undefined : TcpProxy.open(ports[to] ?? 0)))),
      ),
    );
    const nodes = indexes.map((i) => {
      const disk = disks[i];
      const dataDir = join(disk?.folder ?? folder, "data");
      return new ChaosNode({
        name: `node-${i + 1}`,
        args: ["--data-dir", dataDir, "--config", config, "--database-url", database.urlFor(i)].concat([
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
        ...(disk === undefined ? {} : { disk }),
        // Reading a false clock costs time, so only the last node has one.
        ...(i === options.nodes - 1 && findFaketime() !== null ? { clock } : {}),
        onExit: options.onExit,
      });
    });
    const cluster = new ChaosCluster({ database, nodes, links, folder });
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

  async stop(): Promise<void> {
    for (const node of this.nodes) {
      node.resume();
      await node.kill();
      await node.disk?.drop();
    }
    for (const proxy of this.links.flat()) await proxy?.close();
    await this.database.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
