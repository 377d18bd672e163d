/**
 * The key of an instance in memory: in the directory, the connection groups, the activity listeners and the chains of calls. Account ids and
 * agents' names contain no slash, so two instances never share a key.
 */
import type { InstanceRef } from "./instance-ref.ts";

export function keyOf({ account, agent, name }: InstanceRef): string {
  return `${account}/${agent}/${name}`;
}
