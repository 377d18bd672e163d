/** Entry point of the command line: runs a command and reports an error as one line and an exit code. */
import { plainText } from "../core/plain-text.ts";
import { accountCommands } from "./account.ts";
import { agentCommands } from "./agents.ts";
import { alertCommands } from "./alerts.ts";
import { auditCommands } from "./audit.ts";
import { backupCommands } from "./backup.ts";
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
import { createCompleteCommand } from "./completion/complete-command.ts";
import { completion } from "./completion/completion-command.ts";
import { configCommand } from "./config.ts";
import { connect, type Connection } from "./connect.ts";
import { clusterCommands } from "./cluster.ts";
import { dev } from "./dev.ts";
import { doctor } from "./doctor.ts";
import { gatewayCommands } from "./gateway.ts";
import { importCloudflare } from "./import-cloudflare.ts";
import { importHookdeck } from "./import-hookdeck.ts";
import { importCommands } from "./import-litellm.ts";
import { importPortkey } from "./import-portkey.ts";
import { priceCommands } from "./prices.ts";
import { toDocument, toFailure, toLine } from "./failure.ts";
import { commandHelp, groupHelp, overview } from "./help.ts";
import { hintFor } from "./hints.ts";
import { init } from "./init.ts";
import { loginLink } from "./login-link.ts";
import { logsCommands } from "./logs.ts";
import { logsWorkCommands } from "./logs-work.ts";
import { routeCommands } from "./routes.ts";
import { isProcessOutput, openOutput, OutputClosedError } from "./output.ts";
import { providerKeyCommands } from "./provider-keys.ts";
import { restore } from "./restore.ts";
import { serve } from "./serve.ts";
import { styleOf } from "./style.ts";
import { renderWithin } from "./table.ts";
import { tagCommands } from "./tags.ts";
import { tagJobCommands } from "./tags-jobs.ts";
import { tagWorkCommands } from "./tags-work.ts";
import { tokenCommands } from "./token.ts";
import { usageCommand } from "./usage.ts";
import { version } from "./version-command.ts";
import { webhookCommands } from "./webhooks.ts";

export const COMMANDS: readonly Command[] = [
  serve,
  dev,
  init,
  loginLink,
  doctor,
  version,
  completion,
  createCompleteCommand(() => COMMANDS),
  ...backupCommands,
  restore,
  configCommand,
  ...accountCommands,
  ...clusterCommands,
  ...tokenCommands,
  ...auditCommands,
  ...providerKeyCommands,
  ...logsCommands,
  ...logsWorkCommands,
  usageCommand,
  ...agentCommands,
  ...gatewayCommands,
  ...priceCommands,
  ...importCommands,
  importCloudflare,
  importHookdeck,
  importPortkey,
  ...routeCommands,
  ...tagCommands,
  ...tagWorkCommands,
  ...tagJobCommands,
  ...webhookCommands,
  ...alertCommands,
];

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
  const args = withCommandFirst(given, COMMANDS);
  let connection: Connection | undefined;
  let hint: (error: unknown) => Promise<string> = async () => "";
  try {
    const help = helpFor(args);
    if (help !== undefined) {
      cli.out.write(help);
      return 0;
    }
    const { command, rest } = findCommand(withVersion(args), COMMANDS);
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
    hint = (error) => hintFor(error, command, context, connection);
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

/** The help that is asked for: in general, for a group or, with `help`, for a command. A command handles its own `--help`. */
function helpFor(args: readonly string[]): string | undefined {
  const [first, ...rest] = args;
  if (first === undefined || first === "--help" || first === "-h") return overview(COMMANDS);
  if (first === "help") {
    const words = rest.filter((word) => !word.startsWith("-"));
    if (words.length === 0) return overview(COMMANDS, rest.includes("--all"));
    const found = matchCommand(words, COMMANDS);
    if (found !== undefined) return commandHelp(found.command);
    const group = words.length === 1 ? matchGroup(words[0], COMMANDS) : undefined;
    return group === undefined
      ? commandHelp(findCommand(words, COMMANDS).command)
      : groupHelp(group, COMMANDS);
  }
  const [next] = rest;
  const isAlone = next === undefined || next === "--help" || next === "-h";
  if (!isAlone || matchCommand(args, COMMANDS) !== undefined) return undefined;
  const group = matchGroup(first, COMMANDS);
  return group === undefined ? undefined : groupHelp(group, COMMANDS);
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
