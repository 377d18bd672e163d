/**
 * Finds the server that a command is meant for, without starting one: at an explicit address, otherwise the one that runs on the data folder.
 * Loads neither the configuration file nor the service.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { dataDirOf } from "../config/data-dir.ts";
import { type CommandContext, UsageError } from "./command.ts";
import { readEnvironment } from "./environment.ts";
import { toServerUrl } from "./server-address.ts";

type FindContext = Pick<CommandContext, "option" | "options" | "hasSwitch" | "environment" | "workingFolder">;

/** A token and where it comes from. Messages name the origin, never the token. */
export interface FoundToken {
  readonly text: string;
  readonly origin: string;
}

export interface FoundServer {
  /** Address of the management interface. */
  readonly url: string;
  /** Address for webhooks and calls. */
  readonly trafficUrl: string;
  readonly token: FoundToken;
  /** `--url`, `SIGNALBOX_URL` or the data folder. */
  readonly origin: string;
  /** The certificate of the server on the data folder, if it uses TLS. */
  readonly certificate?: string;
}

/** Null if no address is given and no server runs on the data folder. */
export async function findServer(context: FindContext): Promise<FoundServer | null> {
  const environment = readEnvironment(context);
  const token = findToken(context, environment);
  const address = findAddress(context, environment);
  if (address !== null) {
    if (token === null) throw new UsageError("--url needs a token: give --token or set SIGNALBOX_TOKEN");
    return { ...address, trafficUrl: address.url, token };
  }
  const dataDir = dataDirOf(context.option("data-dir"), environment, context.workingFolder);
  const { findRunningServer } = await import("../database/sqlite/data-folder.ts");
  const running = findRunningServer(dataDir);
  if (running === null) return null;
  return {
    url: running.adminUrl ?? running.url,
    trafficUrl: running.url,
    token: token ?? rootToken(environment, dataDir),
    origin: `data folder ${dataDir}`,
    ...(running.certificate === undefined ? {} : { certificate: running.certificate }),
  };
}

export function findAddress(
  context: Pick<FindContext, "option">,
  environment: FindContext["environment"],
): { url: string; origin: string } | null {
  const option = context.option("url");
  if (option !== undefined) return { url: toServerUrl(option, "--url"), origin: "--url" };
  const variable = environment["SIGNALBOX_URL"];
  if (!variable) return null;
  return { url: toServerUrl(variable, "SIGNALBOX_URL"), origin: "SIGNALBOX_URL" };
}

export function findToken(
  context: Pick<FindContext, "option">,
  environment: FindContext["environment"],
): FoundToken | null {
  const option = context.option("token");
  if (option !== undefined) return { text: option, origin: "the token of --token" };
  const variable = environment["SIGNALBOX_TOKEN"];
  return variable ? { text: variable, origin: "the token in SIGNALBOX_TOKEN" } : null;
}

function rootToken(environment: FindContext["environment"], dataDir: string): FoundToken {
  const variable = environment["SIGNALBOX_ROOT_TOKEN"];
  if (variable) return { text: variable, origin: "the root token in SIGNALBOX_ROOT_TOKEN" };
  const file = join(dataDir, "root-token");
  try {
    return { text: readFileSync(file, "utf8").trim(), origin: `the root token in ${file}` };
  } catch {
    throw new UsageError(
      "the running server has its root token from its environment: give --token or set SIGNALBOX_TOKEN",
    );
  }
}
