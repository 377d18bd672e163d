/** The documents that make promises, and the lists of tests behind them. */
import { join } from "node:path";
import { FAILURE_MODES } from "./failure-modes.ts";
import { SECURITY } from "./security.ts";

export const REPOSITORY = join(import.meta.dirname, "../..");

export interface PromisingPage {
  /** From the repository's root. */
  readonly path: string;
  readonly tests: Readonly<Record<string, readonly string[]>>;
}

export const PROMISING_PAGES: readonly PromisingPage[] = [
  { path: "SECURITY.md", tests: SECURITY },
  { path: "docs/failure-modes.md", tests: FAILURE_MODES },
];

/** A promise is a bullet or a table row that begins in bold; its name is the bold text without a full stop. */
export function promisesOf(markdown: string): string[] {
  return [...markdown.matchAll(/^(?:- |\| )\*\*(.+?)\.?\*\*/gm)].map(([, name = ""]) => name);
}

export function parseEntry(entry: string): { path: string; title: string } {
  const [path = "", title = ""] = entry.split(" › ", 2);
  return { path, title };
}
