/**
 * Which requests may create an instance by naming it.
 *
 * 1. Callers with read access create nothing: an instance that does not exist is not found.
 * 2. Callers with edit access by a token, or by the operator's `authorize`, create the instances that they name.
 * 3. Where access is public, unauthenticated callers create instances too, at the rate that the operator allows.
 * See docs/decisions/0080.
 */
import { SignalboxError } from "@signalbox/protocol";
import { overloaded } from "../../core/overload.ts";
import type { Access } from "./access.ts";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { Directory } from "../instance/directory.ts";
import type { TokenBucket } from "../../core/token-bucket.ts";

export interface CreationOptions {
  readonly directory: Directory;
  /** Null for no limit. */
  readonly creationRate: TokenBucket | null;
}

/** Returns or resolves when the request may call `directory.get`. Throws `agent_instance_not_found` or `overloaded`. */
export function requireInstance(
  { directory, creationRate }: CreationOptions,
  { definition, name }: { readonly definition: AgentDefinition; readonly name: string },
  { account, level, isStranger }: Pick<Access, "account" | "level" | "isStranger">,
): void | Promise<void> {
  if (level === "edit" && (!isStranger || creationRate === null)) return;
  const ref = { account, agent: definition.kebab, name };
  if (directory.find(ref) !== undefined) return;
  return directory.exists(ref).then((exists) => {
    if (exists) return;
    if (level === "read") throw new SignalboxError("agent_instance_not_found");
    const waitMs = creationRate?.take() ?? 0;
    if (waitMs > 0) {
      throw overloaded("Too many new instances", { "retry-after": String(Math.ceil(waitMs / 1000)) });
    }
  });
}
