/** Entry point of the command line: runs a command and reports an error as one line and an exit code. */
import { plainText } from "../core/plain-text.ts";
import {
  findCommand,
  matchCommand,
  matchGroup,
  parseOptions,
  readFormat,
  requirePositionals,
  wantsJson,
  withCommandFirst,
} from "./arguments.ts";
import type { Command, CommandContext, Output } from "./command.ts";
import type { Connection } from "./connect.ts";
import { toDocument, toFailure, toLine } from "./failure.ts";
import { commandHelp, groupHelp, overview } from "./help.ts";
import { isProcessOutput, openOutput, OutputClosedError } from "./output.ts";
import { serve } from "./serve.ts";
import { styleOf } from "./style.ts";
import { renderWithin } from "./table.ts";

export interface CliProcess {
  readonly out: Output;
  readonly err: Output;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workingFolder: string;
}

/** Resolves to the exit code. */
export async function runCli(
  given: readonly string[],
  cli: CliProcess = thisProcessOutput(),
): Promise<number> {
  const commands = await commandsFor(given);
  const args = withCommandFirst(given, commands);
  let connection: Connection | undefined;
  let hint: (error: unknown) => Promise<string> = async () => "";
  try {
    const help = helpFor(args, commands);
    if (help !== undefined) {
      cli.out.write(help);
      return 0;
    }
    const { command, rest } = findCommand(withVersion(args), commands);
    const parsed = parseOptions(command, rest);
    if (parsed.hasSwitch("help")) {
      cli.out.write(commandHelp(command));
      return 0;
    }
    requirePositionals(command, parsed.positionals);
    const isJson = readFormat(parsed) === "json";
    const base = {
      ...parsed,
      ...cli,
      isJson,
      print<T>(result: T, render: (result: T) => string) {
        const isFitted = cli.out.isTTY === true && !parsed.hasSwitch("wide");
        const width = isFitted ? cli.out.columns : undefined;
        cli.out.write(
          isJson ? `${JSON.stringify(result)}\n` : plainText(renderWithin(width, () => render(result))),
        );
      },
    };
    const connected = async () => {
      if (connection !== undefined) return connection;
      const { connect } = await import("./connect.ts");
      connection = await connect(base);
      report(connection, command, base);
      return connection;
    };
    const context: CommandContext = {
      ...base,
      client: async () => (await connected()).client,
      account: async () => (await connected()).client.account(parsed.option("account")),
      trafficUrl: async () => (await connected()).server.trafficUrl,
      fetch: async () => (await connected()).fetch,
    };
    hint = async (error) => {
      if (connection === undefined) return "";
      const { hintFor } = await import("./hints.ts");
      return hintFor(error, command, context, connection);
    };
    const code = (await command.run(context)) ?? 0;
    if (isProcessOutput(cli.out)) await cli.out.flush();
    return code;
  } catch (error) {
    // The reader of the output has read enough.
    if (error instanceof OutputClosedError && error.isExpected) return 0;
    const failure = await toFailure(error);
    const shown = { ...failure, message: failure.message + (await hint(error)) };
    cli.err.write(wantsJson(args) ? toDocument(shown) : toLine(shown));
    return failure.exitCode;
  } finally {
    await connection?.close();
  }
}

/** A server does not load what the other commands do: it starts quicker, and is smaller. */
async function commandsFor([first]: readonly string[]): Promise<readonly Command[]> {
  if (first === "serve") return [serve];
  const { COMMANDS } = await import("./command-list.ts");
  return COMMANDS;
}

/** The help that is asked for: in general, for a group or, with `help`, for a command. A command handles its own `--help`. */
function helpFor(args: readonly string[], commands: readonly Command[]): string | undefined {
  const [first, ...rest] = args;
  if (first === undefined || first === "--help" || first === "-h") return overview(commands);
  if (first === "help") {
    const words = rest.filter((word) => !word.startsWith("-"));
    if (words.length === 0) return overview(commands, rest.includes("--all"));
    const found = matchCommand(words, commands);
    if (found !== undefined) return commandHelp(found.command);
    const group = words.length === 1 ? matchGroup(words[0], commands) : undefined;
    return group === undefined
      ? commandHelp(findCommand(words, commands).command)
      : groupHelp(group, commands);
  }
  const [next] = rest;
  const isAlone = next === undefined || next === "--help" || next === "-h";
  if (!isAlone || matchCommand(args, commands) !== undefined) return undefined;
  const group = matchGroup(first, commands);
  return group === undefined ? undefined : groupHelp(group, commands);
}

function withVersion(args: readonly string[]): readonly string[] {
  const [first, ...rest] = args;
  return first === "--version" || first === "-v" ? ["version", ...rest] : args;
}

/** Tells which server and account a command uses: on a terminal, or with `--verbose`. */
function report(
  { server }: Connection,
  { options }: Command,
  context: Pick<CommandContext, "err" | "environment" | "option" | "hasSwitch">,
): void {
  if (context.err.isTTY !== true && !context.hasSwitch("verbose")) return;
  const account = options.some(({ name }) => name === "account")
    ? `, account ${context.option("account") ?? "default"}`
    : "";
  const verbose = context.hasSwitch("verbose") ? `, ${server.token.origin}` : "";
  const line = plainText(`server ${server.url} (${server.origin})${account}${verbose}`);
  context.err.write(`${styleOf(context.err, context.environment)("dim", line)}\n`);
}

function thisProcessOutput(): CliProcess {
  // Nothing can report that standard error is closed.
  process.stderr.on("error", () => undefined);
  return {
    out: openOutput(process.stdout),
    err: process.stderr,
    environment: process.env,
    workingFolder: process.cwd(),
  };
}
