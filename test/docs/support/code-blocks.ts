/**
 * The code blocks of the documentation, with what their pages say about running them in comments that readers do not see:
 *
 *     <!-- not run: needs Docker -->     before a block: it is not run, for this reason
 *     <!-- status: 401 -->               before a block: its last HTTP response has this status
 *     <!-- before: … -->                 before a block: code that is put before it, for names that the text has introduced
 *     <!-- after: … -->                  before a block: code that is put after it
 *     <!-- file: agents.ts -->           before a block: it is written to this file instead of being run
 *     <!-- with agents.ts: … -->         anywhere: a file of the page that the text does not show
 *
 * A comment applies to the next block.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "../../..");

export interface CodeBlock {
  readonly page: string;
  readonly line: number;
  readonly language: string;
  readonly code: string;
  readonly notRun: string | null;
  readonly status: number | null;
  readonly before: string;
  readonly after: string;
  readonly file: string | null;
}

/** Generated pages are checked by their own tests; a benchmark takes minutes; a decision describes a past state. */
const LEFT_OUT =
  /^docs\/(decisions\/|benchmarks\.md|promises\.md|reference\/(api\/|errors\.md|metrics\.md))|node_modules/;

export function pagesWithCode(): string[] {
  return globSync(["README.md", "docs/**/*.md", "examples/*/README.md", "packages/*/README.md"], {
    cwd: ROOT,
  })
    .filter((page) => !LEFT_OUT.test(page))
    .toSorted();
}

export function readCodeBlocks(page: string): CodeBlock[] {
  return parseCodeBlocks(page, readFileSync(join(ROOT, page), "utf8"));
}

export function parseCodeBlocks(page: string, markdown: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  const pattern =
    /^<!-- (not run|status|before|after|file):\s?(.*?)\s*-->$|^( *)```(\w+)[^\n]*\n(.*?)^ *```$/gms;
  let notes = new Map<string, string>();
  for (const { 1: note, 2: text = "", 3: indent = "", 4: language, 5: code = "", index } of markdown.matchAll(
    pattern,
  )) {
    if (note !== undefined) {
      notes.set(note, text);
      continue;
    }
    blocks.push({
      page,
      line: markdown.slice(0, index).split("\n").length,
      language: language ?? "",
      code: code.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
      notRun: notes.get("not run") ?? null,
      status: notes.has("status") ? Number(notes.get("status")) : null,
      before: notes.get("before") ?? "",
      after: notes.get("after") ?? "",
      file: notes.get("file") ?? null,
    });
    notes = new Map();
  }
  return blocks;
}

/** Files that a page takes as given, by name. */
export function readGivenFiles(page: string): [name: string, content: string][] {
  const text = readFileSync(join(ROOT, page), "utf8");
  return [...text.matchAll(/^<!-- with (\S+):\n(.*?)^-->$/gms)].map(([, name = "", content = ""]) => [
    name,
    content,
  ]);
}
