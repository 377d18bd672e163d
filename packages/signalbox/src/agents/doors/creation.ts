/**
 * Which requests may bring an instance into being by naming it.
 *
 * 1. Whoever may only read creates nothing: an instance that does not exist is not found.
 * 2. Whoever may edit by a token, or by the operator's own `authorize`, creates what they name.
 * 3. Where access is public, strangers create what they name, too; at a bounded rate where the operator sets one.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Access } from "./access.ts";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { Directory } from "../instance/directory.ts";
import type { CreationRate } from "./creation-rate.ts";

export interface CreationOptions {
  readonly directory: Directory;
  /** Null: no bound. */
  readonly creationRate: CreationRate | null;
}

/** Returns (or resolves) when the request may go on to `directory.get`; throws `agent_instance_not_found` or `overloaded`. */
export function requireInstance(
  { directory, creationRate }: CreationOptions,
  { definition, name }: { readonly definition: AgentDefinition; readonly name: string },
  { account, level, isStranger }: Access,
): void | Promise<void> {
  if (level === "edit" && (!isStranger || creationRate === null)) return;
  const ref = { account, agent: definition.kebab, name };
  if (directory.find(ref) !== undefined) return;
  return directory.exists(ref).then((exists) => {
    if (exists) return;
    if (level === "read") throw new SignalboxError("agent_instance_not_found");
    const waitMs = creationRate?.take() ?? 0;
    if (waitMs > 0) {
      throw new SignalboxError("overloaded", {
        message: "Too many new instances",
        headers: { "retry-after": String(Math.ceil(waitMs / 1000)) },
      });
    }
  });
}
