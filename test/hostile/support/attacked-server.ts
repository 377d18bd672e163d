/**
 * A server in a separate process, so that an input that ends the process is a failure and does not end the fuzzer.
 * `check` fails if the process has ended, does not answer, or has logged an error.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConfigFileInput } from "../../../packages/signalbox/src/config/index.ts";
import { patiently } from "../../support/patience.ts";
import { startServerProcess } from "../../support/server-process.ts";
import { ROOT_TOKEN } from "../../support/test-server.ts";

export interface AttackedServer {
  readonly url: string;
  readonly port: number;
  check(): Promise<void>;
  close(): Promise<void>;
}

export async function startAttackedServer(
  file: ConfigFileInput,
  env: Record<string, string> = {},
): Promise<AttackedServer> {
  const dataDir = await mkdtemp(join(tmpdir(), "signalbox-fuzz-"));
  const config = join(dataDir, "signalbox.config.json");
  await writeFile(config, JSON.stringify(patiently(file)));
  const server = await startServerProcess(["--data-dir", dataDir, "--config", config], {
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, ...env },
  });
  const hasEnded = () => server.child.exitCode !== null || server.child.signalCode !== null;
  let checked = 0;
  return {
    url: server.url,
    port: Number(new URL(server.url).port),
    async check() {
      const response = await fetch(`${server.url}/healthz`).catch((error: unknown) => error);
      const text = server.stderr();
      if (hasEnded() || !(response instanceof Response) || response.status !== 200)
        throw new Error(`the server is not alive: ${text.slice(checked).slice(-2000)}`);
      await response.arrayBuffer();
      // The end of the last line may still be on its way.
      const end = text.lastIndexOf("\n") + 1;
      const news = text.slice(checked, end);
      checked = end;
      const unexpected = news.split("\n").find((line) => line !== "" && !isExpected(line));
      if (unexpected !== undefined) throw new Error(`logged: ${unexpected.slice(0, 2000)}`);
    },
    async close() {
      if (!hasEnded()) await server.end("SIGKILL");
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/**
 * Log lines below `error`, and that code took seconds, which any code does on a machine that is short of time; any other output on standard error
 * comes from Node.
 */
function isExpected(line: string): boolean {
  try {
    const { level, blocked_ms: blockedMs } = JSON.parse(line) as { level: string; blocked_ms?: number };
    return (level !== "error" && level !== "fatal") || blockedMs !== undefined;
  } catch {
    return false;
  }
}
