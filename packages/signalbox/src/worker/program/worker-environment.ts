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
import type { ServiceBinding, WranglerSettings } from "../settings/wrangler-file.ts";

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
  /** `script` null is the worker itself. These return null if the server has no other worker of the name. */
  object(className: string, script: string | null): object | null;
  workflow(className: string, script: string | null): object | null;
  service(service: ServiceBinding, script: string | null): object | null;
  readonly ai: object;
  readonly assets: object | null;
  /** The loader of a binding. */
  readonly loader: (binding: string) => object;
  readonly version: string;
}

/** Adds the bindings to `env`: those of the wrangler file, and each exported object and workflow under the name of its export. */
export function addBindings(env: Record<string, unknown>, parts: BindingParts): void {
  const { wrangler } = parts;
  for (const missing of wrangler.missing) env[missing.binding] = createMissingBinding(missing);
  for (const service of wrangler.services) env[service.binding] = parts.service(service, null);
  env[wrangler.ai ?? "AI"] = parts.ai;
  for (const binding of wrangler.loaders) env[binding] = parts.loader(binding);
  if (wrangler.versionMetadata !== null)
    env[wrangler.versionMetadata] = { id: parts.version, tag: "", timestamp: new Date().toISOString() };
  const assets = wrangler.assets?.binding ?? "ASSETS";
  if (parts.assets !== null) env[assets] = parts.assets;
  else if (wrangler.assets?.binding !== undefined)
    env[assets] = createMissingBinding({
      binding: assets,
      kind: "assets: set agents.worker.assets to a folder",
    });
  for (const name of parts.objectNames) env[name] = parts.object(name, null);
  for (const name of parts.workflowNames) env[name] = parts.workflow(name, null);
  for (const { binding, className } of wrangler.objects) env[binding] = parts.object(className, null);
  for (const { binding, className } of wrangler.workflows) env[binding] = parts.workflow(className, null);
  const { objects, workflows, services } = wrangler.foreign;
  const set = (binding: string, value: object | null, kind: string, script: string) => {
    env[binding] = value ?? createMissingBinding({ binding, kind: `${kind} of the worker ${script}` });
  };
  for (const { binding, className, script } of objects)
    set(binding, parts.object(className, script), "durable object", script);
  for (const { binding, className, script } of workflows)
    set(binding, parts.workflow(className, script), "workflow", script);
  for (const service of services)
    set(service.binding, parts.service(service, service.script), "service", service.script);
}
