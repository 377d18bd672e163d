/** The pages that make promises, and the tests of each promise. */
import { join } from "node:path";
import { FAILURE_MODES } from "./failure-modes.ts";
import { SECURITY } from "./security.ts";

export const REPOSITORY = join(import.meta.dirname, "../..");

export interface PromisingPage {
  /** Relative to the root of the repository. */
  readonly path: string;
  readonly tests: Readonly<Record<string, readonly string[]>>;
}

export const PROMISING_PAGES: readonly PromisingPage[] = [
  { path: "SECURITY.md", tests: SECURITY },
  { path: "docs/failure-modes.md", tests: FAILURE_MODES },
];

/** A promise is a list item or table row that begins with bold text; its name is that text without the full stop. */
export function promisesOf(markdown: string): string[] {
  return [...markdown.matchAll(/^(?:- |\| )\*\*(.+?)\.?\*\*/gm)].map(([, name = ""]) => name);
}

export function parseEntry(entry: string): { path: string; title: string } {
  const [path = "", title = ""] = entry.split(" › ", 2);
  return { path, title };
}
