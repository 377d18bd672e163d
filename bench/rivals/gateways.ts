/**
 * What people put before a provider today: nginx (`apt-get install nginx`), Portkey's gateway (installed with npm into a temporary folder
 * on the first run), a bare relay on node:http and undici, and nothing at all.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { nativePrograms, writeRecords } from "../support/native-programs.ts";
import { type ServerOnCore, startOnCore, startOnLoadCore } from "../support/server-on-core.ts";
import { JSON_RESPONSE, MEAN_PAUSE_MS, STREAM_PARTS } from "./provider-answers.ts";

const PORTKEY_FOLDER = join(tmpdir(), "signalbox-bench-portkey-1.15.2");

/** A gateway under test. */
export interface GatewayTarget {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Null if there is no gateway. */
  readonly process: ServerOnCore | null;
  stop(): Promise<void>;
}

/** Starts the provider that all gateways of a run share; it runs on the load generator's core. */
export async function startProvider(): Promise<{ port: number; stop(): Promise<void> }> {
  const native = nativePrograms();
  const command =
    native === null
      ? [process.execPath, join(import.meta.dirname, "node-provider.ts")]
      : [
          native.provider,
          String(MEAN_PAUSE_MS * 1000),
          writeRecords("answers", [JSON_RESPONSE, ...STREAM_PARTS]),
        ];
  const server = await startOnLoadCore(command);
  const { port } = JSON.parse(server.firstLine) as { port: number };
  return { port, stop: () => server.stop() };
}

export async function startNginx(providerPort: number): Promise<GatewayTarget | null> {
  if (spawnSync("nginx", ["-v"]).status !== 0) {
    console.error("nginx is not installed: left out");
    return null;
  }
  const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-nginx-"));
  const port = await freePort();
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join("\n");
  writeFileSync(
    join(folder, "nginx.conf"),
    `pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 1024; }
http {
  access_log off;
  ${temporary}
  upstream provider { server 127.0.0.1:${providerPort}; keepalive 256; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port};
    keepalive_requests 100000000;
    location / {
      proxy_pass http://provider;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`,
  );
  const server = await startOnCore(
    ["nginx", "-p", folder, "-c", join(folder, "nginx.conf"), "-g", "daemon off; master_process off;"],
    { waitForLine: false },
  );
  await untilListening(port);
  return {
    port,
    path: "/v1/chat/completions",
    headers: { authorization: "Bearer provider-key" },
    process: server,
    async stop() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function startPortkey(providerPort: number): Promise<GatewayTarget | null> {
  try {
    installPortkey();
  } catch {
    console.error("@portkey-ai/gateway cannot be installed: left out");
    return null;
  }
  const port = await freePort();
  const entry = join(PORTKEY_FOLDER, "node_modules/@portkey-ai/gateway/build/start-server.js");
  const server = await startOnCore([process.execPath, entry, `--port=${port}`, "--headless"], {
    env: { NODE_ENV: "production" },
    cwd: PORTKEY_FOLDER,
    waitForLine: false,
  });
  await untilListening(port);
  return {
    port,
    path: "/v1/chat/completions",
    headers: {
      authorization: "Bearer provider-key",
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `http://127.0.0.1:${providerPort}/v1`,
    },
    process: server,
    stop: () => server.stop(),
  };
}

export async function startBare(providerPort: number): Promise<GatewayTarget> {
  const server = await startOnCore([
    process.execPath,
    join(import.meta.dirname, "bare-proxy.ts"),
    `http://127.0.0.1:${providerPort}`,
  ]);
  const { port } = JSON.parse(server.firstLine) as { port: number };
  return {
    port,
    path: "/v1/chat/completions",
    headers: { authorization: "Bearer provider-key" },
    process: server,
    stop: () => server.stop(),
  };
}

/** The provider without a gateway: the limit of load generator and provider together. */
export async function startDirect(providerPort: number): Promise<GatewayTarget> {
  return {
    port: providerPort,
    path: "/v1/chat/completions",
    headers: {},
    process: null,
    stop: () => Promise.resolve(),
  };
}

/** With version 1.14.1 of its server adapter: with the one that npm selects, every streamed call fails. */
function installPortkey(): void {
  if (existsSync(join(PORTKEY_FOLDER, "node_modules/@portkey-ai/gateway"))) return;
  mkdirSync(PORTKEY_FOLDER, { recursive: true });
  writeFileSync(
    join(PORTKEY_FOLDER, "package.json"),
    JSON.stringify({
      private: true,
      dependencies: { "@portkey-ai/gateway": "1.15.2" },
      overrides: { "@hono/node-server": "1.14.1" },
    }),
  );
  execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: PORTKEY_FOLDER,
    stdio: "ignore",
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

async function untilListening(port: number): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) return;
    await sleep(100);
  }
  throw new Error(`nothing listens on port ${port}`);
}
