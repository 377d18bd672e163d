/**
 * Temporary files of a backup. Databases are copied here at the speed of the disk and sent from here, so that a slow client holds no database, no
 * lock and no instance.
 */
import { rmSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FOLDER = "backup-staging";

export class Staging {
  readonly #folder: string;
  #count = 0;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Without a data folder, in a new folder among the temporary files of the system: a fixed name there could belong to another user. */
  static async open(dataFolder: string | null): Promise<Staging> {
    if (dataFolder === null) return new Staging(await mkdtemp(join(tmpdir(), "signalbox-backup-")));
    const parent = join(dataFolder, FOLDER);
    await mkdir(parent, { recursive: true, mode: 0o700 });
    return new Staging(await mkdtemp(join(parent, "backup-")));
  }

  /** Removes what a crash has left. No backup may be running. */
  static clean(dataFolder: string): void {
    rmSync(join(dataFolder, FOLDER), { recursive: true, force: true });
  }

  /** The path of a file that does not exist. */
  newFile(): string {
    return join(this.#folder, String(this.#count++));
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}
