import type { CommandLine, FirstCommand } from "../area-module.ts";
import { objectClassOf } from "../contracts/object-agent.ts";
import type { Source } from "./source.ts";

const ENTITY = "my-device";

/** Commands that send an event and show what received it. None without a secret, because every delivery is refused then. */
export function firstCommands(source: Source, signalbox: CommandLine): readonly FirstCommand[] {
  if (source.keys.length === 0) return [];
  const send: FirstCommand = {
    card: "webhooks",
    title: `Send a signed webhook for the entity ${ENTITY} to its agent`,
    command: signalbox(`webhooks send ${source.name} ${ENTITY}`),
  };
  // Objects of a worker are not in the catalog of instances.
  if (objectClassOf(source.agent) !== null) return [send];
  const show: FirstCommand = {
    card: "agents",
    title: "Show the agent's instance that received it",
    command: signalbox(`agents show ${source.agent} ${ENTITY}`),
  };
  return [send, show];
}
