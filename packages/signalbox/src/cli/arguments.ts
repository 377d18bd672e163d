/** Parses the arguments of the command line: which command, its options, its positional arguments. */
import { parseArgs } from "node:util";
import { nearestName } from "../core/nearest-name.ts";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import { groupWords, unknownCommand } from "./help.ts";
import { COMMON_OPTIONS } from "./options.ts";

export type ParsedOptions = Pick<CommandContext, "positionals" | "option" | "options" | "hasSwitch">;

export interface FoundCommand {
  readonly command: Command;
  /** The arguments after the words of the command. */
  readonly rest: readonly string[];
}

/** Options before the command stand behind it: `signalbox --url … agents list`. Which of them take a value is known from all commands together. */
export function withCommandFirst(args: readonly string[], commands: readonly Command[]): readonly string[] {
  const withValue = new Set(
    [...COMMON_OPTIONS, ...commands.flatMap(({ options }) => options)].flatMap(({ name, value }) =>
      value === undefined ? [] : [`--${name}`],
    ),
  );
  let at = 0;
  while (at < args.length && args[at]?.startsWith("--") === true && args[at] !== "--")
    at += withValue.has(args[at] ?? "") ? 2 : 1;
  // Without a command after them they are arguments of the program itself: `--version`, `--help`.
  return at === 0 || at >= args.length ? args : [...args.slice(at), ...args.slice(0, at)];
}

/** The command with the longest match at the beginning of the arguments. */
export function findCommand(args: readonly string[], commands: readonly Command[]): FoundCommand {
  const found = matchCommand(args, commands);
  if (found === undefined)
    throw unknownCommand(
      args.slice(0, 2).filter((word) => !word.startsWith("-")),
      commands,
    );
  return found;
}

export function matchCommand(
  args: readonly string[],
  commands: readonly Command[],
): FoundCommand | undefined {
  const [longest] = commands
    .filter(({ words }) => words.every((word, i) => isWord(args[i], word, i)))
    .sort((a, b) => b.words.length - a.words.length);
  return longest === undefined ? undefined : { command: longest, rest: args.slice(longest.words.length) };
}

/** The group that an argument names: `gateway` has no command of its own. */
export function matchGroup(given: string | undefined, commands: readonly Command[]): string | undefined {
  const shown = commands.filter(({ isHidden }) => isHidden !== true);
  return groupWords(shown).find((word) => isWord(given, word, 0));
}

/** The first word may be singular or plural: `tokens create`, `agent list`. */
function isWord(given: string | undefined, word: string, i: number): boolean {
  return given === word || (i === 0 && given !== undefined && (given === `${word}s` || `${given}s` === word));
}

export function parseOptions(command: Command, args: readonly string[]): ParsedOptions {
  const known = [...command.options, ...COMMON_OPTIONS];
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: Object.fromEntries(
        known.map(
          (option) =>
            [
              option.name,
              {
                type: option.value === undefined ? "boolean" : "string",
                multiple: true,
                ...(option.name === "help" ? { short: "h" } : {}),
              },
            ] as const,
        ),
      ),
    });
    const all = (name: string) => (values[name] ?? []).filter((value) => typeof value === "string");
    return {
      positionals,
      option: (name) => all(name).at(-1),
      options: all,
      hasSwitch: (name) => values[name] !== undefined,
    };
  } catch (error) {
    throw new UsageError(
      optionProblem(
        error,
        known.map((option) => option.name),
      ),
    );
  }
}

function optionProblem(error: unknown, known: readonly string[]): string {
  const message = error instanceof Error ? error.message : String(error);
  const unknown = /^Unknown option '--?([^']+)'/.exec(message)?.[1];
  if (unknown === undefined) return message.split(". ")[0] ?? message;
  const nearest = nearestName(unknown, known);
  return `unknown option --${unknown}${nearest === undefined ? "" : `, did you mean --${nearest}?`}`;
}

/** `--output json`, or `--json` for short. */
export function readFormat({
  option,
  hasSwitch,
}: Pick<ParsedOptions, "option" | "hasSwitch">): "json" | "table" {
  const format = option("output") ?? (hasSwitch("json") ? "json" : "table");
  if (format !== "json" && format !== "table")
    throw new UsageError(`--output: expected table or json, found "${format}"`);
  if (format === "table" && hasSwitch("json"))
    throw new UsageError("--json and --output table contradict each other");
  return format;
}

/** For errors in the command line itself, which prevent its parsing. */
export function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  const given = end === -1 ? args : args.slice(0, end);
  return given.some(
    (arg, i) =>
      arg === "--json" || arg === "--output=json" || (arg === "--output" && given[i + 1] === "json"),
  );
}

/** Throws a `UsageError` if a required argument is missing or an argument is left over. */
export function requirePositionals(command: Command, given: readonly string[]): void {
  const wanted = command.positionals ?? [];
  const missing = wanted.find((name, i) => name.startsWith("<") && given[i] === undefined);
  if (missing !== undefined) throw new UsageError(`"${command.words.join(" ")}" needs ${missing}`);
  const takesRest = wanted.at(-1)?.includes("...") ?? false;
  const extra = given[wanted.length];
  if (extra !== undefined && !takesRest)
    throw new UsageError(`"${command.words.join(" ")}" takes no argument "${extra}"`);
}
