/**
 * Reads `wrangler.jsonc`, `wrangler.json` or `wrangler.toml`: the settings of a worker that have a meaning on this server. Other settings of the
 * file (routes, placement) concern the platform that the file was written for and are not read.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, extname, join, resolve } from "node:path";
import { parse as parseToml } from "smol-toml";
import { z } from "zod";
import { readFlags } from "../../agents/index.ts";
import { ConfigError } from "../../config/index.ts";
import { parseJsonc } from "../../core/jsonc.ts";
import { findMissingBindings, type MissingBinding } from "./missing-bindings.ts";

const text = z.string().min(1);

const objectBinding = z.looseObject({ name: text, class_name: text, script_name: text.optional() });
/** The delay is in seconds. The default and the bound of the originals. */
const codeUpdate = z.union([
  z.looseObject({ mode: z.literal("immediate") }).transform(() => 0),
  z
    .looseObject({ mode: z.literal("deferred"), max_delay: z.number().min(0).max(86_400).default(300) })
    .transform((strategy) => Math.round(strategy.max_delay * 1000)),
]);
const workflowBinding = z.looseObject({
  binding: text,
  class_name: text,
  name: text.optional(),
  script_name: text.optional(),
  schedules: z.union([text, z.array(text)]).optional(),
});
const assets = z.looseObject({
  directory: text.optional(),
  binding: text.optional(),
  html_handling: z
    .enum(["auto-trailing-slash", "force-trailing-slash", "drop-trailing-slash", "none"])
    .default("auto-trailing-slash"),
  not_found_handling: z.enum(["none", "404-page", "single-page-application"]).default("none"),
  run_worker_first: z.union([z.boolean(), z.array(text)]).default(false),
});
const rule = z.looseObject({
  type: z.enum(["ESModule", "CommonJS", "CompiledWasm", "Text", "Data"]),
  globs: z.array(text),
  fallthrough: z.boolean().default(false),
});
const service = z.looseObject({
  binding: text,
  service: text,
  entrypoint: text.optional(),
  props: z.json().optional(),
});

const migration = z.looseObject({
  renamed_classes: z.array(z.looseObject({ from: text, to: text })).default([]),
});
const exported = z.looseObject({
  type: text,
  state: z.enum(["created", "deleted", "renamed", "transferred", "expecting-transfer"]).default("created"),
  renamed_to: text.optional(),
});

const wranglerFile = z.looseObject({
  name: text.optional(),
  main: text.optional(),
  vars: z.record(z.string(), z.json()).default({}),
  durable_objects: z
    .looseObject({
      bindings: z.array(objectBinding).default([]),
      code_update_strategy: codeUpdate.optional(),
    })
    .prefault({}),
  workflows: z.array(workflowBinding).default([]),
  ai: z.looseObject({ binding: text }).optional(),
  assets: assets.optional(),
  triggers: z.looseObject({ crons: z.array(text).default([]) }).prefault({}),
  rules: z.array(rule).default([]),
  services: z.array(service).default([]),
  version_metadata: z.looseObject({ binding: text }).optional(),
  worker_loaders: z.array(z.looseObject({ binding: text })).default([]),
  define: z.record(z.string(), z.string()).default({}),
  compatibility_date: z
    .string()
    .regex(/^\d{4}-\d{2}-\d{2}$/, "expected a date such as 2026-10-01")
    .optional(),
  compatibility_flags: z.array(text).default([]),
  migrations: z.array(migration).default([]),
  exports: z.record(z.string(), exported).default({}),
});

export type WranglerAssets = z.output<typeof assets>;
export type WranglerRule = z.output<typeof rule>;

export interface WranglerSettings {
  /** Null: the file has no name. */
  readonly name: string | null;
  /** Folder of the file; paths inside the file are relative to it. */
  readonly folder: string;
  readonly vars: Readonly<Record<string, unknown>>;
  readonly objects: readonly { readonly binding: string; readonly className: string }[];
  /** How long objects with work keep their code while a node is replaced; 0: not at all. Undefined: the file has no strategy. */
  readonly updateDelayMs: number | undefined;
  readonly workflows: readonly {
    readonly binding: string;
    readonly className: string;
    /** Cron expressions: each due time creates an instance. */
    readonly schedules: readonly string[];
  }[];
  /** Classes that `exports` declares, by kind. The program must have them. */
  readonly declared: { readonly objects: readonly string[]; readonly workflows: readonly string[] };
  /** New name of an object class → the name that its objects were first stored under. */
  readonly renamed: ReadonlyMap<string, string>;
  /** Classes that are no more: they were deleted, renamed or transferred. */
  readonly former: readonly string[];
  /** Compatibility flags. */
  readonly flags: Readonly<Record<string, boolean>>;
  /** Names that the compiler replaces by expressions. */
  readonly define: Readonly<Record<string, string>>;
  /** Name of the binding, if there is one. */
  readonly ai: string | null;
  readonly assets: WranglerAssets | null;
  readonly crons: readonly string[];
  readonly rules: readonly WranglerRule[];
  /** Bindings to this worker's own entrypoints. */
  readonly services: readonly ServiceBinding[];
  /** Bindings to other workers. */
  readonly foreign: {
    readonly objects: readonly ForeignClass[];
    readonly workflows: readonly ForeignClass[];
    readonly services: readonly (ServiceBinding & { readonly script: string })[];
  };
  readonly versionMetadata: string | null;
  /** Names of bindings that load programs. */
  readonly loaders: readonly string[];
  readonly missing: readonly MissingBinding[];
}

