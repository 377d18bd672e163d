/** What a command is: words, options, and a function. Commands print through the context and never touch the process directly. */
import type { ManagementClient } from "./management-client.ts";

export interface CommandOption {
  /** Without the dashes. */
  readonly name: string;
  /** Placeholder of the value in the help; absent for a switch. */
  readonly value?: string;
  readonly summary: string;
  readonly isRepeatable?: boolean;
}

export interface Command {
  /** `["token", "create"]` for `signalbox token create`. */
  readonly words: readonly string[];
  /** Positional arguments as the help shows them, e.g. `<id>`; those in `<>` are required. */
  readonly positionals?: readonly string[];
  readonly summary: string;
  readonly options: readonly CommandOption[];
  /** Resolves with the exit code; undefined is 0. */
  run(context: CommandContext): Promise<number | void>;
}

export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
}

export interface CommandContext {
  readonly positionals: readonly string[];
  readonly out: Output;
  readonly err: Output;
  readonly workingFolder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly isJson: boolean;
  /** The value of an option, the last one if it was repeated. */
  option(name: string): string | undefined;
  /** Every value of a repeatable option. */
  options(name: string): readonly string[];
  hasSwitch(name: string): boolean;
  /** The management interface of the running server, or of one started on the data folder for this command. */
  client(): Promise<ManagementClient>;
  /** Where that server takes webhooks and calls. */
  trafficUrl(): Promise<string>;
  /** Prints a result: JSON with `--json`, else what `render` makes of it. */
  print<T>(result: T, render: (result: T) => string): void;
}

/** The user asked for something that cannot be; one line, no stack, exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
