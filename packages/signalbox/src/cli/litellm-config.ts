/**
 * Turns a configuration of LiteLLM's proxy into settings of this service: a pure function, so that `--dry-run` shows exactly what an import
 * does. What has no counterpart is named in `notes`; nothing is dropped silently.
 *
 * A model of LiteLLM is a name with one or several deployments. A name with one deployment and no fallback becomes an entry of
 * `gateway.models`; any other name becomes a dynamic route, to which the entry points.
 */
import type { PriceTable, SpendRule } from "@signalbox/client";
import { parse } from "yaml";
import { envPrefix } from "../gateway/keys/key-source.ts";
import { UsageError } from "./command.ts";
import { splitModel } from "./litellm-providers.ts";
import type { ImportedKey } from "./imported-keys.ts";
import { type ImportedRoute, routeName } from "./imported-routes.ts";
import { leftOutOf, type RoutedModel, toRoute } from "./litellm-routes.ts";
import { toBudgets } from "./litellm-budgets.ts";
import { priceOf } from "./public-prices.ts";

export interface LiteLlmImport {
  /** For the configuration file: it is read at the start. */
  readonly configuration: {
    readonly gateway: { readonly models: Readonly<Record<string, string>> };
    readonly providers?: Readonly<Record<string, { readonly baseUrl: string }>>;
  };
  readonly keys: readonly ImportedKey[];
  readonly routes: readonly ImportedRoute[];
  readonly prices: PriceTable;
  readonly limits: readonly SpendRule[];
  readonly gateway: { readonly retry_max_attempts?: number; readonly cache_ttl?: number };
  /** What was not taken over, and what remains to be done. */
  readonly notes: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

/** Before the name of a variable. */
const ENVIRONMENT = "os.environ/";
const MAX_ATTEMPTS = 5;
/** In files for servers that ask for no key, because clients demand that one is set. */
const NO_KEY: ReadonlySet<string> = new Set(["", "none", "null", "empty", "no-key", "not-needed", "dummy"]);
/** The address of a resource is its base URL here, too. */
const AZURE_RESOURCE = /^https:\/\/[a-z0-9-]+\.openai\.azure\.com(?=\/?$)/i;
/** They answer at an address of the operator. */
const LOCAL: ReadonlySet<string> = new Set(["ollama", "vllm", "lmstudio"]);
const KNOWN_PARAMS: ReadonlySet<string> = new Set([
  "model",
  "api_key",
  "api_base",
  "rpm",
  "timeout",
  "max_retries",
  "num_retries",
  "weight",
  "input_cost_per_token",
  "output_cost_per_token",
  "cache_read_input_token_cost",
  "cache_creation_input_token_cost",
]);
const KNOWN_SETTINGS: ReadonlySet<string> = new Set([
  "fallbacks",
  "default_fallbacks",
  "num_retries",
  "request_timeout",
  "timeout",
  "max_budget",
  "budget_duration",
  "cache",
  "cache_params",
  "drop_params",
  "model_group_alias",
  "provider_budget_config",
  "routing_strategy",
]);

interface Deployment extends RoutedModel {
  readonly slug: string;
}

/** Throws `UsageError` for a text that is no such configuration. */
export function planLiteLlmImport(text: string): LiteLlmImport {
  return new Planner(parseYaml(text)).plan();
}

class Planner {
  readonly #notes: string[] = [];
  readonly #groups = new Map<string, Deployment[]>();
  readonly #keys = new Map<string, ImportedKey>();
  readonly #providers = new Map<string, string>();
  /** Variables that the file names. */
  readonly #given = new Set<string>();
  /** Variables of this service, by those of the file. */
  readonly #renamed = new Map<string, string>();
  readonly #prices: Record<string, Record<string, NonNullable<ReturnType<typeof priceOf>>>> = {};
  readonly #config: Fields;
  readonly #settings: Fields;

  constructor(config: Fields) {
    this.#config = config;
    this.#settings = { ...fieldsOf(config["litellm_settings"]), ...fieldsOf(config["router_settings"]) };
  }

