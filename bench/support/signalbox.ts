/** Starts Signalbox from a checkout of the repository: this one, or the one it is compared with. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ServerOnCore, startOnCore } from "./server-on-core.ts";

export const THIS_CHECKOUT = join(import.meta.dirname, "../..");

/** Folders of the package, so that the other checkout may have another layout. */
const PACKAGES = ["packages/signalbox", "."];
const PROGRAM = "bin/signalbox.js";

export interface SignalboxOptions {
  readonly checkout: string;
  /** Content of `signalbox.config.json`. */
  readonly config?: object;
  readonly env?: Record<string, string>;
  /** Default: an empty folder, removed at the end. */
  readonly dataDir?: string;
}

export interface RunningSignalbox extends ServerOnCore {
  readonly url: string;
  readonly port: number;
}

export async function startSignalbox(options: SignalboxOptions): Promise<RunningSignalbox> {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-"));
  const config = join(folder, "signalbox.config.json");
  writeFileSync(config, JSON.stringify(options.config ?? {}));
  const dataDir = options.dataDir ?? join(folder, "data");
  const flags = ["--json", "--port", "0", "--data-dir", dataDir, "--config", config];
  const server = await startOnCore(
    [process.execPath, join(packageOf(options.checkout), PROGRAM), "serve", ...flags],
    {
      cwd: folder,
      env: options.env ?? {},
    },
  );
  const { url } = JSON.parse(server.firstLine) as { url: string };
  return {
    ...server,
    url,
    port: Number(new URL(url).port),
    async stop() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export function packageOf(checkout: string): string {
  const folder = PACKAGES.map((path) => join(checkout, path)).find((path) => existsSync(join(path, PROGRAM)));
  if (folder === undefined) throw new Error(`no ${PROGRAM} in ${checkout}`);
  return folder;
}
