/** The texts of `help` and `--help`: the overview by task, a group, a command. */
import { nearestName } from "../core/nearest-name.ts";
import { VERSION } from "../version.ts";
import { type Command, type CommandOption, UsageError } from "./command.ts";
import { groupSummary, SECTIONS } from "./groups.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS, COMMON_OPTIONS } from "./options.ts";

type Row = readonly [string, string];

/** One line per group; with `isLong`, one per command. */
export function overview(commands: readonly Command[], isLong = false): string {
  const shown = commands.filter(({ isHidden }) => isHidden !== true);
  const known = new Set(SECTIONS.flatMap(({ groups }) => Object.keys(groups)));
  const others = groupWords(shown).filter((word) => !known.has(word));
  const sections = [
    ...SECTIONS.map(({ title, groups }) => ({ title, words: Object.keys(groups) })),
    { title: "Other", words: others },
  ].map(({ title, words }) => ({ title, rows: words.flatMap((word) => rowsOf(word, shown, isLong)) }));
  const width = widthOf(sections.flatMap(({ rows }) => rows));
  const text = sections
    .filter(({ rows }) => rows.length > 0)
    .map(({ title, rows }) => `${title}\n${twoColumns(rows, width)}`)
    .join("\n");
  return `Signalbox ${VERSION}: AI gateway, webhook-driven agents and tags behind one port.

Usage: signalbox <command> [options]

${text}
signalbox help <command>   the commands of a group, or the options of a command
signalbox help --all       all commands
`;
}

function rowsOf(word: string, commands: readonly Command[], isLong: boolean): Row[] {
  const members = commands.filter(({ words }) => words[0] === word);
  const [first] = members;
  if (first === undefined) return [];
  if (isLong || first.words.length === 1)
    return members.map((command) => [usageOf(command), firstSentence(command.summary)]);
  const names = members.map(({ words }) => words.slice(1).join(" ")).join(", ");
  return [[word, `${groupSummary(word)} (${names})`.trim()]];
}

/** The help of `signalbox gateway`. */
export function groupHelp(word: string, commands: readonly Command[]): string {
  const members = commands.filter(({ words, isHidden }) => words[0] === word && isHidden !== true);
  const rows = members.map((command): Row => [usageOf(command), firstSentence(command.summary)]);
  const about = groupSummary(word);
  return `${about === "" ? "" : `${about}\n\n`}Usage: signalbox ${word} <command> [options]

${twoColumns(rows)}
signalbox ${word} <command> --help   the options of a command
`;
}

export function commandHelp(command: Command): string {
  const shared = new Set<CommandOption>([...CLIENT_OPTIONS, ACCOUNT_OPTION]);
  const own = command.options.filter((option) => !shared.has(option));
  const connection = command.options.filter((option) => shared.has(option));
  const parts: (readonly [string, readonly CommandOption[]])[] = [
    ["Options", own],
    [own.length === 0 ? "Options" : "Server and account", connection],
    ["All commands", COMMON_OPTIONS],
  ];
  const rows = (options: readonly CommandOption[]) =>
    options.map((option): Row => [optionText(option), option.summary]);
  const width = widthOf(parts.flatMap(([, options]) => rows(options)));
  const text = parts
    .filter(([, options]) => options.length > 0)
    .map(([title, options]) => `${title}\n${twoColumns(rows(options), width)}`)
    .join("\n");
  return `${command.summary}\n\nUsage: signalbox ${usageOf(command)} [options]\n\n${text}`;
}

export function unknownCommand(words: readonly string[], commands: readonly Command[]): UsageError {
  const typed = words.join(" ");
  const shown = commands.filter(({ isHidden }) => isHidden !== true);
  const nearest =
    nearestName(
      typed,
      shown.map((command) => command.words.join(" ")),
    ) ?? nearestName(words[0] ?? "", groupWords(shown));
  const hint =
    nearest === undefined ? 'run "signalbox --help" for the list' : `did you mean "signalbox ${nearest}"?`;
  return new UsageError(`unknown command "${typed}": ${hint}`);
}

/** The first words of all commands, in their order. */
export function groupWords(commands: readonly Command[]): string[] {
  return [...new Set(commands.map(({ words }) => words[0] ?? ""))];
}

export function usageOf(command: Command): string {
  return [...command.words, ...(command.positionals ?? [])].join(" ");
}

export function optionText(option: CommandOption): string {
  return `--${option.name}${option.value === undefined ? "" : ` ${option.value}`}`;
}

export function firstSentence(text: string): string {
  return /^.*?(?<!\be\.g)\.(?= [A-Z`]|$)/.exec(text)?.[0] ?? text;
}

function widthOf(rows: readonly Row[]): number {
  return Math.max(0, ...rows.map(([left]) => left.length));
}

/** Lines of help are not longer: a terminal that is wider would leave them hard to read. */
const MAX_LINE = 110;
const MIN_RIGHT = 40;

function twoColumns(rows: readonly Row[], width = widthOf(rows)): string {
  const indent = " ".repeat(width + 4);
  return rows
    .map(([left, right]) => {
      const text = wrap(right, Math.max(MIN_RIGHT, MAX_LINE - indent.length)).join(`\n${indent}`);
      return `  ${left.padEnd(width)}  ${text}`.trimEnd() + "\n";
    })
    .join("");
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
