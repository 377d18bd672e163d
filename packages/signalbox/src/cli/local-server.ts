/** A server for one command, on a data folder that no other process uses, on a free loopback port. Loads the service: imported on demand. */
import { type Config, loadConfig } from "../config/index.ts";
import { startService } from "../service.ts";
import { createLogger } from "../telemetry/logger.ts";
import type { CommandContext } from "./command.ts";
import { readEnvironment, toFlags } from "./environment.ts";

type LocalContext = Pick<
  CommandContext,
  "option" | "options" | "hasSwitch" | "environment" | "workingFolder" | "err"
>;

export interface LocalServer {
  readonly url: string;
  readonly rootToken: string;
  close(): Promise<void>;
}

export async function startLocalServer(context: LocalContext): Promise<LocalServer> {
  const config = await loadConfig(
    { ...toFlags(context), host: "127.0.0.1", port: "0" },
    readEnvironment(context),
    context.workingFolder,
  );
  const logger = createLogger({ level: "error", isPretty: context.err.isTTY === true });
  const service = await startService({
    config: { ...config, admin: null, tls: null, file: withoutWorker(config.file) },
    logger,
    onFatal: (error) => {
      throw error;
    },
  });
  return {
    url: service.url,
    rootToken: service.rootToken.secret.reveal(),
    // No other client uses it.
    close: () => service.stop("urgently"),
  };
}

/** A server that one command starts runs no worker: its program belongs to `signalbox serve`. */
function withoutWorker(file: Config["file"]): Config["file"] {
  const { worker, ...agents } = file.agents;
  return worker === undefined ? file : { ...file, agents: { ...agents, access: "token" } };
}
