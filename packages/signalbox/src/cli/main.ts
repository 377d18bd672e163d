/** Entry point of the command line: runs a command and reports an error as one line and an exit code. */
import type { SignalboxApiError } from "@signalbox/client";
import { ConfigError } from "../config/index.ts";
import { plainText } from "../core/plain-text.ts";
import { DataFolderError } from "../core/data-folder-error.ts";
import { VERSION } from "../version.ts";
import { accountCommands } from "./account.ts";
import { agentCommands } from "./agents.ts";
import { alertCommands } from "./alerts.ts";
import { auditCommands } from "./audit.ts";
import { findCommand, parseOptions, requirePositionals } from "./arguments.ts";
import { type Command, type CommandContext, type Output, UsageError } from "./command.ts";
import { connect, type Connection } from "./connect.ts";
import { clusterCommands } from "./cluster.ts";
import { dev } from "./dev.ts";
import { gatewayCommands } from "./gateway.ts";
import { importCommands } from "./import-litellm.ts";
import { priceCommands } from "./prices.ts";
import { commandHelp, overview } from "./help.ts";
import { loginLink } from "./login-link.ts";
import { logsCommands } from "./logs.ts";
import { logsWorkCommands } from "./logs-work.ts";
import { routeCommands } from "./routes.ts";
import { providerKeyCommands } from "./provider-keys.ts";
import { serve } from "./serve.ts";
import { tagCommands } from "./tags.ts";
import { tokenCommands } from "./token.ts";
import { usageCommand } from "./usage.ts";
import { webhookCommands } from "./webhooks.ts";

const COMMANDS: readonly Command[] = [
  serve,
  dev,
  loginLink,
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
  ...routeCommands,
  ...tagCommands,
  ...webhookCommands,
  ...alertCommands,
];

/** 1: the request or the command failed. 2: the command line or the configuration is invalid. */
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
    const command = findCommand(args, COMMANDS);
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
    const connected = async () => (connection ??= await connect(base));
    const context: CommandContext = {
      ...base,
      client: async () => (await connected()).client,
      account: async () => (await connected()).client.account(parsed.option("account")),
      trafficUrl: async () => (await connected()).trafficUrl,
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

function explain(error: unknown, cli: CliProcess): number {
  const isUsage =
    error instanceof UsageError || error instanceof ConfigError || nameOf(error) === "InvalidNameError";
  const isExpected = isUsage || error instanceof DataFolderError || isApiError(error) || isListenError(error);
  const text =
    error instanceof Error ? (isExpected ? error.message : (error.stack ?? error.message)) : String(error);
  const code = isApiError(error) && error.code !== 0 ? ` (code ${error.code})` : "";
  // A message of the server may contain text that another client sent.
  cli.err.write(`signalbox: ${plainText(text + code)}\n`);
  return isUsage ? EXIT_USAGE : EXIT_FAILURE;
}

/** By name, because the class is imported on demand (`connect.ts`). */
function isApiError(error: unknown): error is SignalboxApiError {
  return nameOf(error) === "SignalboxApiError";
}

function nameOf(error: unknown): string | undefined {
  return error instanceof Error ? error.name : undefined;
}

function isListenError(error: unknown): boolean {
  return error instanceof Error && "syscall" in error && error.syscall === "listen";
}
