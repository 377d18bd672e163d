/**
 * Turns configurations of Portkey's gateway into dynamic routes and settings of this service: a pure function, so that `--dry-run` shows exactly what
 * an import does. What has no counterpart is named in `notes`; nothing is dropped silently.
 */
import { type Fields, isFields } from "../core/fields.ts";
import { parseGraph } from "../gateway/routes/route-graph.ts";
import { UsageError } from "./command.ts";
import type { ImportedKey } from "./imported-keys.ts";
import { type ImportedRoute, routeName } from "./imported-routes.ts";
import { toElements } from "./portkey-route.ts";
import {
  countOf,
  type Findings,
  inherit,
  membersOf,
  NOTHING,
  type PortkeyOptions,
} from "./portkey-target.ts";
import { hasTargets, readTree } from "./portkey-tree.ts";

export interface PortkeyImport {
  /** For the configuration file: it is read at the start. */
  readonly configuration: { readonly providers?: Readonly<Record<string, { readonly baseUrl: string }>> };
  readonly keys: readonly ImportedKey[];
  readonly routes: readonly ImportedRoute[];
  readonly gateway: { readonly retry_max_attempts?: number; readonly cache_ttl?: number };
  readonly notes: readonly string[];
}

interface NamedConfig {
  readonly name: string;
  readonly config: Fields;
}

/** One of them makes an object a configuration. */
const MEMBERS = [
  "strategy",
  "targets",
  "provider",
  "virtual_key",
  "override_params",
  "retry",
  "cache",
  "request_timeout",
];
const MAX_ATTEMPTS = 5;

/** Throws `UsageError` for a text without a configuration. */
export function planPortkeyImport(text: string, options: PortkeyOptions): PortkeyImport {
  const notes = new Set<string>();
  const configs = readConfigs(text, options.name, notes);
  let findings: Findings = { options, notes, keys: new Map(), providers: new Map() };
  const routes: ImportedRoute[] = [];
  const names = new Set<string>();
  for (const { name, config } of configs) {
    if (!hasTargets(config)) {
      inherit(config, NOTHING, name, findings);
      continue;
    }
    // Keys and addresses of a configuration that is left out are not needed.
    const tried = { ...findings, keys: new Map(findings.keys), providers: new Map(findings.providers) };
    try {
      const tree = readTree(config, name, tried);
      if (tree === null) throw new Error("no target is left");
      const elements = toElements(tree);
      parseGraph(elements, () => true);
      routes.push({ name: routeName(name, names), elements });
      findings = tried;
    } catch (error) {
      notes.add(`${name} was left out: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  const providers = Object.fromEntries(
    [...findings.providers].map(([slug, baseUrl]) => [slug, { baseUrl }] as const),
  );
  return {
    configuration: findings.providers.size === 0 ? {} : { providers },
    keys: [...findings.keys.values()],
    routes,
    gateway: { ...retriesOf(configs, notes), ...cacheOf(configs, notes) },
    notes: [...notes],
  };
}

/** Of configurations that have no targets: they change calls whose provider the caller names. */
function retriesOf(configs: readonly NamedConfig[], notes: Set<string>): PortkeyImport["gateway"] {
  const settings = configs.filter(({ config }) => !hasTargets(config));
  for (const { name, config } of settings) {
    const timeout = countOf(config["request_timeout"]);
    if (timeout !== null)
      notes.add(`${name}: request_timeout: callers send the header gw-aig-request-timeout: ${timeout}`);
  }
  const wanted = settings.map(({ name, config }) => {
    const attempts = countOf(membersOf(config["retry"])["attempts"]);
    return { name, attempts: attempts === null ? null : Math.min(MAX_ATTEMPTS, attempts + 1) };
  });
  const [first] = wanted;
  if (configs.length === 1 && first?.attempts != null) return { retry_max_attempts: first.attempts };
  for (const { name, attempts } of wanted)
    if (attempts !== null)
      notes.add(`${name}: retry: callers send the header gw-aig-max-attempts: ${attempts}`);
  return {};
}

/** A gateway has one time for all calls. */
function cacheOf(configs: readonly NamedConfig[], notes: Set<string>): PortkeyImport["gateway"] {
  const caches = configs.map(({ name, config }) => {
    const cache = membersOf(config["cache"]);
    if (cache["mode"] === "semantic")
      notes.add(`${name}: cache.mode semantic: only equal requests are answered from the cache`);
    const ttl = countOf(cache["max_age"]);
    if ("mode" in cache && ttl === null)
      notes.add(`${name}: cache without max_age: set a time with signalbox gateway set --cache-ttl`);
    return { name, ttl };
  });
  const [first] = caches;
  if (first?.ttl != null && caches.every(({ ttl }) => ttl === first.ttl)) return { cache_ttl: first.ttl };
  for (const { name, ttl } of caches)
    if (ttl !== null) notes.add(`${name}: cache: callers send the header gw-aig-cache-ttl: ${ttl}`);
  return {};
}

function readConfigs(text: string, fileName: string, notes: Set<string>): NamedConfig[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new UsageError("the file is not JSON: expected configurations of Portkey");
  }
  const top = isFields(value) && "data" in value ? value["data"] : value;
  const given = entriesOf(top, fileName);
  const configs = given.flatMap(({ name, config }) => {
    if (config === undefined) {
      notes.add(`${name}: the list has no contents: read them with GET /v1/configs/${name}`);
      return [];
    }
    return [{ name, config }];
  });
  if (given.length === 0)
    throw new UsageError("no configuration of Portkey: expected members such as strategy and targets");
  return configs;
}

interface Entry {
  readonly name: string;
  /** Undefined for an entry of a list that has names only. */
  readonly config: Fields | undefined;
}

/** One configuration, one or several of Portkey's interface, or a map by names. */
function entriesOf(value: unknown, fileName: string): Entry[] {
  if (Array.isArray(value))
    return value.flatMap((one, i) => (isFields(one) ? [entryOf(one, `${fileName}-${i + 1}`)] : []));
  if (!isFields(value)) return [];
  if ("config" in value || isConfig(value)) return [entryOf(value, fileName)];
  return Object.entries(value).flatMap(([name, one]) => {
    const config = configOf(one);
    return config === undefined ? [] : [{ name, config }];
  });
}

function entryOf(value: Fields, otherName: string): Entry {
  const name = [value["slug"], value["name"]].find((one) => typeof one === "string" && one !== "");
  const config = "config" in value ? configOf(value["config"]) : configOf(value);
  return { name: typeof name === "string" ? name : otherName, config };
}

/** The interface answers with an object or with its text. */
function configOf(value: unknown): Fields | undefined {
  if (typeof value !== "string") return isConfig(value) ? membersOf(value) : undefined;
  try {
    return configOf(JSON.parse(value));
  } catch {
    return undefined;
  }
}

function isConfig(value: unknown): boolean {
  const members = membersOf(value);
  return MEMBERS.some((name) => name in members);
}
