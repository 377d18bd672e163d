/** What may follow a command line that is being typed: words of commands, options, values. Pure; names of the server come from the caller. */
import { matchCommand } from "../arguments.ts";
import type { Command, CommandOption } from "../command.ts";
import { firstSentence, groupWords } from "../help.ts";
import { groupSummary } from "../groups.ts";
import { COMMON_OPTIONS } from "../options.ts";
import { kindOfOption, kindOfPositional, type NameKind } from "../server-names.ts";

/** A word with its description. */
export type Candidate = readonly [string, string];

export interface Completion {
  readonly candidates: readonly Candidate[];
  /** The shell completes names of files, too. */
  readonly hasFiles: boolean;
  /** Names of this kind, which only a server knows. */
  readonly names?: NameKind | undefined;
  /** A part of the typed word that each name needs in front: `--gateway=`. */
  readonly before: string;
  /** The end of the typed word, which completions must begin with. */
  readonly prefix: string;
  /** Options and positional arguments typed so far, for the request to the server. */
  readonly typed: Typed;
}

export interface Typed {
  readonly options: ReadonlyMap<string, readonly string[]>;
  readonly positionals: readonly string[];
}

const FILE = /^(FILE|DIR|PATH|@FILE)$/;
const FILE_ARGUMENT = /file|folder|yaml/i;
const CHOICE = /^[\w.-]+(\|[\w.-]+)+$/;
const NOTHING: Typed = { options: new Map(), positionals: [] };

/** `words`: what is typed after `signalbox`, the unfinished word last. */
export function completeWords(words: readonly string[], all: readonly Command[]): Completion {
  const commands = all.filter(({ isHidden }) => isHidden !== true);
  const current = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  if (before[0] === "help") {
    const next = wordsAfter(before.slice(1), commands);
    return ofValues([...next, ...(before.length === 1 ? [["--all", "all commands"] as const] : [])], current);
  }
  const found = matchCommand(before, commands);
  const next = wordsAfter(before, commands);
  if (found === undefined) return ofValues(before.length === 0 ? [...next, ...GENERAL] : next, current);
  const completion = completeArguments(found.command, found.rest, current);
  const isFirst = found.rest.length === 0 && !current.startsWith("-");
  return isFirst
    ? { ...completion, candidates: [...fitting(next, current), ...completion.candidates] }
    : completion;
}

const GENERAL: readonly Candidate[] = [
  ["help", "the commands of a group, or the options of a command"],
  ["--help", "the overview"],
  ["--version", "print the version"],
];

/** The words that may follow the words of a command. */
function wordsAfter(before: readonly string[], commands: readonly Command[]): Candidate[] {
  const longer = commands.filter(({ words }) => words.length > before.length && isPrefix(before, words));
  const words = new Map<string, string>();
  for (const command of longer) {
    const word = command.words[before.length] ?? "";
    const isWhole = command.words.length === before.length + 1;
    const summary = isWhole ? firstSentence(command.summary) : groupSummary(word);
    if (!words.has(word) || isWhole) words.set(word, summary);
  }
  return [...words];
}

function isPrefix(before: readonly string[], words: readonly string[]): boolean {
  return before.every((word, i) =>
    i === 0 ? groupWords([{ words } as Command]).some((one) => isSame(word, one)) : word === words[i],
  );
}

/** As in `findCommand`: singular and plural. */
function isSame(given: string, word: string): boolean {
  return given === word || given === `${word}s` || `${given}s` === word;
}

function completeArguments(command: Command, rest: readonly string[], current: string): Completion {
  const options = [...command.options, ...COMMON_OPTIONS];
  const typed = readTyped(rest, options);
  if (typed.open !== undefined) return completeValue(command, typed.open, "", current, typed);
  if (current.startsWith("-") && !typed.hasEnded) {
    const equals = current.indexOf("=");
    const option = options.find(({ name }) => `--${name}` === current.slice(0, equals));
    if (equals !== -1 && option !== undefined)
      return completeValue(command, option, current.slice(0, equals + 1), current.slice(equals + 1), typed);
    const unused = options.filter(
      ({ name, isRepeatable }) => isRepeatable === true || !typed.options.has(name),
    );
    return ofValues(
      unused.map(({ name, summary }) => [`--${name}`, summary]),
      current,
    );
  }
  const index = Math.min(typed.positionals.length, Math.max(0, (command.positionals ?? []).length - 1));
  const placeholder = (command.positionals ?? [])[index] ?? "";
  const isRepeated = placeholder.includes("...");
  if (typed.positionals.length > index && !isRepeated) return ofValues([], current, typed);
  const name = placeholder.replace(/[<>[\]]|\.\.\./g, "");
  return {
    ...ofValues(CHOICE.test(name) ? name.split("|").map((value) => [value, ""]) : [], current, typed),
    names: kindOfPositional(command, index),
    hasFiles: FILE_ARGUMENT.test(name),
  };
}

function completeValue(
  command: Command,
  option: CommandOption,
  before: string,
  prefix: string,
  typed: Typed,
): Completion {
  const { name, value = "" } = option;
  const values = option.values ?? (CHOICE.test(value) ? value.split("|") : []);
  return {
    candidates: fitting(
      values.map((one) => [one, ""] as const),
      prefix,
    ).map(([one, about]) => [before + one, about]),
    hasFiles: FILE.test(value),
    names: kindOfOption(command, name),
    before,
    prefix,
    typed,
  };
}

interface Reading extends Typed {
  /** An option whose value is the word that is being typed. */
  readonly open: CommandOption | undefined;
  /** `--` was typed: everything after it is an argument. */
  readonly hasEnded: boolean;
}

function readTyped(rest: readonly string[], options: readonly CommandOption[]): Reading {
  const given = new Map<string, string[]>();
  const positionals: string[] = [];
  let open: CommandOption | undefined;
  let hasEnded = false;
  for (const word of rest) {
    if (open !== undefined) {
      given.get(open.name)?.push(word);
      open = undefined;
    } else if (hasEnded || !word.startsWith("-") || word === "-") positionals.push(word);
    else if (word === "--") hasEnded = true;
    else {
      const [name = "", value] = word.replace(/^--?/, "").split(/=(.*)/s);
      given.set(name, [...(given.get(name) ?? []), ...(value === undefined ? [] : [value])]);
      const option = options.find((one) => one.name === name);
      open = value === undefined && option?.value !== undefined ? option : undefined;
    }
  }
  return { options: given, positionals, open, hasEnded };
}

function ofValues(values: readonly Candidate[], prefix: string, typed: Typed = NOTHING): Completion {
  return { candidates: fitting(values, prefix), hasFiles: false, before: "", prefix, typed };
}

export function fitting(values: readonly Candidate[], prefix: string): Candidate[] {
  return values.filter(([value]) => value.startsWith(prefix));
}
