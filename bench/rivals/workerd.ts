/**
 * The rival of the agents: the same classes on the `agents` package and bare workerd, without a development server. It syncs every write
 * to disk before it answers, as Signalbox does.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { bundleWorker } from "../../test/support/worker-bundle.ts";
import { findWorkerd } from "../../test/support/workerd-binary.ts";
import { type ServerOnCore, startOnCore } from "../support/server-on-core.ts";

const SOURCES = join(import.meta.dirname, "workerd");
/** Signalbox runs the same file in worker mode. */
export const WORKER_FILE = join(SOURCES, "worker.js");
const READY_WITHIN_MS = 30_000;

export interface Workerd extends ServerOnCore {
  readonly port: number;
  /** HMAC secret of `POST /webhooks/github`. */
  readonly webhookSecret: string;
}

/** Starts it with empty storage on a free port; `stop` removes the storage. */
export async function startWorkerd(webhookSecret = "secret-of-the-benchmark"): Promise<Workerd> {
  const bundle = await bundleWorker(WORKER_FILE, true);
  const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-workerd-"));
  const port = await findFreePort();
  mkdirSync(join(folder, "storage"));
  writeFileSync(join(folder, "worker.js"), bundle);
  writeFileSync(join(folder, "email.js"), "export default { EmailMessage: class {} };\n");
  const config = readFileSync(join(SOURCES, "config.capnp"), "utf8")
    .replace("@PORT@", String(port))
    .replace("@SECRET@", webhookSecret);
  writeFileSync(join(folder, "config.capnp"), config);
  const server = await startOnCore([findWorkerd(), "serve", "config.capnp"], {
    cwd: folder,
    waitForLine: false,
  });
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
