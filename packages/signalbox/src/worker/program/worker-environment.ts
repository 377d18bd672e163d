/**
 * `env` of the worker: variables, secrets and bindings.
 *
 * The order of precedence of variables: `agents.worker.vars`, the environment of the process, `.dev.vars`, the wrangler file. Bindings come after all
 * of them: a variable cannot replace a binding.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { createMissingBinding } from "../settings/missing-bindings.ts";
import type { WranglerSettings } from "../settings/wrangler-file.ts";

export interface VariableSources {
  readonly wrangler: WranglerSettings;
  /** The environment of the process, without the secrets of the server. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** `agents.worker.vars`. */
  readonly configured: Readonly<Record<string, unknown>>;
}

export function readVariables({
  wrangler,
  environment,
  configured,
}: VariableSources): Record<string, unknown> {
  const file = join(wrangler.folder, ".dev.vars");
  const secrets = existsSync(file) ? parseEnv(readFileSync(file, "utf8")) : {};
  return { ...wrangler.vars, ...secrets, ...environment, ...configured };
}

export interface BindingParts {
  readonly wrangler: WranglerSettings;
  readonly objectNames: Iterable<string>;
  readonly workflowNames: Iterable<string>;
  object(className: string): object;
  workflow(className: string): object;
  /** Null is the default export. */
  service(entrypoint: string | null): object;
  readonly ai: object;
  readonly assets: object | null;
  readonly version: string;
}

/** Adds the bindings to `env`: those of the wrangler file, and each exported object and workflow under the name of its export. */
export function addBindings(env: Record<string, unknown>, parts: BindingParts): void {
  const { wrangler } = parts;
  for (const missing of wrangler.missing) env[missing.binding] = createMissingBinding(missing);
  for (const { binding, entrypoint } of wrangler.services) env[binding] = parts.service(entrypoint);
  env[wrangler.ai ?? "AI"] = parts.ai;
  if (wrangler.versionMetadata !== null)
    env[wrangler.versionMetadata] = { id: parts.version, tag: "", timestamp: new Date().toISOString() };
  const assets = wrangler.assets?.binding ?? "ASSETS";
  if (parts.assets !== null) env[assets] = parts.assets;
  else if (wrangler.assets?.binding !== undefined)
    env[assets] = createMissingBinding({
      binding: assets,
      kind: "assets: set agents.worker.assets to a folder",
    });
  for (const name of parts.objectNames) env[name] = parts.object(name);
  for (const name of parts.workflowNames) env[name] = parts.workflow(name);
  for (const { binding, className } of wrangler.objects) env[binding] = parts.object(className);
  for (const { binding, className } of wrangler.workflows) env[binding] = parts.workflow(className);
}
