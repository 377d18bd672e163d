/**
 * `signalbox __complete`: prints what may follow a command line, one candidate per line with its description after a tab, and `:files` if names of
 * files fit, too. The scripts of `signalbox completion` call it at every key press, so it must be fast and silent: names are read from a running server
 * within a time limit, no server is started, and an error prints nothing.
 */
import { plainLine } from "../../core/plain-text.ts";
import type { Command, CommandContext } from "../command.ts";
import { createClient } from "../connect.ts";
import { findServer } from "../find-server.ts";
import { fixedNames, readNames } from "../server-names.ts";
import { type Candidate, type Completion, completeWords, fitting } from "./candidates.ts";

/** People wait for a key press. */
const TIMEOUT_MS = 500;
const MAX_CANDIDATES = 500;

export function createCompleteCommand(commands: () => readonly Command[]): Command {
  return {
    words: ["__complete"],
    positionals: ["[words...]"],
    summary: "Print what may follow a command line, for the scripts of completion.",
    isHidden: true,
    options: [{ name: "shell", value: "SHELL", summary: "bash, zsh or fish" }],
    async run(context) {
      const isBash = context.option("shell") === "bash";
      const words = isBash ? joinWords(context.positionals) : context.positionals;
      const completion = completeWords(words.length === 0 ? [""] : words, commands());
      const names = await namesFor(completion, context).catch(() => []);
      const all = [...completion.candidates, ...names].slice(0, MAX_CANDIDATES);
      const cut = isBash ? brokenLength(words.at(-1) ?? "") : 0;
      const lines = all.map(([value, about]) => `${value.slice(cut)}\t${plainLine(about)}\n`);
      context.out.write(lines.join("") + (completion.hasFiles ? ":files\n" : ""));
    },
  };
}

async function namesFor(
  { names, prefix, before, typed }: Completion,
  context: CommandContext,
): Promise<Candidate[]> {
  if (names === undefined) return [];
  const option = (name: string) => typed.options.get(name)?.at(-1);
  const fixed = await fixedNames(names);
  if (fixed !== null) return fixed.flatMap((name) => (name.startsWith(prefix) ? [[before + name, ""]] : []));
  const server = await findServer({
    option,
    options: (name) => typed.options.get(name) ?? [],
    hasSwitch: (name) => typed.options.has(name),
    environment: context.environment,
    workingFolder: context.workingFolder,
  });
  if (server === null) return [];
  const client = await createClient(server, TIMEOUT_MS);
  const query = {
    client,
    prefix,
    before: typed.positionals,
    account: option("account"),
    gateway: option("gateway"),
  };
  const found = await readNames(names, query);
  // A name with a line break or an escape sequence cannot be typed.
  return fitting(found, prefix).flatMap(([value, about]): Candidate[] =>
    plainLine(value) === value ? [[before + value, about]] : [],
  );
}

/** Bash ends words at `=` and `:`: `--output=json` arrives as three words. */
const BREAK = /^[=:]+$/;

function joinWords(words: readonly string[]): string[] {
  const joined: string[] = [];
  let isOpen = false;
  for (const word of words) {
    const isBreak = BREAK.test(word);
    const last = joined.length - 1;
    if (last >= 0 && (isBreak || isOpen)) joined[last] += word;
    else joined.push(word);
    isOpen = isBreak;
  }
  return joined;
}

/** Bash replaces only what follows the last break. */
function brokenLength(word: string): number {
  return Math.max(word.lastIndexOf("="), word.lastIndexOf(":")) + 1;
}
