/** What the commands on one instance share. */
import type { InstanceApi } from "@signalbox/client";
import type { CommandContext, CommandOption } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";

export const INSTANCE_POSITIONALS: readonly string[] = ["<agent>", "<name>"];
export const INSTANCE_OPTIONS: readonly CommandOption[] = [ACCOUNT_OPTION, ...CLIENT_OPTIONS];

export async function instanceOf(context: CommandContext): Promise<InstanceApi> {
  const [agent = "", name = ""] = context.positionals;
  return (await context.account()).agents.instance(agent, name);
}
