/** Entry of the command line: finds the command, parses its options, runs it, and turns what goes wrong into one line and an exit code. */
import { parseArgs } from "node:util";
import { ConfigError } from "../config/index.ts";
import { nearestName } from "../core/nearest-name.ts";
import { plainText } from "../core/plain-text.ts";
import { DataFolderError } from "../core/data-folder-error.ts";
import { VERSION } from "../version.ts";
import { accountCommands } from "./account.ts";
import { agentCommands } from "./agents.ts";
import { type Command, type CommandContext, type Output, UsageError } from "./command.ts";
import { connect, type Connection } from "./connect.ts";
import { dev } from "./dev.ts";
import { gatewayCommands } from "./gateway.ts";
import { commandHelp, overview, unknownCommand } from "./help.ts";
import { loginLink } from "./login-link.ts";
import { logsCommands } from "./logs.ts";
import { ManagementError } from "./management-client.ts";
import { COMMON_OPTIONS } from "./options.ts";
import { serve } from "./serve.ts";
import { tagCommands } from "./tags.ts";
import { tokenCommands } from "./token.ts";
import { webhookCommands } from "./webhooks.ts";

const COMMANDS: readonly Command[] = [
  serve,
  dev,
  loginLink,
  ...accountCommands,
  ...tokenCommands,
  ...logsCommands,
  ...agentCommands,
  ...gatewayCommands,
  ...tagCommands,
  ...webhookCommands,
];

/** 1: the server refused or something failed. 2: the command line or the configuration is wrong. */
const EXIT_FAILURE = 1;
const EXIT_USAGE = 2;

export interface CliProcess {
  readonly out: Output;
  readonly err: Output;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workingFolder: string;
}

export async function runCli(args: readonly string[], cli: CliProcess = thisProcess()): Promise<number> {
  let connection: Connection | undefined;
  try {
    const first = args[0];
    if (first === undefined || first === "--help" || first === "-h" || first === "help") {
      cli.out.write(overview(COMMANDS));
      return 0;
    }
    if (first === "--version" || first === "-v") {
      cli.out.write(`${VERSION}\n`);
      return 0;
    }
    const command = findCommand(args);
    const parsed = parseOptions(command, args.slice(command.words.length));
    if (parsed.hasSwitch("help")) {
      cli.out.write(commandHelp(command));
      return 0;
    }
    requirePositionals(command, parsed.positionals);
    const base = {
      ...parsed,
      ...cli,
      isJson: parsed.hasSwitch("json"),
      print<T>(result: T, render: (result: T) => string) {
        cli.out.write(parsed.hasSwitch("json") ? `${JSON.stringify(result)}\n` : plainText(render(result)));
      },
    };
    const context: CommandContext = {
      ...base,
      async client() {
        connection ??= await connect(base);
        return connection.client;
      },
      async trafficUrl() {
        connection ??= await connect(base);
        return connection.trafficUrl;
      },
    };
    return (await command.run(context)) ?? 0;
  } catch (error) {
    return explain(error, cli);
  } finally {
    await connection?.close();
  }
}

function thisProcess(): CliProcess {
  return { out: process.stdout, err: process.stderr, environment: process.env, workingFolder: process.cwd() };
}

/** The command with the most words that the arguments begin with. */
function findCommand(args: readonly string[]): Command {
  const matches = COMMANDS.filter((command) => command.words.every((word, i) => args[i] === word));
  const command = matches.sort((a, b) => b.words.length - a.words.length)[0];
  if (command === undefined)
    throw unknownCommand(
      args.slice(0, 2).filter((word) => !word.startsWith("-")),
      COMMANDS,
    );
  return command;
}

type ParsedOptions = Pick<CommandContext, "positionals" | "option" | "options" | "hasSwitch">;

function parseOptions(command: Command, args: readonly string[]): ParsedOptions {
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

function requirePositionals(command: Command, given: readonly string[]): void {
  const wanted = command.positionals ?? [];
  const missing = wanted.find((name, i) => name.startsWith("<") && given[i] === undefined);
  if (missing !== undefined) throw new UsageError(`"${command.words.join(" ")}" needs ${missing}`);
  const takesRest = wanted.at(-1)?.includes("...") ?? false;
  const extra = given[wanted.length];
  if (extra !== undefined && !takesRest)
    throw new UsageError(`"${command.words.join(" ")}" takes no argument "${extra}"`);
}

function explain(error: unknown, cli: CliProcess): number {
  const isUsage = error instanceof UsageError || error instanceof ConfigError;
  const isExpected =
    isUsage || error instanceof DataFolderError || error instanceof ManagementError || isListenError(error);
  const text =
    error instanceof Error ? (isExpected ? error.message : (error.stack ?? error.message)) : String(error);
  // A server's message may repeat what somebody sent to it.
  cli.err.write(`signalbox: ${plainText(text)}\n`);
  return isUsage ? EXIT_USAGE : EXIT_FAILURE;
}

function isListenError(error: unknown): boolean {
  return error instanceof Error && "syscall" in error && error.syscall === "listen";
}
