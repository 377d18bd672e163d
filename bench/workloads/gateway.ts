/**
 * The gateway's relay as it is installed (log rows and bodies kept) with authentication on, against what people put before a provider
 * today. Every contender runs alone on one core; the load generator and the provider share the other. The goals are judged on the default;
 * what the bodies cost is the difference to the contender that keeps rows only.
 *
 * nginx comes from the system (`apt-get install nginx`); Portkey's gateway is installed with npm into a folder below the system's
 * temporary one on the first run. A contender that cannot be had is left out and said so.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cliOf, THIS_CHECKOUT } from "../support/checkout.ts";
import { buildRequest, runLoad } from "../support/load.ts";
import { type ServerOnCore, startOnCore, startOnLoadCore } from "../support/server-on-core.ts";
import type { Contender, Metric, Workload } from "../support/workload.ts";

const RIVALS = join(import.meta.dirname, "../rivals");
const PORTKEY_FOLDER = join(tmpdir(), "signalbox-bench-portkey-1.15.2");
const ROOT_TOKEN = "root-token-of-the-benchmark";

const ONE = "JSON, 1 connection";
const MANY = "JSON, 32 connections";
const STREAM = "streams of 50 events, 32 connections";
const BURST = "streams of 50 events in one write, 32 connections";
const MEMORY = "resident memory";

/** A request of about 1 KB. */
const message = { role: "user", content: "Tell me about the signal box by the railway line. ".repeat(17) };
const JSON_BODY = JSON.stringify({ model: "gpt-4o-mini", messages: [message] });
const STREAM_BODY = JSON.stringify({ model: "gpt-4o-mini", stream: true, messages: [message] });
/** The provider knows the user's name and writes all events at once. */
const BURST_BODY = JSON.stringify({
  model: "gpt-4o-mini",
  stream: true,
  user: "burst",
  messages: [message],
});

/** What of a contender the scenarios need: where it listens, how it is asked, and whose processor time counts. */
interface Target {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly process: ServerOnCore | null;
  stop(): Promise<void>;
}

interface Provider {
  readonly port: number;
  stop(): Promise<void>;
}

let provider: Promise<Provider> | undefined;
let users = 0;

/** The first contender starts the provider; the last one that stops ends it. */
function useProvider(): Promise<Provider> {
  users += 1;
  provider ??= (async () => {
    const server = await startOnLoadCore([process.execPath, join(RIVALS, "instant-provider.ts")]);
    const { port } = JSON.parse(server.firstLine) as { port: number };
    return { port, stop: () => server.stop() };
  })();
  return provider;
}

async function leaveProvider(): Promise<void> {
  users -= 1;
  if (users === 0) await (await provider)?.stop();
}

function contender(name: string, start: (providerPort: number) => Promise<Target>): Contender {
  return {
    name,
    async start() {
      const target = await start((await useProvider()).port);
      const headers = { "content-type": "application/json", ...target.headers };
      const json = buildRequest("POST", target.path, headers, JSON_BODY);
      const stream = buildRequest("POST", target.path, headers, STREAM_BODY);
      const burst = buildRequest("POST", target.path, headers, BURST_BODY);
      const load = async (request: Buffer, connections: number, durationMs: number, maxRequests?: number) => {
        const result = await runLoad({
          port: target.port,
          connections,
          durationMs,
          request: () => request,
          ...(maxRequests === undefined ? {} : { maxRequests }),
        });
        if (result.unexpected > 0)
          throw new Error(`${name} answered ${result.unexpected} requests with an error`);
        return result;
      };
      await load(json, 32, 1500);
      await load(stream, 32, 500);
      return {
        async measure(scenario, round) {
          const cpuBefore = target.process?.cpuMs() ?? null;
          switch (scenario) {
            case ONE: {
              const { perSecond, p50Ms, p99Ms } = await load(json, 1, 1500);
              return { requests: perSecond, p50: p50Ms, p99: p99Ms };
            }
            case MANY:
            case STREAM:
            case BURST: {
              const request = scenario === MANY ? json : scenario === STREAM ? stream : burst;
              const result = await load(request, 32, 1500);
              const cpuMs = (target.process?.cpuMs() ?? 0) - (cpuBefore ?? 0);
              return {
                requests: result.perSecond,
                p50: result.p50Ms,
                p99: result.p99Ms,
                ...(target.process === null ? {} : { cpu: (cpuMs * 1000) / result.requests }),
              };
            }
            case MEMORY: {
              if (name !== "signalbox" || round > 0) return null;
              const megabytes = () => (target.process?.residentBytes() ?? 0) / 1024 / 1024;
              await load(json, 32, 60_000, 100_000);
              const first = megabytes();
              await load(json, 32, 60_000, 100_000);
              return { first, second: megabytes() };
            }
            default:
              return null;
          }
        },
        async stop() {
          await target.stop();
          await leaveProvider();
        },
      };
    },
  };
}

