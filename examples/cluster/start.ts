/**
 * Starts PostgreSQL, three nodes and HAProxy on this machine. Ctrl-C ends all of them: the nodes finish their calls first.
 *
 *   --port <n>      port of HAProxy; default 8787, 0 selects a free port
 *   --nodes <n>     number of nodes; default 3
 *   --data-dir <d>  folder of PostgreSQL and of the nodes; default .cluster
 *   --agents <f>    file with agent classes; default ../counter-agent/agent.ts
 *
 * DATABASE_URL: a PostgreSQL server that runs already, in place of the one from npm.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { type AddressInfo, createServer } from "node:net";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { findHaproxy, HAPROXY_IS_MISSING, startHaproxy } from "./haproxy.ts";
import { startPostgres } from "./postgres.ts";

interface Part {
  readonly name: string;
  stop(): Promise<unknown>;
}

interface StartedNode {
  readonly port: number;
  readonly pid: number | undefined;
}

const { values: flags } = parseArgs({
  options: {
    port: { type: "string", default: "8787" },
    nodes: { type: "string", default: "3" },
    "data-dir": { type: "string", default: ".cluster" },
    agents: { type: "string", default: join(import.meta.dirname, "../counter-agent/agent.ts") },
  },
});
const folder = resolve(flags["data-dir"]);
const count = Number(flags.nodes);
const stop = Promise.withResolvers<string>();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => stop.resolve(`received ${signal}`));
/** In the order in which they started. */
const parts: Part[] = [];

try {
  if (findHaproxy() === null) throw new Error(HAPROXY_IS_MISSING);
  if (!Number.isInteger(count) || count < 1)
    throw new Error(`--nodes: expected a number, found "${flags.nodes}"`);
  await mkdir(folder, { recursive: true });
  const secrets = await readSecrets(join(folder, "secrets.json"));
  const databaseUrl = process.env["DATABASE_URL"] ?? (await startDatabase());
  const nodes: StartedNode[] = [];
  for (let i = 1; i <= count; i++) nodes.push(await startNode(`node-${i}`, databaseUrl, secrets));
  const port = Number(flags.port) === 0 ? await freePort() : Number(flags.port);
  const balancer = await startHaproxy({ port, nodes: nodes.map((node) => node.port), folder });
  parts.push({ name: "HAProxy", stop: () => balancer.stop() });
  console.log(`Load balancer   ${balancer.url}`);
  for (const [i, node] of nodes.entries())
    console.log(`Node ${i + 1}          http://127.0.0.1:${node.port} (pid ${node.pid})`);
  console.log(`Root token      ${secrets["SIGNALBOX_ROOT_TOKEN"]}`);
  console.log(`\nTry it:\n  curl -s ${balancer.url}/v1/default/default/echo/chat/completions \\`);
  console.log(
    `    -H 'content-type: application/json' -d '{"model":"echo","messages":[{"role":"user","content":"hi"}]}'`,
  );
  console.log(`\nCtrl-C ends everything; the data stays in ${folder}.`);
  console.log(`\n${await stop.promise}, stopping`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await endParts();
}

/** The nodes stop at once, and HAProxy moves the calls of each to the others; PostgreSQL is the last. */
async function endParts(): Promise<void> {
  const nodes = parts.filter(({ name }) => name.startsWith("node-"));
  await Promise.all(nodes.map((node) => node.stop()));
  for (const part of parts.toReversed()) if (!nodes.includes(part)) await part.stop();
}

async function startDatabase(): Promise<string> {
  const postgres = await startPostgres(join(folder, "postgres"), await freePort(), (pid) =>
    console.log(`PostgreSQL ended, and runs again (pid ${pid})`),
  );
  parts.push({ name: "PostgreSQL", stop: () => postgres.stop() });
  console.log(`PostgreSQL      ${postgres.url} (pid ${postgres.pid})`);
  return postgres.url;
}

/** A node that ends is started again at its port, as a service manager does. */
async function startNode(
  name: string,
  databaseUrl: string,
  secrets: Record<string, string>,
): Promise<StartedNode> {
  const env = {
    ...process.env,
    ...secrets,
    DATABASE_URL: databaseUrl,
    SIGNALBOX_LOG_LEVEL: process.env["SIGNALBOX_LOG_LEVEL"] ?? "error",
  };
  let isStopping = false;
  let node = await spawnNode(name, 0, env);
  const { port } = node;
  const keepRunning = async () => {
    while (!isStopping) {
      await node.exited;
      if (isStopping) return;
      node = await spawnNode(name, port, env);
      console.log(`${name} ended, and runs again (pid ${node.pid})`);
    }
  };
  const running = keepRunning().catch((error: Error) => stop.resolve(error.message));
  parts.push({
    name,
    async stop() {
      isStopping = true;
      node.end();
      await running;
    },
  });
  return { port, pid: node.pid };
}

/** Resolves when the node listens. */
async function spawnNode(name: string, port: number, env: NodeJS.ProcessEnv) {
  const args = ["serve", "--json", "--port", String(port), "--node-name", name, "--agents", flags.agents];
  const child = spawn("signalbox", [...args, "--data-dir", join(folder, name)], {
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
    env,
  });
  const exited = once(child, "exit");
  const failed = exited.then(([code]) => {
    throw new Error(`${name} ended with ${String(code)}`);
  });
  // Afterwards `exited` tells.
  failed.catch(() => undefined);
  const [line] = (await Promise.race([once(createInterface(child.stdout), "line"), failed])) as [string];
  const { url } = JSON.parse(line) as { url: string };
  return { pid: child.pid, port: Number(new URL(url).port), exited, end: () => child.kill("SIGTERM") };
}

/** Secrets that all nodes share, made once: tokens and stored keys must survive a restart. */
async function readSecrets(file: string): Promise<Record<string, string>> {
  if (!existsSync(file)) {
    const names = ["CLUSTER_SECRET", "ROOT_TOKEN", "ENCRYPTION_KEY", "MASTER_KEY"].map(
      (name) => `SIGNALBOX_${name}`,
    );
    const made = [...names, "WEBHOOK_SECRET"].map((name) => [name, randomBytes(32).toString("hex")]);
    await writeFile(file, JSON.stringify(Object.fromEntries(made), null, 2), { mode: 0o600 });
  }
  return JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
