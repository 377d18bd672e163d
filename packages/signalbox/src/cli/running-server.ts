/** For commands that make sense only for a server that is running: one that is started for the command would stop after it. */
import { dataDirOf } from "../config/data-dir.ts";
import { type CommandContext, UsageError } from "./command.ts";
import { readEnvironment } from "./environment.ts";
import { findAddress } from "./find-server.ts";

/** Throws if no server is named and none runs on the data folder. `advice` follows a semicolon. */
export async function requireRunningServer(context: CommandContext, advice: string): Promise<void> {
  const environment = readEnvironment(context);
  if (findAddress(context, environment) !== null) return;
  const dataDir = dataDirOf(context.option("data-dir"), environment, context.workingFolder);
  const { findRunningServer } = await import("../database/sqlite/data-folder.ts");
  if (findRunningServer(dataDir) === null) throw new UsageError(`no server runs on ${dataDir}; ${advice}`);
}
