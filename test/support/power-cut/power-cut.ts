/**
 * A server on a disk whose power can be cut: after a cut everything that was synced is there, and perhaps some of the
 * rest.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ServerProcess, startServerProcess } from "../server-process.ts";
import { rebuildDisk } from "./disk-after-cut.ts";

const RECORD_SYNCS = new URL("record-syncs.ts", import.meta.url).href;
const FORGET_SYNCS = new URL("forget-syncs.ts", import.meta.url).href;

export interface CuttableOptions {
  /** Arguments of `signalbox serve`, without the data folder. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly random: () => number;
  /** The server's syncs of these do nothing, which simulates a server that responds too early. */
  readonly forgets?: "files" | "folders";
}

export class CuttableServer {
  readonly #options: CuttableOptions;
  readonly #folder = mkdtempSync(join(tmpdir(), "signalbox-power-cut-"));
  #disks = 0;
  #server: ServerProcess | null = null;

  constructor(options: CuttableOptions) {
    this.#options = options;
  }

  /** Starts the server on the content of the disk; after `kill` including the unsynced writes of the killed process. */
  async start(): Promise<string> {
    const imports = [RECORD_SYNCS, ...(this.#options.forgets === undefined ? [] : [FORGET_SYNCS])];
    this.#server = await startServerProcess([...this.#options.args, "--data-dir", this.#dataDir], {
      env: {
        ...this.#options.env,
        NODE_OPTIONS: imports.map((file) => `--import=${file}`).join(" "),
        POWER_CUT_ROOT: this.#dataDir,
        POWER_CUT_JOURNAL: `${this.#dataDir}.journal`,
        POWER_CUT_FORGET: this.#options.forgets ?? "",
      },
    });
    return this.#server.url;
  }

  /** A first start and stop without faults: the control plane exists. */
  async prepare(): Promise<void> {
    const server = await startServerProcess([...this.#options.args, "--data-dir", this.#dataDir], {
      env: this.#options.env,
    });
    await server.end("SIGTERM");
  }

  /** Ends the process; the machine stays on. */
  async kill(): Promise<void> {
    await this.#server?.end("SIGKILL");
    this.#server = null;
  }

  /** Ends the process and cuts the power. */
  async cutPower(): Promise<void> {
    await this.kill();
    const before = this.#dataDir;
    this.#disks += 1;
    rebuildDisk({
      folder: before,
      journal: `${before}.journal`,
      target: this.#dataDir,
      random: this.#options.random,
    });
    rmSync(before, { recursive: true });
    rmSync(`${before}.journal`);
  }

  async remove(): Promise<void> {
    // A process that ended by itself has already failed its test.
    await this.kill().catch(() => undefined);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #dataDir(): string {
    return join(this.#folder, `disk-${this.#disks}`);
  }
}
