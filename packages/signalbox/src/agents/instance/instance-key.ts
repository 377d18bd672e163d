/**
 * The text that stands for an instance in the memory of the process: in the directory, the connection groups, the activity listeners and the
 * chains of calls. Account ids and agents' names hold no slash, so two instances never share a key.
 */
import type { InstanceRef } from "./instance-ref.ts";

/** What the keys of an account's instances of an agent begin with; the name follows. */
export function keyPrefix(account: string, agent: string): string {
  return `${account}/${agent}/`;
}

export function keyOf({ account, agent, name }: InstanceRef): string {
  return keyPrefix(account, agent) + name;
}
