/**
 * The settings that make this process a node of a cluster: PostgreSQL and `SIGNALBOX_CLUSTER_SECRET`. Without the secret one process uses the
 * database alone.
 */
import { hostname, networkInterfaces } from "node:os";
import { Secret } from "../core/secret.ts";
import { MAX_PROCESSES } from "./cluster-keys.ts";
import { ConfigError } from "../core/config-error.ts";

export interface ClusterConfig {
  /** Authenticates nodes to each other. */
  readonly secret: Secret;
  /** Where the links listen. */
  readonly host: string;
  /** 0 selects a free port. */
  readonly port: number;
  /** What other nodes connect to: `host`, or an address of this machine if `host` is a wildcard. */
  readonly advertisedHost: string;
}

export interface ClusterSettings {
  readonly secret: string | undefined;
  readonly host: string | undefined;
  readonly port: number | undefined;
  /** Default of `host`. */
  readonly listenerHost: string;
}

export const CLUSTER_SECRET = "SIGNALBOX_CLUSTER_SECRET";
/** At least 128 bits in hex or base64: the database contains a value derived from the secret. */
const MIN_SECRET_LENGTH = 32;
const WILDCARDS = ["0.0.0.0", "::", ""];
export const MAX_NAME_LENGTH = 64;

export function parseCluster(settings: ClusterSettings): ClusterConfig | null {
  const { secret = "", port = 0, host = settings.listenerHost } = settings;
  if (secret === "") return null;
  if (secret.length < MIN_SECRET_LENGTH) {
    throw new ConfigError(
      `${CLUSTER_SECRET}: expected at least ${MIN_SECRET_LENGTH} characters, found ${secret.length}`,
    );
  }
  const advertisedHost = WILDCARDS.includes(host) ? ownAddress() : host;
  return { secret: new Secret(secret), host, port, advertisedHost };
}

/** The name of this node in lists, logs and metrics. Names need not be unique. */
export function parseNodeName(text: string | undefined): string {
  const name =
    text ??
    hostname()
      .replaceAll(/[^\x21-\x7e]/g, "-")
      .slice(0, MAX_NAME_LENGTH);
  if (!/^[\x21-\x7e]+$/.test(name) || name.length > MAX_NAME_LENGTH) {
    throw new ConfigError(
      `--node-name: expected at most ${MAX_NAME_LENGTH} printable ASCII characters without spaces, found "${name}"`,
    );
  }
  return name;
}

/** `given`: the option or the variable. */
export function parseProcesses(
  given: { readonly name: string; readonly text: string } | undefined,
  file: number | "auto",
): number | "auto" {
  if (given === undefined) return file;
  const { name, text } = given;
  if (text === "auto") return text;
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || count > MAX_PROCESSES)
    throw new ConfigError(`${name}: expected auto or a number from 1 to ${MAX_PROCESSES}, found "${text}"`);
  return count;
}

/** An address that other machines can use; loopback if this machine has no network. */
function ownAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  const usable = addresses.filter(({ internal }) => !internal);
  return (usable.find(({ family }) => family === "IPv4") ?? usable[0])?.address ?? "127.0.0.1";
}
