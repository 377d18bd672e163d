/**
 * A target of Portkey's configurations: the model that it means, its key and its address. Settings of a group count for the targets in it that
 * have none of their own.
 */
import { type Fields, isFields } from "../core/fields.ts";
import type { ImportedKey } from "./imported-keys.ts";
import { portkeySlug, slugOfKeyName, slugOfModel } from "./portkey-providers.ts";

export interface PortkeyOptions {
  /** Of a configuration that has no name. */
  readonly name: string;
  /** Of targets that get the model of the caller; null leaves them out. */
  readonly model: string | null;
  /** Providers by the names of their virtual keys. */
  readonly virtualKeys: ReadonlyMap<string, string>;
}

/** What an import of several configurations collects. */
export interface Findings {
  readonly options: PortkeyOptions;
  readonly notes: Set<string>;
  readonly keys: Map<string, ImportedKey>;
  /** Addresses by the providers that get an entry in the configuration. */
  readonly providers: Map<string, string>;
}

/** Of the groups around a target. */
export interface Inherited {
  readonly overrides: Fields;
  readonly retry: Fields | null;
  readonly timeoutMs: number | null;
  readonly customHost: string | null;
}

export const NOTHING: Inherited = { overrides: {}, retry: null, timeoutMs: null, customHost: null };

export interface Model {
  readonly provider: string;
  readonly model: string;
  readonly retries: number | null;
  readonly timeoutMs: number | null;
}

const MAX_RETRIES = 4;
/** Their addresses have a form of their own here. */
const OWN_ADDRESS: ReadonlySet<string> = new Set(["azure-openai", "aws-bedrock", "google-vertex-ai"]);
const TAKEN: ReadonlySet<string> = new Set([
  "strategy",
  "targets",
  "name",
  "provider",
  "virtual_key",
  "api_key",
  "override_params",
  "weight",
  "retry",
  "cache",
  "request_timeout",
  "custom_host",
]);

/** Portkey reads both spellings of its members. */
export function membersOf(value: unknown): Fields {
  if (!isFields(value)) return {};
  const snake = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [snake(name), member]));
}

/** What a target or a group passes on, and notes about what it cannot. */
export function inherit(given: Fields, outer: Inherited, where: string, { notes }: Findings): Inherited {
  const overrides = isFields(given["override_params"]) ? given["override_params"] : {};
  const retry = isFields(given["retry"]) ? membersOf(given["retry"]) : null;
  const { request_timeout: timeout, custom_host: host } = given;
  const codes = retry?.["on_status_codes"];
  if (Array.isArray(codes) && codes.some((code) => !isRetried(code)))
    notes.add(`${where}: retry.on_status_codes ${JSON.stringify(codes)}: 408, 429 and 5xx are tried again`);
  const attempts = countOf(retry?.["attempts"]);
  if (attempts !== null && attempts > MAX_RETRIES)
    notes.add(`${where}: retry.attempts ${attempts}: a target is tried again at most ${MAX_RETRIES} times`);
  if (isFields(given["cache"]) && where.includes(".targets["))
    notes.add(`${where}: cache: not taken over, a gateway or a call has one time for all targets`);
  const others = [
    ...Object.keys(given).filter((name) => !TAKEN.has(name)),
    ...Object.keys(overrides)
      .filter((name) => name !== "model")
      .map((name) => `override_params.${name}`),
  ];
  if (others.length > 0) notes.add(`${where}: not taken over: ${others.join(", ")}`);
  return {
    overrides: { ...outer.overrides, ...overrides },
    retry: retry ?? outer.retry,
    timeoutMs: countOf(timeout) ?? outer.timeoutMs,
    customHost: typeof host === "string" && host !== "" ? host : outer.customHost,
  };
}

/** Null, with a note, if it cannot be told what the target calls. */
export function toModel(
  given: Fields,
  inherited: Inherited,
  where: string,
  findings: Findings,
): Model | null {
  const { notes, options } = findings;
  const leave = (reason: string) => {
    notes.add(`${where}: ${reason}. The target was left out`);
    return null;
  };
  const wanted = inherited.overrides["model"];
  const named = splitCatalogName(typeof wanted === "string" ? wanted : "");
  const model = named.model === "" ? options.model : named.model;
  const key = keyNameOf(given, named.key);
  const provider = typeof given["provider"] === "string" ? given["provider"] : "";
  const isProvider = provider !== "" && !provider.startsWith("@");
  const slug = isProvider
    ? portkeySlug(provider)
    : (portkeySlug(options.virtualKeys.get(key ?? "") ?? "") ??
      slugOfKeyName(key ?? "") ??
      slugOfModel(named.model));
  if (slug === undefined && isProvider) return leave(`the provider ${provider} is not known here`);
  if (slug === undefined) {
    return leave(
      key === null
        ? "it names no provider"
        : `the provider of the virtual key ${key} is not in the file; give --virtual-key ${key}=PROVIDER`,
    );
  }
  if (model === null) {
    return leave(
      `${slug} gets the model of the caller, who names the route here: give --model NAME, or override_params.model`,
    );
  }
  const own = providerAt(slug, inherited.customHost, where, findings);
  if (typeof given["api_key"] === "string" && given["api_key"] !== "") {
    const secret = given["api_key"];
    findings.keys.set(`${own} ${secret}`, { provider_slug: own, secret });
  } else if (key !== null) {
    notes.add(
      `virtual key ${key}: keys cannot be read there: signalbox provider-keys create ${own} --alias ${key} --default on`,
    );
  }
  const attempts = countOf(inherited.retry?.["attempts"]);
  return {
    provider: own,
    model,
    retries: attempts === null ? null : Math.min(MAX_RETRIES, attempts),
    timeoutMs: inherited.timeoutMs,
  };
}

/** `@name-of-a-key/model` of the model catalog. */
function splitCatalogName(text: string): { readonly key: string | null; readonly model: string } {
  const slash = text.indexOf("/");
  if (!text.startsWith("@") || slash === -1) return { key: null, model: text };
  return { key: text.slice(1, slash), model: text.slice(slash + 1) };
}

function keyNameOf({ virtual_key: key, provider }: Fields, ofModel: string | null): string | null {
  if (typeof key === "string" && key !== "") return key;
  if (typeof provider === "string" && provider.startsWith("@")) return provider.slice(1);
  return ofModel;
}

/** The provider itself, or one of its own for another address. */
function providerAt(slug: string, address: string | null, where: string, findings: Findings): string {
  if (address === null) return slug;
  if (!URL.canParse(address) || OWN_ADDRESS.has(slug)) {
    findings.notes.add(`${where}: set providers.${slug}.baseUrl of the configuration for ${address}`);
    return slug;
  }
  const { providers } = findings;
  const host = new URL(address).hostname.replaceAll(/[^a-z\d]+/g, "-").replaceAll(/^-|-$/g, "");
  const own = slug === "ollama" ? slug : host;
  // A host may have several addresses.
  const known = [...providers].find(([name, other]) => other === address && name.startsWith(own));
  if (known !== undefined) return known[0];
  const name = providers.has(own) ? `${own}-${providers.size + 1}` : own;
  providers.set(name, address);
  return name;
}

function isRetried(code: unknown): boolean {
  return typeof code === "number" && (code === 408 || code === 429 || (code >= 500 && code < 600));
}

export function countOf(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
}
