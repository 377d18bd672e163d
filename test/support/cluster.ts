/** Real nodes of a cluster: `signalbox serve` processes on one real PostgreSQL, each with its own data folder. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConfigFileInput } from "../../packages/signalbox/src/config/index.ts";
import { IMMORTAL, MORTAL, patiently } from "./patience.ts";
import { ROOT_TOKEN } from "./root-token.ts";
import { type Answer, readAnswer } from "./send-request.ts";
import { runCliProcess, type CliResult, type ServerProcess, startServerProcess } from "./server-process.ts";
import { openTestPostgres, type TestPostgres } from "./test-postgres.ts";
import { waitUntil } from "./wait-until.ts";

export interface ClusterNodeProcess extends ServerProcess {
  readonly name: string;
  readonly dataDir: string;
  /** Calls the management API with the root token or another token; null sends none. */
  api(method: string, path: string, body?: unknown, token?: string | null): Promise<Answer>;
}

export interface TestClusterOptions {
  /** Default 2. */
  readonly nodes?: number;
  /** The configuration file of all nodes, as JSON. */
  readonly file?: ConfigFileInput;
  readonly env?: Record<string, string>;
  readonly args?: readonly string[];
  /** So many of these nodes, the last ones, `mayDie` (see `NodeOptions`). Default 0. */
  readonly mortals?: number;
  /** A server that the test owns; default: a new one, dropped by `stop`. */
  readonly postgres?: TestPostgres;
}

export interface NodeOptions {
  readonly name?: string;
  /** Override those of the cluster. An empty value counts as not set. */
  readonly env?: Record<string, string>;
  readonly args?: readonly string[];
  /** Default: the server itself; a test may put a proxy in between. */
  readonly databaseUrl?: string;
  readonly dataDir?: string;
  /** A command that runs the node, for example in another namespace. */
  readonly through?: readonly string[];
  /**
   * The others declare it dead when it is silent. Default false: only a node that a test kills, pauses or cuts off needs it, and the others must not
   * die of a machine that is short of time.
   */
  readonly mayDie?: boolean;
  /** Added to those of the cluster. */
  readonly cluster?: ConfigFileInput["cluster"];
}

export interface TestCluster {
  readonly postgres: TestPostgres;
  readonly nodes: readonly ClusterNodeProcess[];
  readonly urls: readonly string[];
  /** Starts one more node. */
  join(options?: NodeOptions): Promise<ClusterNodeProcess>;
  /** Runs `serve` for a node that is expected to be refused. */
  refused(options?: NodeOptions): Promise<CliResult>;
  /** Kills all nodes, ends PostgreSQL, and removes the folders. */
  stop(): Promise<void>;
}

export const CLUSTER_ENVIRONMENT: Readonly<Record<string, string>> = {
  SIGNALBOX_CLUSTER_SECRET: "cluster-secret-of-the-test-cluster",
  SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN,
  SIGNALBOX_ENCRYPTION_KEY: "encryption-key-of-the-test-cluster",
  SIGNALBOX_MASTER_KEY: "ab".repeat(32),
  WEBHOOK_SECRET: "webhook-secret-of-the-test-cluster",
};

export async function startTestCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  const { nodes: count = 2, mortals = 0 } = options;
  const postgres = options.postgres ?? (await openTestPostgres());
  const folders: string[] = [];
  const nodes: ClusterNodeProcess[] = [];
  const newFolder = async () => {
    const folder = await mkdtemp(join(tmpdir(), "signalbox-node-"));
    folders.push(folder);
    return folder;
  };
  const prepare = async (node: NodeOptions) => {
    const dataDir = node.dataDir ?? (await newFolder());
    // Not in the data folder, which the test may not see.
    const config = join(node.through === undefined ? dataDir : await newFolder(), "cluster.json");
    const file = {
      ...options.file,
      listener: { lameDuckMs: 0, ...options.file?.listener },
      cluster: { ...(node.mayDie === true ? MORTAL : IMMORTAL), ...options.file?.cluster, ...node.cluster },
    };
    await writeFile(config, JSON.stringify(patiently(file)));
    const args = ["--data-dir", dataDir, "--config", config];
    args.push("--database-url", node.databaseUrl ?? postgres.url);
    if (node.name !== undefined) args.push("--node-name", node.name);
    args.push(...(options.args ?? []), ...(node.args ?? []));
    return { dataDir, args, env: { ...CLUSTER_ENVIRONMENT, ...options.env, ...node.env } };
  };
  const startNode = async (node: NodeOptions): Promise<ClusterNodeProcess> => {
    const { dataDir, args, env } = await prepare(node);
    const { through } = node;
    const start = () => startServerProcess(args, { env, ...(through === undefined ? {} : { through }) });
    // As a supervisor would: a pause of the machine at the wrong moment looks like a database that cannot be reached.
    const server = await start().catch((error: unknown) => {
      if (!String(error).includes("PostgreSQL cannot be reached")) throw error;
      return start();
    });
    const started = { ...server, name: node.name ?? "", dataDir, api: apiOf(server.url) };
    nodes.push(started);
    return started;
  };
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.kill()));
    if (options.postgres === undefined) await postgres.drop();
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
  };
  try {
    // One after the other: the order of `nodes` is the order of joining.
    for (let i = 0; i < count; i++) await startNode({ name: `node-${i + 1}`, mayDie: i >= count - mortals });
    if (nodes.length > 1) await whenLinked(nodes);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    postgres,
    nodes,
    get urls() {
      return nodes.map(({ url }) => url);
    },
    join: startNode,
    async refused(node = {}) {
      const { args, env } = await prepare(node);
      return runCliProcess(["serve", "--port", "0", ...args], { env });
    },
    stop,
  };
}

/** Nodes look for new ones twice a second: before that, a node takes new instances for itself. */
async function whenLinked(nodes: readonly ClusterNodeProcess[]): Promise<void> {
  for (const node of nodes)
    await waitUntil(
      async () => (await node.api("GET", "/cluster/nodes")).body?.result as NodeLink[] | null | undefined,
      (found) =>
        nodes.every(({ name }) => found?.some((one) => one.name === name && one.link !== "down") === true),
      20,
    );
}

interface NodeLink {
  readonly name: string;
  readonly link: string;
}

function apiOf(url: string): ClusterNodeProcess["api"] {
  return async (method, path, body, token = ROOT_TOKEN) =>
    readAnswer(
      await fetch(url + path, {
        method,
        headers: {
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      }),
    );
}
