/** A page of instances, with what only the nodes know that run them. */
import type { z } from "zod";
import type { CatalogEntry } from "../instance/instance-catalog.ts";
import type { FindResidents } from "./residents.ts";
import * as show from "./show-instance.ts";

/** `entries` are of one account and agent. */
export async function showAll(
  find: FindResidents,
  agent: string,
  entries: readonly CatalogEntry[],
  areObjects: boolean,
): Promise<z.input<typeof show.instanceResult>[]> {
  const account = entries[0]?.account ?? "";
  const names = entries.map(({ name }) => name);
  const residents = await find({ account, agent, names, areObjects });
  return entries.map((entry, i) => show.instance(entry, residents[i]));
}
