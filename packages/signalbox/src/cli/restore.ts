/** `signalbox restore <file>`: brings a backup into a new data folder, and into an empty database of PostgreSQL. */
import { resolve } from "node:path";
import { DataFolderError } from "../core/data-folder-error.ts";
import { describe } from "./backup.ts";
import type { Command } from "./command.ts";
import { readEnvironment, toFlags } from "./environment.ts";
import { DATA_FOLDER_OPTIONS } from "./options.ts";

/** Lines of progress: one for so many files. */
const REPORT_EVERY = 1000;

export const restore: Command = {
  words: ["restore"],
  positionals: ["<file>"],
  summary:
    "Restore a backup into an empty data folder (--data-dir), and into an empty database (--database-url) if it is one of PostgreSQL. No server may run on them.",
  options: [
    {
      name: "replace",
      summary: "move the content of a data folder that is not empty into a folder below it",
    },
    ...DATA_FOLDER_OPTIONS.filter(({ name }) =>
      ["data-dir", "database-url", "config", "env-file"].includes(name),
    ),
  ],
  async run(context) {
    // Loaded for this command only.
    const [{ loadConfig }, { restoreBackup }, { isFullDisk }] = await Promise.all([
      import("../config/index.ts"),
      import("../service/backup/restore-backup.ts"),
      import("../engines/sqlite-file/index.ts"),
    ]);
    const config = await loadConfig(toFlags(context), readEnvironment(context), context.workingFolder);
    const restored = await restoreBackup({
      file: resolve(context.workingFolder, context.positionals[0] ?? ""),
      dataDir: config.dataDir,
      databaseUrl: config.databaseUrl?.reveal() ?? null,
      mayReplace: context.hasSwitch("replace"),
      onProgress: (done, all) => {
        if (!context.isJson && done % REPORT_EVERY === 0) context.err.write(`${done} of ${all} files\n`);
      },
    }).catch((cause: unknown) => {
      if (!isFullDisk(cause)) throw cause;
      throw new DataFolderError(
        `no room for the backup in ${config.dataDir}; free some, and run the same command again`,
        { cause },
      );
    });
    const { manifest, replacedTo, damaged } = restored;
    context.print({ data_dir: config.dataDir, replaced_to: replacedTo, damaged, ...manifest }, () =>
      [
        `restored into ${config.dataDir}`,
        describe(manifest).trimEnd(),
        ...(replacedTo === null ? [] : [`the former content is in ${replacedTo}`]),
        ...damaged.map(({ file, reason }) => `damaged before the backup: ${file}: ${reason}`),
        "",
      ].join("\n"),
    );
    return damaged.length === 0 ? 0 : 1;
  },
};
