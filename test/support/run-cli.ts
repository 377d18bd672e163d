/** Runs a command in this process against a test server. */
import { runCli } from "../../packages/signalbox/src/cli/main.ts";
import { ROOT_TOKEN, type TestServer } from "./test-server.ts";

export interface CommandResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
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
    environment: { SIGNALBOX_URL: server.url, SIGNALBOX_TOKEN: ROOT_TOKEN },
    workingFolder: server.dataDir,
  });
  return { code, out, err };
}
