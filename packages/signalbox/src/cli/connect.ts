/**
 * Connects a command to the management interface: of the server at an explicit URL, otherwise of the server that runs on the data folder,
 * otherwise of a server that this command starts on the data folder. A folder without data is refused, because a command in the wrong folder would
 * otherwise create a data folder and report success. See docs/decisions/0006.
 */
import type { SignalboxClient } from "@signalbox/client";
import { dataDirOf } from "../config/data-dir.ts";
import { DataFolderError } from "../core/data-folder-error.ts";
import { type CommandContext, UsageError } from "./command.ts";
import { readEnvironment } from "./environment.ts";
import { findServer, findToken, type FoundServer } from "./find-server.ts";

export interface Connection {
  readonly client: SignalboxClient;
  readonly server: FoundServer;
  /** For requests to the server: trusts the certificate of the one on the data folder. */
  readonly fetch: typeof fetch;
  close(): Promise<void>;
}

type ConnectContext = Omit<CommandContext, "client" | "account" | "trafficUrl" | "fetch">;

export async function connect(context: ConnectContext): Promise<Connection> {
  const found = await findServer(context);
  if (found !== null) return connectTo(found);
  const environment = readEnvironment(context);
  const dataDir = dataDirOf(context.option("data-dir"), environment, context.workingFolder);
  const { isDataFolder } = await import("../database/sqlite/data-folder.ts");
  if (!isDataFolder(dataDir)) {
    throw new UsageError(
      `no server and no data folder here (${dataDir}); use --data-dir or --url, or start a server with "signalbox serve"`,
    );
  }
  try {
    return await connectToOwn(context, dataDir);
  } catch (error) {
    // A server that started at the same time has taken the folder.
    const started = error instanceof DataFolderError ? await findServer(context) : null;
    if (started === null) throw error;
    return connectTo(started);
  }
}

async function connectTo(server: FoundServer): Promise<Connection> {
  const send = await fetchFor(server);
  return { client: await createClient(server), server, fetch: send, close: async () => undefined };
}

async function connectToOwn(context: ConnectContext, dataDir: string): Promise<Connection> {
  const { startLocalServer } = await import("./local-server.ts");
  const { url, rootToken, close } = await startLocalServer(context);
  const token = findToken(context, readEnvironment(context)) ?? {
    text: rootToken,
    origin: `the root token of ${dataDir}`,
  };
  const origin = `data folder ${dataDir}, no server was running`;
  const server = { url, trafficUrl: url, token, origin };
  return { client: await createClient(server), server, fetch, close };
}

/** Imported on demand: `serve` needs no client, and its memory would stay in use. A command fails at once instead of retrying. */
export async function createClient(
  server: Pick<FoundServer, "url" | "token" | "certificate">,
  timeoutMs = 0,
): Promise<SignalboxClient> {
  const { SignalboxClient } = await import("@signalbox/client");
  const { url, token } = server;
  return new SignalboxClient({
    url,
    token: token.text,
    maxAttempts: 1,
    timeoutMs,
    fetch: await fetchFor(server),
  });
}

export async function fetchFor({ certificate }: Pick<FoundServer, "certificate">): Promise<typeof fetch> {
  if (certificate === undefined) return fetch;
  const { pinnedFetch } = await import("./pinned-fetch.ts");
  return pinnedFetch(certificate);
}
