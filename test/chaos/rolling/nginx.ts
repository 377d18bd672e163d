/** nginx before the nodes. It has no health checks of its own: it tries the next node if one refuses the connection. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { HaproxyOptions, RunningBalancer } from "../../../examples/cluster/haproxy.ts";

const PROGRAM = "/usr/sbin/nginx";

export async function startNginx({ port, nodes, folder }: HaproxyOptions): Promise<RunningBalancer> {
  if (!existsSync(PROGRAM)) throw new Error("nginx is missing: apt-get install nginx-light");
  const file = join(folder, "nginx.conf");
  const servers = nodes.map((node) => `server 127.0.0.1:${node} max_fails=0;`).join(" ");
  await writeFile(
    file,
    `daemon off; error_log ${folder}/nginx.log; pid ${folder}/nginx.pid;
events { worker_connections 1024; }
http {
  access_log off;
  ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder}/${name};`).join(" ")}
  upstream signalbox { ${servers} keepalive 32; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://signalbox;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_next_upstream error;
      proxy_buffering off;
      proxy_read_timeout 600s;
    }
  }
}
`,
  );
  const child = spawn(PROGRAM, ["-c", file, "-p", folder], { stdio: "ignore" });
  const exited = once(child, "exit");
  const url = `http://127.0.0.1:${port}`;
  for (;;) {
    const answer = await fetch(`${url}/healthz`).catch(() => null);
    await answer?.body?.cancel();
    if (answer?.status === 200) break;
    if (child.exitCode !== null) throw new Error("nginx ended");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    url,
    async stop() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}
