/** The text of `--help`. */
import { nearestName } from "../core/nearest-name.ts";
import { VERSION } from "../version.ts";
import { type Command, type CommandOption, UsageError } from "./command.ts";
import { COMMON_OPTIONS } from "./options.ts";

export function overview(commands: readonly Command[]): string {
  const lines = commands.map((command): [string, string] => [usageOf(command), command.summary]);
  return `Signalbox ${VERSION}: AI gateway, webhook-driven agents and tags behind one port.

Usage: signalbox <command> [options]

${twoColumns(lines)}
Run "signalbox <command> --help" for the options of a command.
`;
}

export function commandHelp(command: Command): string {
  const options = [...command.options, ...COMMON_OPTIONS].map((option): [string, string] => [
    optionText(option),
    option.summary,
  ]);
  return `${command.summary}\n\nUsage: signalbox ${usageOf(command)} [options]\n\n${twoColumns(options)}`;
}

export function unknownCommand(words: readonly string[], commands: readonly Command[]): UsageError {
  const typed = words.join(" ");
  const nearest = nearestName(
    typed,
    commands.map((command) => command.words.join(" ")),
  );
  const hint =
    nearest === undefined ? 'run "signalbox --help" for the list' : `did you mean "signalbox ${nearest}"?`;
  return new UsageError(`unknown command "${typed}": ${hint}`);
}

function usageOf(command: Command): string {
  return [...command.words, ...(command.positionals ?? [])].join(" ");
}

function optionText(option: CommandOption): string {
  return `--${option.name}${option.value === undefined ? "" : ` ${option.value}`}`;
}

function twoColumns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join("");
}
