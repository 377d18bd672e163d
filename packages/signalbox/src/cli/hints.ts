/** What follows the message of a failed request: the token that was used, a name that is near, or the valid values. */
import type { SignalboxApiError } from "@signalbox/client";
import { nearestName } from "../core/nearest-name.ts";
import type { Command, CommandContext } from "./command.ts";
import { type Connection, createClient } from "./connect.ts";
import { isApiError } from "./failure.ts";
import { kindOfOption, kindOfPositional, type NameKind, readNames } from "./server-names.ts";

/** A hint is not worth a long wait. */
const TIMEOUT_MS = 2000;
const MAX_LISTED = 10;
/** Names that people choose. A list of generated ids or of all instances does not help. */
const READABLE: ReadonlySet<NameKind> = new Set(["account", "agent", "method", "gateway", "source", "route"]);

/** Empty if there is no hint. Never throws. */
export async function hintFor(
  error: unknown,
  command: Command,
  context: CommandContext,
  connection: Connection,
): Promise<string> {
  if (!isApiError(error)) return "";
  try {
    if (error.id === "unauthenticated" || error.id === "forbidden") {
      const { url, token } = connection.server;
      return `: ${url} refused ${token.origin}`;
    }
    if (error.id === "tags_invalid_resource_type") return await typeHint(command, context);
    const isMethod = isAboutMethod(error);
    if (!isMethod && !isNotFound(error)) return "";
    return await nameHint(command, context, connection, (kind) => !isMethod || kind === "method");
  } catch {
    return "";
  }
}

/** A missing gateway, token or source has the general code; a missing agent one of its own. */
function isNotFound({ status, id }: SignalboxApiError): boolean {
  return (
    (status === 404 &&
      (id === "agent_not_found" || id === "agent_instance_not_found" || id === "not_found")) ||
    id === "gateway_not_found"
  );
}

/** The agent exists then. */
function isAboutMethod({ id }: SignalboxApiError): boolean {
  return id === "agent_method_unknown" || id === "agent_method_not_callable";
}

/** The types are listed by the words that people use: `gateway` is `ai_gateway`. */
async function typeHint(command: Command, context: CommandContext): Promise<string> {
  const { TAG_RESOURCE_TYPES } = await import("@signalbox/protocol");
  const names = TAG_RESOURCE_TYPES.map(({ name }) => name);
  const index = command.positionals?.indexOf("<type>") ?? -1;
  const given = [...context.options("type"), ...(index === -1 ? [] : [context.positionals[index] ?? ""])];
  const typed = given.find((name) => !names.includes(name));
  if (typed === undefined) return "";
  const word = typed.toLowerCase().replaceAll("-", "_").replace(/s$/, "");
  const near = names.find((name) => name.split("_").includes(word)) ?? nearestName(typed, names);
  return ` "${typed}": ${near === undefined ? `expected one of ${names.join(", ")}` : `did you mean "${near}"?`}`;
}

async function nameHint(
  command: Command,
  context: CommandContext,
  { server }: Connection,
  isMeant: (kind: NameKind) => boolean,
): Promise<string> {
  const given: { kind: NameKind; name: string; before: readonly string[] }[] = [];
  for (const { name: option } of command.options) {
    const kind = kindOfOption(command, option);
    const name = context.option(option);
    if (kind !== undefined && name !== undefined) given.push({ kind, name, before: [] });
  }
  for (const [i, name] of context.positionals.entries()) {
    const kind = kindOfPositional(command, i);
    if (kind !== undefined) given.push({ kind, name, before: context.positionals.slice(0, i) });
  }
  const client = await createClient(server, TIMEOUT_MS);
  const [account, gateway] = [context.option("account"), context.option("gateway")];
  for (const { kind, name, before } of given.filter((one) => isMeant(one.kind))) {
    const known = await readNames(kind, { client, account, gateway, before, prefix: "" });
    // Agents and tokens may be named by the description, too: the class, the title.
    const [found] = known.filter((one) => one.includes(name));
    if (found?.[0] === name || (found !== undefined && kind === "agent")) continue;
    const near =
      found ??
      known.find(
        (one) =>
          one[0] ===
          nearestName(
            name,
            known.map(([id]) => id),
          ),
      );
    if (near !== undefined) return `: no ${kind} "${name}", did you mean "${near[0]}"?`;
    if (known.length > 0 && READABLE.has(kind)) {
      const names = known.slice(0, MAX_LISTED).map(([one]) => one);
      return `: no ${kind} "${name}"; there are ${names.join(", ")}${known.length > MAX_LISTED ? ", …" : ""}`;
    }
  }
  return "";
}
