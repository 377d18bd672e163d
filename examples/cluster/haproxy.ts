/** HAProxy before the nodes: it asks `/readyz` of each node, and sends requests to the nodes that are ready. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export interface HaproxyOptions {
  readonly port: number;
  /** Ports of the nodes on this machine. */
  readonly nodes: readonly number[];
  /** For the configuration file. */
  readonly folder: string;
}

export interface RunningBalancer {
  readonly url: string;
  stop(): Promise<void>;
}

/** A node that stops reports it at `/readyz` for `listener.lameDuckMs` (5 s) first, which is longer than two checks. */
export function haproxyConfig({ port, nodes }: Omit<HaproxyOptions, "folder">): string {
  const servers = nodes.map((node, i) => `    server node-${i + 1} 127.0.0.1:${node}`);
  return `global
    maxconn 4096

defaults
    mode http
    timeout connect 2s
    timeout client 10m
    timeout server 10m
    timeout tunnel 24h
    timeout check 5s
    retries 3
    retry-on conn-failure
    option redispatch 1

frontend signalbox
    bind 127.0.0.1:${port}
    # Without PostgreSQL no node is ready, but each one answers gateway calls for a while.
    use_backend nodes-unchecked if { nbsrv(nodes) eq 0 }
    default_backend nodes

backend nodes
    balance leastconn
    option httpchk GET /readyz
    default-server check inter 250ms fall 2 rise 1
${servers.join("\n")}

backend nodes-unchecked
    balance leastconn
${servers.join("\n")}
`;
}

export function findHaproxy(environment: NodeJS.ProcessEnv = process.env): string | null {
  const path = environment["HAPROXY_PATH"] ?? "/usr/sbin/haproxy";
  return existsSync(path) ? path : null;
}

export const HAPROXY_IS_MISSING =
  "HAProxy is missing. Install it (Debian and Ubuntu: apt-get install haproxy) or set HAPROXY_PATH to its executable.";

/** Resolves when HAProxy accepts connections. */
export async function startHaproxy(options: HaproxyOptions): Promise<RunningBalancer> {
  const program = findHaproxy();
  if (program === null) throw new Error(HAPROXY_IS_MISSING);
  const file = join(options.folder, "haproxy.cfg");
  await writeFile(file, haproxyConfig(options));
  // -db: in the foreground, so that it ends with this program.
  const child = spawn(program, ["-db", "-f", file], {
    stdio: ["ignore", "ignore", "pipe"],
    // A group of its own: Ctrl-C in a terminal must not end it before the nodes.
    detached: true,
  });
  let output = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output += text));
  const exited = once(child, "exit");
  let hasEnded = false;
  void exited.then(() => (hasEnded = true));
  const url = `http://127.0.0.1:${options.port}`;
  for (;;) {
    if (hasEnded) throw new Error(`HAProxy ended: ${output}`);
    const answer = await fetch(`${url}/healthz`).catch(() => null);
    await answer?.body?.cancel();
    if (answer?.status === 200) break;
    await sleep(50);
  }
  return {
    url,
    async stop() {
      if (!hasEnded) child.kill("SIGTERM");
      await exited;
    },
  };
}
