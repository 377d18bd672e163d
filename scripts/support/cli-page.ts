/** `docs/reference/cli.md`, from the table of commands. */
import { join } from "node:path";
import type { Command, CommandOption } from "../../packages/signalbox/src/cli/command.ts";
import { SECTIONS, groupSummary } from "../../packages/signalbox/src/cli/groups.ts";
import { groupWords, optionText, usageOf } from "../../packages/signalbox/src/cli/help.ts";
import { COMMANDS } from "../../packages/signalbox/src/cli/command-list.ts";
import {
  ACCOUNT_OPTION,
  CLIENT_OPTIONS,
  COMMON_OPTIONS,
  SERVE_OPTIONS,
} from "../../packages/signalbox/src/cli/options.ts";

export const CLI_PAGE_PATH = join(import.meta.dirname, "../../docs/reference/cli.md");

const SHARED: readonly CommandOption[] = [ACCOUNT_OPTION, ...CLIENT_OPTIONS];

const OF_SERVE = SERVE_OPTIONS.filter(({ name }) => name !== "no-reexec");

const INTRODUCTION = `# Command line

This page is generated from the table of commands in \`packages/signalbox/src/cli\` by \`npm run docs\`. The lines on this page begin with \`signalbox\`; in a
project that has installed it, type \`npx signalbox\`. \`signalbox help\` lists the groups of commands, \`signalbox help --all\` all commands,
\`signalbox help <group>\` and \`signalbox <command> --help\` the options. The first word may be singular or plural.

## Which server

A command that manages a server uses, in this order:

1. the address of \`--url\` (\`SIGNALBOX_URL\`), with the token of \`--token\` (\`SIGNALBOX_TOKEN\`). An address without a scheme is \`http://\` for this machine, a
   private address or a name without a dot, and \`https://\` for any other;
2. the server that runs on the data folder (\`--data-dir\`, \`SIGNALBOX_DATA_DIR\`, default \`./.signalbox\`), with its root token;
3. a server that it starts on the data folder for this one command, if no process uses the folder.

In a folder without data, the command is refused with exit code 2: only \`serve\`, \`dev\` and commands that say so create a data folder. On a
terminal, or with \`--verbose\`, one line on standard error tells the server, how it was found and the account; \`--verbose\` adds where the token came
from. Messages never contain a token.

## Output

\`--output json\` (\`--json\` for short) prints the document of the management interface on one line. Errors are then one JSON line on standard error,
in the envelope of the interface, with \`reason\` (\`usage\`, \`config\`, \`data_folder\`, \`listen\`, \`storage\`, \`server\`, \`unreachable\`, \`output\` or \`internal\`) and
\`exit_code\`; so are refusals of \`serve --json\`. Tables contain no control characters of the data. On a terminal, wide columns are shortened, but never ids and
names. Colours are used on a terminal only, and not if \`NO_COLOR\` is set. A command whose reader ends (\`| head\`) ends without a message.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | the server refused the request, cannot be reached, or the command failed |
| 2 | the command line or the configuration is invalid, or there is neither a server nor a data folder |

## Completion

<!-- not run: one line for each shell; completion.long.test.ts runs them in the shells -->

\`\`\`sh
source <(signalbox completion bash)                                        # in ~/.bashrc
source <(signalbox completion zsh)                                         # in ~/.zshrc
signalbox completion fish > ~/.config/fish/completions/signalbox.fish      # once
\`\`\`

Commands, options and their values are completed, and names of accounts, gateways, agents, instances, sources, tokens and others if a server answers within
half a second. Completion starts no server.

## Shared options

Options of all commands:

${optionTable(COMMON_OPTIONS)}
Options of commands that use a server, unless the command says otherwise. \`--config\`, \`--database-url\`, \`--agents\` and \`--log-level\` count if the
command starts a server by itself:

${optionTable(SHARED)}`;

export function cliPage(commands: readonly Command[] = COMMANDS): string {
  const shown = commands.filter(({ isHidden }) => isHidden !== true);
  const ordered = SECTIONS.flatMap(({ groups }) => Object.keys(groups));
  const words = [...new Set([...ordered, ...groupWords(shown)])];
  const sections = words.flatMap((word) => {
    const members = shown.filter((command) => command.words[0] === word);
    if (members.length === 0) return [];
    const about = groupSummary(word);
    return [`## ${word}\n\n${about === "" ? "" : `${about}\n\n`}${members.map(commandText).join("\n")}`];
  });
  return `${INTRODUCTION}\n${sections.join("\n")}`;
}

function commandText(command: Command): string {
  const takesServe =
    command.words[0] !== "serve" && OF_SERVE.every((option) => command.options.includes(option));
  const own = command.options.filter(
    (option) => !SHARED.includes(option) && !(takesServe && SERVE_OPTIONS.includes(option)),
  );
  const shared = command.options.filter((option) => SHARED.includes(option));
  const isClient = CLIENT_OPTIONS.every((option) => shared.includes(option));
  const rest = isClient || takesServe ? [] : shared;
  const listed = [...own, ...rest];
  const title = command.words.length === 1 ? "" : `### ${command.words.join(" ")}\n\n`;
  const note = isClient
    ? `\nWith ${shared.includes(ACCOUNT_OPTION) ? "`--account` and " : ""}the [options of the server](#shared-options).\n`
    : "";
  const serve = takesServe ? "\nWith the options of [serve](#serve).\n" : "";
  return `${title}\`signalbox ${usageOf(command)}\`\n\n${escape(command.summary)}\n${listed.length === 0 ? "" : `\n${optionTable(listed)}`}${serve}${note}`;
}

function optionTable(options: readonly CommandOption[]): string {
  const rows = options.map(
    (option) => `| \`${cell(optionText(option))}\` | ${escape(cell(option.summary))} |\n`,
  );
  return `| option | meaning |\n| --- | --- |\n${rows.join("")}`;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

/** Outside code, `<` begins an element of HTML and `*` emphasis. */
function escape(text: string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith("`") ? part : part.replace(/[<>*]/g, "\\$&")))
    .join("");
}
