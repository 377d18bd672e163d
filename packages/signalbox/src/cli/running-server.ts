/** For commands that make sense only for a server that is running: one that is started for the command would stop after it. */
import { loadConfig } from "../config/index.ts";
import { findRunningServer } from "../database/sqlite/data-folder.ts";
import { type CommandContext, UsageError } from "./command.ts";
import { readEnvironment, toFlags } from "./environment.ts";

/** Throws if no server is named and none runs on the data folder. `advice` follows a semicolon. */
export async function requireRunningServer(context: CommandContext, advice: string): Promise<void> {
  const environment = readEnvironment(context);
  if ((context.option("url") ?? environment["SIGNALBOX_URL"]) !== undefined) return;
  const { dataDir } = await loadConfig(toFlags(context), environment, context.workingFolder);
  if (findRunningServer(dataDir) === null) throw new UsageError(`no server runs on ${dataDir}; ${advice}`);
}
