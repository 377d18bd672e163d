/** The wrangler files of a checkout. */
import { readdir, readFile } from "node:fs/promises";
import { basename, join, sep } from "node:path";
import { parse as parseToml } from "smol-toml";
import { parseJsonc } from "../../packages/signalbox/src/core/jsonc.ts";

export interface Wrangler {
  readonly main?: string;
  readonly durable_objects?: {
    readonly bindings?: readonly { readonly name: string; readonly class_name: string }[];
  };
}

const WRANGLER = /^wrangler.*\.(jsonc?|toml)$/;

export const isWrangler = (path: string) => WRANGLER.test(basename(path));

export async function readWrangler(path: string): Promise<Wrangler> {
  const text = await readFile(path, "utf8");
  return (path.endsWith(".toml") ? parseToml(text) : parseJsonc(text)) as Wrangler;
}

/** The one that tools take if none is named. Null: the folder has none. */
export async function findWrangler(folder: string): Promise<string | null> {
  const names = await readdir(folder);
  const name = ["wrangler.json", "wrangler.jsonc", "wrangler.toml"].find((one) => names.includes(one));
  return name === undefined ? null : join(folder, name);
}

/** Without those of packages. */
export async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !entry.parentPath.includes(`${sep}node_modules`))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
}
