/** The shape of a command: words, options and a function. Commands write through the context, not to the process. */
import type { AccountClient, SignalboxClient } from "@signalbox/client";

export interface CommandOption {
  /** Without the dashes. */
  readonly name: string;
  /** Placeholder of the value in the help text; absent for a switch. */
  readonly value?: string;
  readonly summary: string;
  readonly isRepeatable?: boolean;
  /** Values of the option, for completion. A placeholder such as `on|off` says the same. */
  readonly values?: readonly string[];
}

export interface Command {
  /** `["token", "create"]` for `signalbox token create`. */
  readonly words: readonly string[];
  /** Positional arguments as the help text shows them: `<id>` is required, `[id]` optional, `...` repeatable. */
  readonly positionals?: readonly string[];
  readonly summary: string;
  readonly options: readonly CommandOption[];
  /** For the command line itself: no list and no completion shows the command. */
  readonly isHidden?: boolean;
  /** Resolves to the exit code; undefined is 0. */
  run(context: CommandContext): Promise<number | void>;
}

export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  /** Width of the terminal. */
  readonly columns?: number | undefined;
}

export interface CommandContext {
  readonly positionals: readonly string[];
  readonly out: Output;
  readonly err: Output;
  readonly workingFolder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly isJson: boolean;
  /** The value of an option; the last one if the option is repeated. */
  option(name: string): string | undefined;
  /** All values of a repeatable option. */
  options(name: string): readonly string[];
  hasSwitch(name: string): boolean;
  /** A client of the running server, or of a server started on the data folder for this command. */
  client(): Promise<SignalboxClient>;
  /** The client for the account of `--account`. */
  account(): Promise<AccountClient>;
  /** Address of that server for webhooks and calls. */
  trafficUrl(): Promise<string>;
  /** `fetch` for that address. */
  fetch(): Promise<typeof fetch>;
  /** Prints a result: as JSON with `--json` or `--output json`, otherwise as rendered by `render`. */
  print<T>(result: T, render: (result: T) => string): void;
}

/** An error in the command line: printed as one line without a stack, with exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
