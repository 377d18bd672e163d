/**
 * How a command reaches the management interface: an explicit URL; else the server that holds the data folder; else a server started
 * on the data folder for this one command, on a free loopback port, so that both ways behave alike.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { loadConfig } from "../config/index.ts";
import { startService } from "../service.ts";
import { findRunningServer } from "../database/sqlite/data-folder.ts";
import { createLogger } from "../telemetry/logger.ts";
import { type CommandContext, UsageError } from "./command.ts";
import { readEnvironment, toFlags } from "./environment.ts";
import { ManagementClient } from "./management-client.ts";

export interface Connection {
  readonly client: ManagementClient;
  /** Where webhooks and calls go; the client's own address unless the server keeps the two apart. */
  readonly trafficUrl: string;
  close(): Promise<void>;
}

type ConnectContext = Omit<CommandContext, "client" | "trafficUrl">;

export async function connect(context: ConnectContext): Promise<Connection> {
  const environment = readEnvironment(context);
  const token = context.option("token") ?? environment["SIGNALBOX_TOKEN"];
  const url = context.option("url") ?? environment["SIGNALBOX_URL"];
  if (url !== undefined) {
    if (token === undefined) throw new UsageError("--url needs a token: give --token or set SIGNALBOX_TOKEN");
    return { client: new ManagementClient(url, token), trafficUrl: url, close: async () => undefined };
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
      client: new ManagementClient(adminUrl ?? trafficUrl, rootToken),
      trafficUrl,
      close: async () => undefined,
    };
  }
  const logger = createLogger({ level: "error", isPretty: context.err.isTTY === true });
  const service = await startService({
    config: { ...config, admin: null },
    logger,
    onFatal: (error) => {
      throw error;
    },
  });
  return {
    client: new ManagementClient(service.url, token ?? service.rootToken.secret.reveal()),
    trafficUrl: service.url,
    close: () => service.stop(),
  };
}

function readRootToken(dataDir: string): string {
  try {
    return readFileSync(join(dataDir, "root-token"), "utf8").trim();
  } catch {
    throw new UsageError(
      "the running server's root token came from its environment: give --token or set SIGNALBOX_TOKEN",
    );
  }
}
