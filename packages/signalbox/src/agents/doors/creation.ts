/**
 * Which requests may bring an instance into being by naming it.
 *
 * 1. Whoever may only read creates nothing: an instance that does not exist is not found.
 * 2. Whoever may edit by a token, or by the operator's own `authorize`, creates what they name.
 * 3. Where access is public, strangers create at a bounded rate: each instance is a file and a row for good.
 */
import type { IncomingMessage } from "node:http";
import { SignalboxError } from "@signalbox/protocol";
import { type AccessLevel, type AccessOptions, hasEditToken } from "./access.ts";
import type { AgentDefinition } from "../agent-definition.ts";
import type { Directory } from "../instance/directory.ts";
import type { CreationRate } from "./creation-rate.ts";

export interface CreationOptions {
  readonly access: AccessOptions;
  readonly directory: Directory;
  readonly creationRate: CreationRate;
}

/** Returns (or resolves) when the request may go on to `directory.get`; throws `agent_instance_not_found` or `overloaded`. */
export function requireInstance(
  options: CreationOptions,
  { definition, name }: { readonly definition: AgentDefinition; readonly name: string },
  level: AccessLevel,
  request: IncomingMessage,
  query: string,
): void | Promise<void> {
  const { access, directory } = options;
  const mayCreate = level === "edit" && access.mode !== "public";
  if (mayCreate || directory.find({ agent: definition.kebab, name }) !== undefined) return;
  return directory.exists(definition, name).then((exists) => {
    if (exists) return;
    if (level === "read") throw new SignalboxError("agent_instance_not_found");
    if (hasEditToken(access, request, query)) return;
    const waitMs = options.creationRate.take();
    if (waitMs > 0) {
      throw new SignalboxError("overloaded", {
        message: "Too many new instances",
        headers: { "retry-after": String(Math.ceil(waitMs / 1000)) },
      });
    }
  });
}
