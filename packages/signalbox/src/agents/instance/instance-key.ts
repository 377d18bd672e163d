/**
 * The text that stands for an instance in the memory of the process: in the directory, the connection groups, the activity listeners and the
 * chains of calls. Account ids and agents' names hold no slash, so two instances never share a key.
 */
import type { InstanceRef } from "../../storage/ports/instance-store.ts";

export function instanceKey(account: string, agent: string, name: string): string {
  return `${account}/${agent}/${name}`;
}

export function keyOf({ account, agent, name }: InstanceRef): string {
  return instanceKey(account, agent, name);
}
