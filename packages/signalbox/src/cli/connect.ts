/**
 * Connects a command to the management interface: of the server at an explicit URL, otherwise of the server that runs on the data folder,
 * otherwise of a server that this command starts on the data folder, on a free loopback port.
 * See docs/decisions/0006.
 */
import type { SignalboxClient } from "@signalbox/client";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Config, loadConfig } from "../config/index.ts";
import { startService } from "../service.ts";
import { findRunningServer } from "../database/sqlite/data-folder.ts";
import { createLogger } from "../telemetry/logger.ts";
import { type CommandContext, UsageError } from "./command.ts";
import { readEnvironment, toFlags } from "./environment.ts";

export interface Connection {
  readonly client: SignalboxClient;
  /** Address for webhooks and calls. Differs from the client's address if the server has a separate admin address. */
  readonly trafficUrl: string;
  close(): Promise<void>;
}

type ConnectContext = Omit<CommandContext, "client" | "account" | "trafficUrl">;

export async function connect(context: ConnectContext): Promise<Connection> {
  const environment = readEnvironment(context);
  const token = context.option("token") ?? environment["SIGNALBOX_TOKEN"];
  const url = context.option("url") ?? environment["SIGNALBOX_URL"];
  if (url !== undefined) {
    if (token === undefined) throw new UsageError("--url needs a token: give --token or set SIGNALBOX_TOKEN");
    return { client: await createClient(url, token), trafficUrl: url, close: async () => undefined };
  }
  const config = await loadConfig(
    { ...toFlags(context), host: "127.0.0.1", port: "0" },
    environment,
    context.workingFolder,
  );
  const running = findRunningServer(config.dataDir);
  if (running !== null) {
    const rootToken = token ?? config.rootToken?.reveal() ?? readRootToken(config.dataDir);
    const { adminUrl, url: trafficUrl } = running;
    return {
      client: await createClient(adminUrl ?? trafficUrl, rootToken),
      trafficUrl,
      close: async () => undefined,
    };
  }
  const logger = createLogger({ level: "error", isPretty: context.err.isTTY === true });
  const service = await startService({
    config: { ...config, admin: null, file: withoutWorker(config.file) },
    logger,
    onFatal: (error) => {
      throw error;
    },
  });
  return {
    client: await createClient(service.url, token ?? service.rootToken.secret.reveal()),
    trafficUrl: service.url,
    // No other client uses it.
    close: () => service.stop(true),
  };
}

/** Imported on demand: `serve` needs no client, and its memory would stay in use. A command fails at once instead of retrying. */
async function createClient(url: string, token: string): Promise<SignalboxClient> {
  const { SignalboxClient } = await import("@signalbox/client");
  return new SignalboxClient({ url, token, maxAttempts: 1, timeoutMs: 0 });
}

function readRootToken(dataDir: string): string {
  try {
    return readFileSync(join(dataDir, "root-token"), "utf8").trim();
  } catch {
    throw new UsageError(
      "the running server has its root token from its environment: give --token or set SIGNALBOX_TOKEN",
    );
  }
}

/** A server that one command starts runs no worker: its program belongs to `signalbox serve`. */
function withoutWorker(file: Config["file"]): Config["file"] {
  const { worker, ...agents } = file.agents;
  return worker === undefined ? file : { ...file, agents: { ...agents, access: "token" } };
}