  plan(): LiteLlmImport {
    const list = this.#config["model_list"];
    if (list !== undefined && !Array.isArray(list)) throw new UsageError("model_list must be a list");
    for (const one of list ?? []) {
      const { api_key: key } = fieldsOf(fieldsOf(one)["litellm_params"]);
      if (typeof key === "string" && key.startsWith(ENVIRONMENT))
        this.#given.add(key.slice(ENVIRONMENT.length));
    }
    for (const [i, one] of (list ?? []).entries()) this.#addModel(one, i);
    const models: Record<string, string> = {};
    const routes: ImportedRoute[] = [];
    const names = new Set<string>();
    for (const [name, deployments] of this.#groups) {
      const fallbacks = this.#fallbacksOf(name);
      const [only] = deployments;
      if (deployments.length === 1 && fallbacks.length === 0 && only !== undefined) {
        models[name] = `${only.provider}/${only.model}`;
      } else {
        const route = toRoute(routeName(name, names), deployments, fallbacks);
        const leftOut = leftOutOf(deployments, fallbacks);
        if (leftOut !== null) this.#notes.push(`${name}: ${leftOut}`);
        routes.push(route);
        models[name] = `dynamic/${route.name}`;
      }
    }
    this.#addAliases(models);
    this.#noteUnknown();
    const { limits, notes } = toBudgets(this.#settings);
    const providers = Object.fromEntries([...this.#providers].map(([slug, baseUrl]) => [slug, { baseUrl }]));
    return {
      configuration: { gateway: { models }, ...(this.#providers.size === 0 ? {} : { providers }) },
      keys: [...this.#keys.values()],
      routes,
      prices: this.#prices,
      limits,
      gateway: this.#gatewaySettings(),
      notes: [...this.#notes, ...notes],
    };
  }

  #addModel(one: unknown, i: number): void {
    const { model_name: name, litellm_params: given, model_info: info } = fieldsOf(one);
    const params = fieldsOf(given);
    const { model } = params;
    if (typeof name !== "string" || name === "" || typeof model !== "string") {
      this.#notes.push(`model_list[${i}]: model_name and litellm_params.model are required`);
      return;
    }
    const where = `${name} (${model})`;
    const split = splitModel(model);
    if (split === undefined) {
      this.#notes.push(`${where}: the provider is not known; the model is left out`);
      return;
    }
    const slug = this.#providerOf(split.slug, params["api_base"], where);
    const target = { provider: slug, model: split.model };
    const unknown = Object.keys(params).filter((member) => !KNOWN_PARAMS.has(member));
    if (unknown.length > 0) this.#notes.push(`${where}: not taken over: ${unknown.join(", ")}`);
    this.#addKey(slug, params, where);
    const price = priceOf({ ...fieldsOf(info), ...params });
    if (price !== null) Object.assign((this.#prices[slug] ??= {}), { [split.model]: price });
    const deployment = { ...target, slug, ...this.#attempts(params), weight: countOf(params["weight"]) ?? 1 };
    const group = this.#groups.get(name);
    if (group === undefined) this.#groups.set(name, [deployment]);
    else group.push(deployment);
  }

  /** The slug; of an address of its own, that of an entry in `providers`. */
  #providerOf(slug: string, address: unknown, where: string): string {
    if (typeof address !== "string" || address === "") return slug;
    if (address.startsWith(ENVIRONMENT)) {
      this.#notes.push(
        `${where}: set providers.${slug}.baseUrl to the value of ${address.slice(ENVIRONMENT.length)}`,
      );
      return slug;
    }
    if (!URL.canParse(address)) {
      this.#notes.push(`${where}: api_base is no URL`);
      return slug;
    }
    const resource = slug === "azure-openai" ? AZURE_RESOURCE.exec(address)?.[0].toLowerCase() : undefined;
    if (resource !== undefined) {
      const known = this.#providers.get(slug);
      if (known !== undefined && known !== resource)
        this.#notes.push(
          `${where}: ${resource} is a second address of ${slug}: providers.${slug}.baseUrl has one`,
        );
      else this.#providers.set(slug, resource);
      return slug;
    }
    if (slug === "azure-openai" || slug === "aws-bedrock" || slug === "google-vertex-ai") {
      this.#notes.push(
        `${where}: set providers.${slug}.baseUrl for ${address}; its form is in the reference`,
      );
      return slug;
    }
    const own = LOCAL.has(slug)
      ? slug
      : new URL(address).hostname.toLowerCase().replaceAll(/[^a-z\d]+/g, "-");
    const before = this.#providers.get(own);
    const name = before === undefined || before === address ? own : `${own}-${this.#providers.size + 1}`;
    this.#providers.set(name, address);
    return name;
  }

  #addKey(slug: string, params: Fields, where: string): void {
    const { api_key: key, rpm } = params;
    if (typeof key !== "string" || NO_KEY.has(key.toLowerCase())) return;
    const perMinute = countOf(rpm);
    const rate = perMinute === null ? {} : { rate_limit: perMinute, rate_limit_period: 60 };
    if (!key.startsWith(ENVIRONMENT)) {
      this.#keys.set(`${slug} ${key}`, { provider_slug: slug, secret: key, ...rate });
      return;
    }
    const name = key.slice(ENVIRONMENT.length);
    const wanted = envPrefix(slug);
    const isOwn = name === wanted || name.startsWith(`${wanted}_`);
    const variable = isOwn ? name : this.#renameVariable(name, wanted);
    if (!isOwn)
      this.#notes.push(`${where}: set the variable ${variable} of the service to the value of ${name}`);
    this.#keys.set(`${slug} ${variable}`, { provider_slug: slug, secret_id: `env:${variable}`, ...rate });
  }

  /** A variable that no other key has: two keys of one provider stay two. */
  #renameVariable(name: string, wanted: string): string {
    const known = this.#renamed.get(`${wanted} ${name}`);
    if (known !== undefined) return known;
    const isTaken = (variable: string) =>
      this.#given.has(variable) || [...this.#renamed.values()].includes(variable);
    let variable = wanted;
    for (let i = 2; isTaken(variable); i++) variable = `${wanted}_${i}`;
    this.#renamed.set(`${wanted} ${name}`, variable);
    return variable;
  }

  #attempts(params: Fields): Pick<RoutedModel, "timeoutMs" | "retries"> {
    const seconds = params["timeout"] ?? this.#settings["request_timeout"] ?? this.#settings["timeout"];
    const retries = countOf(params["num_retries"] ?? params["max_retries"]);
    return {
      timeoutMs: typeof seconds === "number" && seconds > 0 ? Math.round(seconds * 1000) : null,
      retries: retries === null ? null : Math.min(MAX_ATTEMPTS - 1, retries),
    };
  }

  #fallbacksOf(name: string): Deployment[] {
    const all = listOf(this.#settings["fallbacks"]).map(fieldsOf);
    const own = all.find((one) => Object.hasOwn(one, name))?.[name];
    const wanted = own === undefined ? listOf(this.#settings["default_fallbacks"]) : listOf(own);
    return wanted.flatMap((fallback) => {
      if (fallback === name || typeof fallback !== "string") return [];
      const found = this.#groups.get(fallback);
      if (found === undefined) this.#notes.push(`${name}: the fallback ${fallback} is not in model_list`);
      return found ?? [];
    });
  }

  #addAliases(models: Record<string, string>): void {
    for (const [alias, given] of Object.entries(fieldsOf(this.#settings["model_group_alias"]))) {
      const target = typeof given === "string" ? given : fieldsOf(given)["model"];
      const found = typeof target === "string" ? models[target] : undefined;
      if (found === undefined) this.#notes.push(`model_group_alias ${alias}: its model is not in model_list`);
      else models[alias] = found;
    }
  }

  #gatewaySettings(): LiteLlmImport["gateway"] {
    const { num_retries: retries, cache, cache_params: params } = this.#settings;
    const attempts = countOf(retries);
    if (attempts !== null && attempts >= MAX_ATTEMPTS) {
      this.#notes.push(`num_retries: at most ${MAX_ATTEMPTS} attempts are made`);
    }
    const ttl = countOf(fieldsOf(params)["ttl"]);
    if (cache === true && ttl === null) this.#notes.push("cache: give the gateway a time with --cache-ttl");
    return {
      ...(attempts === null ? {} : { retry_max_attempts: Math.min(MAX_ATTEMPTS, attempts + 1) }),
      ...(cache === true && ttl !== null ? { cache_ttl: ttl } : {}),
    };
  }

  #noteUnknown(): void {
    const { general_settings: general } = this.#config;
    if (this.#settings["drop_params"] === true) {
      this.#notes.push("drop_params: clients send the header gw-aig-drop-params: true");
    }
    const strategy = this.#settings["routing_strategy"];
    if (strategy !== undefined && strategy !== "simple-shuffle") {
      this.#notes.push(
        `routing_strategy ${JSON.stringify(strategy)}: deployments are chosen by their weights`,
      );
    }
    if ("master_key" in fieldsOf(general)) {
      this.#notes.push("master_key: create tokens with `signalbox token create`, and set authentication on");
    }
    const others = [
      ...Object.keys(this.#settings).filter((name) => !KNOWN_SETTINGS.has(name)),
      ...Object.keys(fieldsOf(general)).filter((name) => name !== "master_key"),
      ...Object.keys(this.#config).filter(
        (name) => !["model_list", "litellm_settings", "router_settings", "general_settings"].includes(name),
      ),
    ];
    if (others.length > 0) this.#notes.push(`not taken over: ${[...new Set(others)].join(", ")}`);
  }
}

function parseYaml(text: string): Fields {
  let value: unknown;
  try {
    // Aliases of YAML can make a small file very large.
    value = parse(text, { maxAliasCount: 100, uniqueKeys: true });
  } catch (error) {
    throw new UsageError(`no valid YAML: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new UsageError("no configuration of LiteLLM: expected members such as model_list");
  }
  return value as Fields;
}

export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function countOf(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
}