async function startSignalbox(
  providerPort: number,
  keepsBodies: boolean,
  checkout = THIS_CHECKOUT,
): Promise<Target> {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-"));
  writeFileSync(
    join(folder, "signalbox.config.json"),
    JSON.stringify({ providers: { openai: { baseUrl: `http://127.0.0.1:${providerPort}/v1` } } }),
  );
  const server = await startOnCore(
    [process.execPath, cliOf(checkout), "serve", "--json", "--port", "0", "--data-dir", join(folder, "data")],
    { cwd: folder, env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN } },
  );
  const { url } = JSON.parse(server.firstLine) as { url: string };
  const manage = async (method: string, path: string, body: object) => {
    const response = await fetch(`${url}/accounts/default/ai-gateway/gateways/default${path}`, {
      method,
      headers: { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return ((await response.json()) as { result: { token: string } }).result;
  };
  await manage("PUT", "", { authentication: true });
  const { token } = await manage("POST", "/tokens", {});
  return {
    port: Number(new URL(url).port),
    path: "/v1/default/default/openai/chat/completions",
    headers: {
      authorization: "Bearer provider-key",
      "gw-aig-authorization": `Bearer ${token}`,
      ...(keepsBodies ? {} : { "gw-aig-collect-log-payload": "false" }),
    },
    process: server,
    async stop() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function startNginx(providerPort: number): Promise<Target> {
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

async function startPortkey(providerPort: number): Promise<Target> {
  installPortkey();
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

async function startBare(providerPort: number): Promise<Target> {
  const server = await startOnCore([
    process.execPath,
    join(RIVALS, "bare-proxy.ts"),
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

/** The provider itself, to know what any contender adds. */
async function startDirect(providerPort: number): Promise<Target> {
  return {
    port: providerPort,
    path: "/v1/chat/completions",
    headers: {},
    process: null,
    stop: () => Promise.resolve(),
  };
}

/** 1.14.1 of its server adapter: with the version npm would choose, every streamed call fails. */
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

function hasNginx(): boolean {
  return spawnSync("nginx", ["-v"]).status === 0;
}

function hasPortkey(): boolean {
  try {
    installPortkey();
    return true;
  } catch {
    return false;
  }
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

const rivals: Contender[] = [];
if (hasNginx()) rivals.push(contender("nginx", startNginx));
else console.error("nginx is not installed: left out");
if (hasPortkey()) rivals.push(contender("portkey", startPortkey));
else console.error("@portkey-ai/gateway cannot be installed: left out");

const SPEED: readonly Metric[] = [
  { name: "requests", unit: "1/s", better: "higher" },
  { name: "p50", unit: "ms", better: "lower" },
  { name: "p99", unit: "ms", better: "lower" },
];
const CPU: Metric = { name: "cpu", unit: "µs/call", better: "lower" };

export const workload: Workload = {
  name: "gateway",
  summary:
    "calls through the gateway with authentication on, log rows and bodies kept (and rows only), one core each",
  rounds: 3,
  contenders: [
    contender("signalbox", (port) => startSignalbox(port, true)),
    contender("signalbox, rows only", (port) => startSignalbox(port, false)),
    ...rivals,
    contender("node:http + undici", startBare),
    contender("direct", startDirect),
  ],
  oursAt: (checkout) => contender("signalbox", (port) => startSignalbox(port, true, checkout)),
  scenarios: [
    { name: ONE, metrics: SPEED },
    { name: MANY, metrics: [...SPEED, CPU] },
    { name: STREAM, metrics: [...SPEED, CPU] },
    { name: BURST, metrics: [...SPEED, CPU] },
    {
      name: MEMORY,
      metrics: [
        { name: "first", unit: "MB after 100,000 calls", better: "lower" },
        { name: "second", unit: "MB after 200,000 calls", better: "lower" },
      ],
    },
  ],
  goals: [
    {
      text: "JSON at 32 connections: at least 8 × Portkey's requests per second",
      isMet: (median) =>
        (median("signalbox", MANY, "requests") ?? 0) >= 8 * (median("portkey", MANY, "requests") ?? Infinity),
    },
    {
      text: "streams at 32 connections: at least 6 × Portkey's",
      isMet: (median) =>
        (median("signalbox", STREAM, "requests") ?? 0) >=
        6 * (median("portkey", STREAM, "requests") ?? Infinity),
    },
    {
      text: "added latency at one connection below 1 ms (p50)",
      isMet: (median) =>
        (median("signalbox", ONE, "p50") ?? Infinity) - (median("direct", ONE, "p50") ?? 0) < 1,
    },
    {
      text: "processor time a call at most 9 × nginx's",
      isMet: (median) =>
        (median("signalbox", MANY, "cpu") ?? Infinity) <= 9 * (median("nginx", MANY, "cpu") ?? 0),
    },
    {
      text: "resident memory below 200 MB after 100,000 calls, and at most 10 % more after 200,000",
      isMet: (median) => {
        const first = median("signalbox", MEMORY, "first") ?? Infinity;
        return first < 200 && (median("signalbox", MEMORY, "second") ?? Infinity) <= first * 1.1;
      },
    },
  ],
};
