/** Parses the arguments of the command line: which command, its options, its positional arguments. */
import { parseArgs } from "node:util";
import { nearestName } from "../core/nearest-name.ts";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import { unknownCommand } from "./help.ts";
import { COMMON_OPTIONS } from "./options.ts";

export type ParsedOptions = Pick<CommandContext, "positionals" | "option" | "options" | "hasSwitch">;

/** The command with the longest match at the beginning of the arguments. */
export function findCommand(args: readonly string[], commands: readonly Command[]): Command {
  const matches = commands.filter((command) => command.words.every((word, i) => isWord(args[i], word, i)));
  const command = matches.sort((a, b) => b.words.length - a.words.length)[0];
  if (command === undefined)
    throw unknownCommand(
      args.slice(0, 2).filter((word) => !word.startsWith("-")),
      commands,
    );
  return command;
}

/** The plural of the first word is accepted: `tokens create`. */
function isWord(given: string | undefined, word: string, i: number): boolean {
  return given === word || (i === 0 && given === `${word}s`);
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
              { type: option.value === undefined ? "boolean" : "string", multiple: true },
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
