/**
 * Starts bare workerd with the public `agents` package as a rival. workerd is fetched from npm into a cache folder on first use, so that
 * nobody who does not run benchmarks has to download it; the worker is bundled with the project's own esbuild.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { type ServerOnCore, startOnCore } from "../support/server-on-core.ts";

const PACKAGES = ["workerd@1.20261104.1", "agents@0.32.0", "@modelcontextprotocol/client@2.4.0"];
const ROOT = join(import.meta.dirname, "../..");
const CACHE = join(ROOT, "node_modules/.cache/signalbox-bench/workerd");
const START_TIMEOUT_MS = 20_000;

export interface WorkerdServer {
  readonly port: number;
  readonly process: ServerOnCore;
  stop(): Promise<void>;
}

/** `secret` signs webhooks; instances are kept in a folder that lives as long as the server. */
export async function startWorkerd(secret: string): Promise<WorkerdServer> {
  const binary = installWorkerd();
  const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-workerd-"));
  mkdirSync(join(folder, "state"));
  await bundleWorker(join(folder, "worker.js"));
  const port = await findFreePort();
  writeFileSync(join(folder, "config.capnp"), configText(port, secret));
  const server = await startOnCore([binary, "serve", join(folder, "config.capnp")], {
    waitForLine: false,
    cwd: folder,
  });
  await waitUntilReady(port);
  return {
    port,
    process: server,
    async stop() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function installWorkerd(): string {
  const binary = join(CACHE, "node_modules/workerd/bin/workerd");
  if (!existsSync(binary)) {
    mkdirSync(CACHE, { recursive: true });
    writeFileSync(join(CACHE, "package.json"), '{"private":true}\n');
    execFileSync("npm", ["install", ...PACKAGES, "--no-audit", "--no-fund", "--loglevel=error"], {
      cwd: CACHE,
      stdio: ["ignore", "ignore", "inherit"],
    });
  }
  return binary;
}

/** The worker is bundled inside the cache folder, so that it gets the rival's packages and not ours. */
async function bundleWorker(outfile: string): Promise<void> {
  const entry = join(CACHE, "webhook-agent.js");
  copyFileSync(join(import.meta.dirname, "workerd/webhook-agent.js"), entry);
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2024",
    platform: "neutral",
    mainFields: ["module", "main"],
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*", "node:*"],
    // One CommonJS package in there asks for "path".
    alias: { path: "node:path" },
    banner: { js: 'import nodePath from "node:path"; const require = () => nodePath;' },
    define: { "process.env.NODE_ENV": '"production"' },
    logLevel: "error",
  });
}

function configText(port: number, secret: string): string {
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .mainWorker),
    (name = "disk", disk = (path = "state", writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
  extensions = [(
    modules = [(name = "cloudflare-internal:email", esModule = "export default { EmailMessage: class {} };", internal = true)],
  )],
);

const mainWorker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-10-01",
  bindings = [
    (name = "WebhookAgent", durableObjectNamespace = "WebhookAgent"),
    (name = "WEBHOOK_SECRET", text = "${secret}"),
  ],
  durableObjectNamespaces = [(className = "WebhookAgent", uniqueKey = "signalbox-bench", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
);
`;
}

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

async function waitUntilReady(port: number): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    try {
      const response = await fetch(`http://127.0.0.1:${port}/`);
      await response.text();
      return;
    } catch (cause) {
      if (performance.now() > deadline) throw new Error("workerd did not start", { cause });
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
