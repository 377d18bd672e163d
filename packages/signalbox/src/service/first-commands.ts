/** The first commands to try, for the terminal and the dashboard. */
import type { AreaModule, CommandLine, FirstCommand, OverviewCard } from "../area-module.ts";
import { dataDirOf } from "../config/data-dir.ts";
import type { Config } from "../config/index.ts";

/** The order in which the commands work: an event must be sent before an agent can show it. */
const ORDER: readonly OverviewCard[] = ["gateway", "webhooks", "agents", "tags"];

/** Returns commands that can be pasted into a shell in the working folder of the service, in the order in which to run them. */
export function firstCommandsOf(
  areas: readonly AreaModule[],
  url: string,
  signalbox: CommandLine,
): FirstCommand[] {
  return areas
    .flatMap(({ firstCommands }) => firstCommands?.(url, signalbox) ?? [])
    .toSorted((a, b) => ORDER.indexOf(a.card) - ORDER.indexOf(b.card));
}

/**
 * A command finds the server and its root token through the data folder, so only another folder than the default is named. A caller that need not
 * know the folder gets the line without it.
 */
export function commandLine(
  config: Pick<Config, "environment" | "workingFolder" | "dataDir" | "commandDataDir">,
  mayNameFolder: boolean,
): CommandLine {
  const { environment, workingFolder, commandDataDir: dataDir = config.dataDir } = config;
  // npm has started the service: as a script of a project, by `npx`, or in a clone of the repository. In all of them `npx` finds the command.
  const program = environment["npm_config_user_agent"] === undefined ? "signalbox" : "npx signalbox";
  const isDefault = dataDir === dataDirOf(undefined, {}, workingFolder);
  const folder = isDefault || !mayNameFolder ? "" : ` --data-dir ${quote(dataDir)}`;
  return (words) => `${program} ${words}${folder}`;
}

function quote(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`;
}
