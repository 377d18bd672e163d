/** `signalbox agents import <data folder>`: brings the instances of one process into the PostgreSQL of a cluster. */
import { resolve } from "node:path";
import type { Command } from "./command.ts";
import { readEnvironment, toFlags } from "./environment.ts";
import { SERVE_OPTIONS } from "./options.ts";

/** Lines of progress: one for so many instances. */
const REPORT_EVERY = 1000;

export const agentsImport: Command = {
  words: ["agents", "import"],
  positionals: ["<data-folder>"],
  summary:
    "Copy the instances in a data folder that no process uses into the PostgreSQL of a cluster. May be repeated.",
  options: SERVE_OPTIONS.filter(({ name }) =>
    ["config", "database-url", "env-file", "log-level"].includes(name),
  ),
  async run(context) {
    // Loaded for this command only.
    const [{ loadConfig }, { createLogger }, { importAgents }] = await Promise.all([
      import("../config/index.ts"),
      import("../telemetry/logger.ts"),
      import("../service/import-agents.ts"),
    ]);
    const config = await loadConfig(toFlags(context), readEnvironment(context), context.workingFolder);
    const logger = createLogger({ level: config.logLevel, isPretty: context.err.isTTY === true });
    const result = await importAgents({
      config,
      logger,
      folder: resolve(context.workingFolder, context.positionals[0] ?? ""),
      onProgress: (done, all) => {
        if (!context.isJson && done % REPORT_EVERY === 0) context.err.write(`${done} of ${all}\n`);
      },
    });
    context.print(result, ({ imported, kept, failed, renamedTo }) =>
      [
        `imported ${imported} instances`,
        ...(kept === 0 ? [] : [`left ${kept} alone that PostgreSQL had before`]),
        ...failed.map(({ file, reason }) => `failed: ${file}: ${reason}`),
        renamedTo === null ? "the folder is as it was" : `the files are now in ${renamedTo}`,
        "",
      ].join("\n"),
    );
    return result.failed.length === 0 ? 0 : 1;
  },
};
