/** The service of the environment variables, or a new one in a temporary folder. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export interface RunningSignalbox {
  readonly url: string;
  readonly token: string;
  stop(): Promise<void>;
}

export async function startSignalbox(): Promise<RunningSignalbox> {
  const { SIGNALBOX_URL: given, SIGNALBOX_TOKEN: givenToken } = process.env;
  if (given !== undefined && givenToken !== undefined) {
    return { url: given.replace(/\/+$/, ""), token: givenToken, stop: async () => {} };
  }
  const folder = await mkdtemp(join(tmpdir(), "signalbox-example-"));
  const token = randomBytes(20).toString("hex");
  const child = spawn("signalbox", ["serve", "--json", "--port", "0", "--data-dir", folder], {
    cwd: folder,
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, SIGNALBOX_ROOT_TOKEN: token, WEBHOOK_SECRET: randomBytes(20).toString("hex") },
  });
  const exited = once(child, "exit");
  const failed = exited.then(() => Promise.reject(new Error("Signalbox did not start")));
  const [line] = (await Promise.race([once(createInterface(child.stdout), "line"), failed])) as [string];
  return {
    url: (JSON.parse(line) as { url: string }).url,
    token,
    async stop() {
      child.kill("SIGTERM");
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
