/** The page of the command line, and the commands that the documentation shows. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import {
  findCommand,
  matchCommand,
  matchGroup,
  parseOptions,
  requirePositionals,
} from "../../packages/signalbox/src/cli/arguments.ts";
import { COMMANDS } from "../../packages/signalbox/src/cli/command-list.ts";
import { cliPage, CLI_PAGE_PATH } from "./cli-page.ts";

const ROOT = join(import.meta.dirname, "../..");
const PAGES = [
  "README.md",
  "docs/*.md",
  "docs/guides/*.md",
  "docs/reference/*.md",
  "examples/*/README.md",
].flatMap((pattern) => globSync(pattern, { cwd: ROOT }));

it("docs/reference/cli.md is up to date with the table of commands (otherwise: npm run docs)", () => {
  expect(readFileSync(CLI_PAGE_PATH, "utf8")).toBe(cliPage());
});

/** Commands in blocks of shell code: `npx signalbox gateway list | head  # comment` becomes `["gateway", "list"]`. */
function shellCommands(text: string): string[][] {
  const blocks = [...text.matchAll(/^ *```(?:sh|bash|console)\n([^]*?)^ *```/gm)].map(
    ([, code = ""]) => code,
  );
  const lines = blocks.flatMap((code) => code.replaceAll("\\\n", " ").split("\n"));
  return lines.flatMap((line) => {
    const [, command] = /(?:^|[;&|(] *|npx )signalbox ([^#;|&>)]+)/.exec(line.trim()) ?? [];
    return command === undefined ? [] : [wordsOf(command)];
  });
}

function wordsOf(command: string): string[] {
  return [...command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? "");
}

it.each(PAGES)("the commands in the shell code of %s can be typed as they are", (page) => {
  for (const args of shellCommands(readFileSync(join(ROOT, page), "utf8"))) {
    const { command, rest } = findCommand(args, COMMANDS);
    const { positionals } = parseOptions(command, rest);
    requirePositionals(command, positionals);
  }
});

it.each(PAGES)("commands and options in the text of %s exist", (page) => {
  const text = readFileSync(join(ROOT, page), "utf8").replace(/^ *```[^]*?^ *```/gm, "");
  for (const [, code = ""] of text.matchAll(/(?<!`application_name` )`(?:npx )?signalbox ([a-z][^`]*)`/g)) {
    const args = wordsOf(code.replace(/[[\]|]/g, " "));
    const found = matchCommand(args, COMMANDS);
    if (args[0] === "help") continue;
    const isGroup = matchGroup(args[0], COMMANDS) !== undefined;
    expect([code, found !== undefined || (isGroup && !/^[a-z-]+$/.test(args[1] ?? ""))]).toEqual([
      code,
      true,
    ]);
    const names = new Set([
      ...(found?.command.options ?? []).map(({ name }) => name),
      "json",
      "output",
      "verbose",
      "help",
    ]);
    for (const arg of args) {
      const option = /^--([a-z-]+)/.exec(arg)?.[1];
      if (option !== undefined && found !== undefined)
        expect([code, names.has(option)]).toEqual([code, true]);
    }
  }
});
