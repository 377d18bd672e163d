/** Finds the shells of the completion tests. */
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

export type Shell = "zsh" | "fish";

/** `ZSH_PATH` or `FISH_PATH`, otherwise the shell of the search path; null if there is none. */
export function findShell(shell: Shell): string | null {
  const given = process.env[`${shell.toUpperCase()}_PATH`];
  if (given !== undefined) return existsSync(given) ? given : null;
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/bin", "/usr/local/bin"];
  return folders.map((folder) => join(folder, shell)).find((file) => existsSync(file)) ?? null;
}

export function shellIsMissing(shell: Shell): string {
  return `${shell} is needed for the tests of completion: install it, or set ${shell.toUpperCase()}_PATH`;
}
