/**
 * Names that a server knows, for completion and for "did you mean …?". The kind follows from the placeholder of an argument or the name of an
 * option, so that a command declares nothing: `<agent>` is an agent, `--gateway` a gateway.
 */
import type { AccountClient, SignalboxClient } from "@signalbox/client";
import type { Command } from "./command.ts";

export type NameKind =
  | "account"
  | "agent"
  | "instance"
  | "method"
  | "gateway"
  | "source"
  | "token"
  | "tag-key"
  | "route"
  | "provider-key"
  | "alert"
  /** Known without a server. */
  | "permission"
  | "tag-type";

/** `<id>` means something else in each group. */
const IDS_OF: Readonly<Record<string, NameKind>> = {
  gateway: "gateway",
  token: "token",
  "provider-keys": "provider-key",
  alerts: "alert",
};
/** The name is new. */
const NEW_ID = new Set(["create"]);

const OPTIONS: Readonly<Record<string, NameKind>> = {
  account: "account",
  agent: "agent",
  gateway: "gateway",
  source: "source",
  "token-id": "token",
  permission: "permission",
};

/** More names are of no help to a reader. */
const MAX_NAMES = 200;

export function kindOfPositional(command: Command, index: number): NameKind | undefined {
  const wanted = command.positionals ?? [];
  const placeholder = (wanted[index] ?? "").replace(/[<>[\]]|\.\.\./g, "");
  const [group = "", verb = ""] = command.words;
  if (placeholder === "agent") return "agent";
  if (placeholder === "name" && wanted[index - 1] === "<agent>") return "instance";
  if (placeholder === "method") return "method";
  if (placeholder === "source") return "source";
  if (placeholder === "type" && group === "tags") return "tag-type";
  if (placeholder === "key" && group === "tags") return "tag-key";
  if (placeholder === "name" && group === "routes" && !NEW_ID.has(verb)) return "route";
  return placeholder === "id" && !NEW_ID.has(verb) ? IDS_OF[group] : undefined;
}

export function kindOfOption({ words }: Command, name: string): NameKind | undefined {
  return name === "type" && words[0] === "tags" ? "tag-type" : OPTIONS[name];
}

/** Names that need no server; null for other kinds. */
export async function fixedNames(kind: NameKind): Promise<readonly string[] | null> {
  if (kind !== "permission" && kind !== "tag-type") return null;
  const { PERMISSIONS, TAG_RESOURCE_TYPES } = await import("@signalbox/protocol");
  return kind === "permission" ? PERMISSIONS : TAG_RESOURCE_TYPES.map(({ name }) => name);
}

export interface NameQuery {
  readonly client: SignalboxClient;
  readonly account: string | undefined;
  /** Positional arguments before this one. */
  readonly before: readonly string[];
  readonly prefix: string;
  readonly gateway: string | undefined;
}

/** The names with a description where the name alone says little. */
export async function readNames(
  kind: NameKind,
  query: NameQuery,
): Promise<readonly (readonly [string, string])[]> {
  const { client, prefix, before } = query;
  if (kind === "account") {
    return (await client.accounts.list().all(MAX_NAMES)).map(({ id, name }) => [id, name === id ? "" : name]);
  }
  const account: AccountClient = client.account(query.account);
  switch (kind) {
    case "agent":
      return (await account.agents.list().all(MAX_NAMES)).map((row) => [row.name, row.class_name]);
    case "instance": {
      const search = prefix === "" ? undefined : prefix;
      const rows = await account.agents.instances(before.at(-1) ?? "", { search }).all(MAX_NAMES);
      return rows.map(({ name }) => [name, ""]);
    }
    case "method": {
      const [agent = ""] = before;
      const rows = await account.agents.list().all(MAX_NAMES);
      const row = rows.find(({ name, class_name: title }) => name === agent || title === agent);
      return (row?.callable ?? []).map(({ name, description }) => [name, description ?? ""]);
    }
    case "gateway":
      return (await account.gateways.list({ per_page: 100 }).all(MAX_NAMES)).map(({ id }) => [id, ""]);
    case "source":
      return (await account.webhooks.sources().all()).map(({ name, agent }) => [name, `to ${agent}`]);
    case "token":
      return (await account.tokens.list({}).all(MAX_NAMES)).map(({ id, name }) => [id, name]);
    case "tag-key":
      return (await account.tags.keys({ prefix }).all(MAX_NAMES)).map(({ key }) => [key, ""]);
    case "route": {
      const rows = await account
        .routes(query.gateway ?? "default")
        .list()
        .all(MAX_NAMES);
      return rows.map(({ name }) => [name, ""]);
    }
    case "provider-key": {
      const rows = await account.providerKeys(query.gateway).list({ per_page: 50 }).all(MAX_NAMES);
      return rows.map(({ id, provider_slug: provider, alias }) => [id, `${provider} ${alias}`.trim()]);
    }
    case "alert":
      return (await account.alerts.list()).map(({ id, name }) => [id, name]);
    default:
      return ((await fixedNames(kind)) ?? []).map((name) => [name, ""]);
  }
}
