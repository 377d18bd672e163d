/** The name that a program gave an object, read without loading the object. */
import { sql } from "../../core/sql.ts";
import type { Directory } from "../instance/directory.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";
import { nameOfWork } from "./current-work.ts";

export async function readName(directory: Directory, ref: InstanceRef): Promise<string | null> {
  const instance = directory.find(ref);
  // An object in memory is not asked: it may be busy.
  const known = instance === undefined ? undefined : nameOfWork(instance);
  if (known !== undefined) return known;
  const row = await directory.read(ref, "name", ({ database }) =>
    database.get<{ name: string | null }>(sql`SELECT name FROM _signalbox_object WHERE id = 1`),
  );
  return row === undefined || row.name === null ? null : (JSON.parse(row.name) as string);
}
