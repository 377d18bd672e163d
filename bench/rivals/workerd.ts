/**
 * The rival of the agents: the same classes on the `agents` package and bare workerd, without a development server. It syncs every write
 * to disk before it answers, as Signalbox does.
 *
 * workerd has 160 MB and only benchmarks need it, so it is not a dependency: the first run installs it and the package from npm into a
 * cache folder.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { bundleWorker } from "../../test/support/worker-bundle.ts";
import { type ServerOnCore, startOnCore } from "../support/server-on-core.ts";

const WORKERD_VERSION = "1.20261104.1";
const AGENTS_VERSION = "0.32.0";
const CACHE = join(import.meta.dirname, "../results/.cache");
const SOURCES = join(import.meta.dirname, "workerd");
const READY_WITHIN_MS = 30_000;

export interface Workerd extends ServerOnCore {
  readonly port: number;
  /** HMAC secret of `POST /webhooks/github`. */
  readonly webhookSecret: string;
}

/** Starts it with empty storage on a free port; `stop` removes the storage. */
export async function startWorkerd(webhookSecret = "secret-of-the-benchmark"): Promise<Workerd> {
  const installed = install();
  // From text, so that packages are resolved in the installed folder and not in this repository.
  const contents = readFileSync(join(SOURCES, "worker.js"), "utf8");
  const bundle = await bundleWorker({ contents, resolveDir: installed }, true);
  const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-workerd-"));
  const port = await findFreePort();
  mkdirSync(join(folder, "storage"));
  writeFileSync(join(folder, "worker.js"), bundle);
  writeFileSync(join(folder, "email.js"), "export default { EmailMessage: class {} };\n");
  const config = readFileSync(join(SOURCES, "config.capnp"), "utf8")
    .replace("@PORT@", String(port))
    .replace("@SECRET@", webhookSecret);
  writeFileSync(join(folder, "config.capnp"), config);
  const server = await startOnCore(
    [join(installed, "node_modules/workerd/bin/workerd"), "serve", "config.capnp"],
    { cwd: folder, waitForLine: false },
  );
  const stop = async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await waitUntilReady(port);
  } catch (error) {
    await stop();
    throw error;
  }
  return { ...server, port, webhookSecret, stop };
}

/** The folder with workerd and the `agents` package in its node_modules. */
function install(): string {
  const folder = join(CACHE, `workerd-${WORKERD_VERSION}-agents-${AGENTS_VERSION}`);
  if (existsSync(folder)) return folder;
  // Installed into a temporary folder that is renamed at the end, so that an interrupted installation is not used.
  mkdirSync(CACHE, { recursive: true });
  const unfinished = mkdtempSync(join(CACHE, "installing-"));
  writeFileSync(join(unfinished, "package.json"), '{ "private": true }\n');
  const packages = [`workerd@${WORKERD_VERSION}`, `agents@${AGENTS_VERSION}`];
  const { status, stderr } = spawnSync("npm", ["install", "--legacy-peer-deps=false", ...packages], {
    cwd: unfinished,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`workerd could not be installed: ${stderr}`);
  renameSync(unfinished, folder);
  return folder;
}

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

async function waitUntilReady(port: number): Promise<void> {
  const until = performance.now() + READY_WITHIN_MS;
  for (;;) {
    try {
      const response = await fetch(`http://127.0.0.1:${port}/healthz`);
      await response.text();
      if (response.ok) return;
    } catch {
      // Not listening yet.
    }
    if (performance.now() > until) throw new Error("workerd did not become ready");
    await sleep(50);
  }
}
