/** Runs a command in this process, which is cheaper than a process of its own: against a test server, or in a folder. */
import { runCli } from "../../packages/signalbox/src/cli/main.ts";
import type { CliResult } from "./server-process.ts";
import { ROOT_TOKEN, type TestServer } from "./test-server.ts";

export interface CommandResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The same as `runCliProcess`, with no other variables than the given ones. Not for commands that run until a signal. */
export async function runCliHere(
  args: readonly string[],
  { cwd, env = {} }: { readonly cwd: string; readonly env?: Readonly<Record<string, string>> },
): Promise<CliResult> {
  let stdout = "";
  let stderr = "";
  const code = await runCli(args, {
    out: { write: (text: string) => (stdout += text) },
    err: { write: (text: string) => (stderr += text) },
    environment: env,
    workingFolder: cwd,
  });
  return { code, stdout, stderr };
}

export async function runCommand(
  server: TestServer,
  args: readonly string[],
  options: { readonly isTTY?: boolean } = {},
): Promise<CommandResult> {
  let out = "";
  let err = "";
  const code = await runCli(args, {
    out: { write: (text: string) => (out += text), ...options },
    err: { write: (text: string) => (err += text), ...options },
    // Without colours, no control character is expected in any output.
    environment: { SIGNALBOX_URL: server.url, SIGNALBOX_TOKEN: ROOT_TOKEN, NO_COLOR: "1" },
    workingFolder: server.dataDir,
  });
  return { code, out, err };
}