export interface ServiceBinding {
  readonly binding: string;
  /** Null is the default export. */
  readonly entrypoint: string | null;
  readonly props: unknown;
}

export interface ForeignClass {
  readonly binding: string;
  readonly className: string;
  /** The name of the worker. */
  readonly script: string;
}

/** In the order in which the originals' tools look for them. */
const NAMES = ["wrangler.json", "wrangler.jsonc", "wrangler.toml"];

/** Finds the file in the folder of the entry or above it, up to the working folder; null: there is none. */
export function findWranglerFile(entry: string, workingFolder: string): string | null {
  for (let folder = dirname(entry); ; folder = dirname(folder)) {
    const found = NAMES.map((name) => join(folder, name)).find((path) => existsSync(path));
    if (found !== undefined) return found;
    if (folder === workingFolder || folder === dirname(folder)) return null;
  }
}

/** `path` null: the settings of a worker without a file. */
export function readWranglerFile(path: string | null, workingFolder: string): WranglerSettings {
  if (path === null) return toSettings({}, "wrangler file", workingFolder);
  let content: unknown;
  try {
    const source = readFileSync(path, "utf8");
    content = extname(path) === ".toml" ? parseToml(source) : parseJsonc(source);
  } catch (cause) {
    const reason = cause instanceof Error ? (cause.message.split("\n")[0] ?? "") : String(cause);
    throw new ConfigError(`${path}: cannot be read: ${reason}`, { cause });
  }
  return toSettings(content, path, dirname(resolve(path)));
}

function toSettings(content: unknown, path: string, folder: string): WranglerSettings {
  const parsed = wranglerFile.safeParse(content);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new ConfigError(`${path}: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? "invalid"}`);
  }
  const file = parsed.data;
  const isOwn = (script: string | undefined) => script === undefined || script === file.name;
  const objects = file.durable_objects.bindings;
  return {
    name: file.name ?? null,
    folder,
    vars: file.vars,
    objects: objects
      .filter(({ script_name: script }) => isOwn(script))
      .map(({ name, class_name: className }) => ({ binding: name, className })),
    updateDelayMs: file.durable_objects.code_update_strategy,
    workflows: file.workflows
      .filter(({ script_name: script }) => isOwn(script))
      .map(({ binding, class_name: className, schedules = [] }) => ({
        binding,
        className,
        schedules: typeof schedules === "string" ? [schedules] : schedules,
      })),
    declared: { objects: declaredOf(file, "durable-object"), workflows: declaredOf(file, "workflow") },
    renamed: renamedOf(file),
    former: Object.entries(file.exports)
      .filter(([, { state }]) => state === "deleted" || state === "renamed" || state === "transferred")
      .map(([name]) => name),
    flags: readFlags(file.compatibility_date, file.compatibility_flags),
    define: file.define,
    ai: file.ai?.binding ?? null,
    assets: file.assets ?? null,
    crons: file.triggers.crons,
    rules: file.rules,
    services: file.services.filter((item) => isOwn(item.service)).map(toService),
    foreign: {
      objects: objects.flatMap(({ name, class_name: className, script_name: script }) =>
        script === undefined || isOwn(script) ? [] : [{ binding: name, className, script }],
      ),
      workflows: file.workflows.flatMap(({ binding, class_name: className, script_name: script }) =>
        script === undefined || isOwn(script) ? [] : [{ binding, className, script }],
      ),
      services: file.services
        .filter((item) => !isOwn(item.service))
        .map((item) => ({ ...toService(item), script: item.service })),
    },
    versionMetadata: file.version_metadata?.binding ?? null,
    loaders: file.worker_loaders.map(({ binding }) => binding),
    missing: findMissingBindings(content),
  };
}

function toService({ binding, entrypoint, props }: z.output<typeof service>): ServiceBinding {
  return { binding, entrypoint: entrypoint ?? null, props: props ?? {} };
}

type WranglerFile = z.output<typeof wranglerFile>;

function declaredOf(file: WranglerFile, type: string): string[] {
  return Object.entries(file.exports)
    .filter(
      ([, entry]) =>
        entry.type === type && (entry.state === "created" || entry.state === "expecting-transfer"),
    )
    .map(([name]) => name);
}

/** Follows renames to the first name, under which the objects of the class are stored. */
function renamedOf(file: WranglerFile): ReadonlyMap<string, string> {
  const before = new Map<string, string>();
  for (const { renamed_classes: renames } of file.migrations)
    for (const { from, to } of renames) before.set(to, from);
  for (const [from, { renamed_to: to }] of Object.entries(file.exports))
    if (to !== undefined) before.set(to, from);
  const first = (name: string, seen: ReadonlySet<string>): string => {
    const from = before.get(name);
    return from === undefined || seen.has(from) ? name : first(from, new Set([...seen, from]));
  };
  return new Map([...before.keys()].map((name) => [name, first(name, new Set([name]))]));
}
