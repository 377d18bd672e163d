/**
 * Gateways of Cloudflare as gateways of this service, from the answers of its interface: a pure function, so that `--dry-run` shows exactly what an
 * import does. The rules of this service decide what it takes (`gatewaySettings`, `parseGraph`); what it does not take is named in `notes`.
 */
import type { GatewaySettings, RouteElement } from "@signalbox/client";
import { BUILT_IN_PROVIDERS } from "../gateway/providers/built-in.ts";
import { parseGraph } from "../gateway/routes/route-graph.ts";
import { gatewaySettings } from "../gateway/settings/gateway-settings.ts";
import {
  type CloudflareAnswers,
  CUSTOM_PROVIDERS,
  type Fields,
  fieldsOf,
  GATEWAY_LISTS,
  GATEWAYS,
  listPath,
} from "./cloudflare-answers.ts";

export interface ImportedGateway {
  readonly id: string;
  readonly settings: Partial<GatewaySettings>;
  readonly routes: readonly { readonly name: string; readonly elements: readonly RouteElement[] }[];
}

/** The body of a request that creates it. */
export interface ImportedProvider {
  readonly slug: string;
  readonly name: string;
  readonly base_url: string;
}

export interface CloudflareImport {
  readonly providers: readonly ImportedProvider[];
  readonly gateways: readonly ImportedGateway[];
  readonly notes: readonly string[];
}

/** Names of the gateway itself, no settings. */
const IDENTITY: ReadonlySet<string> = new Set([
  "id",
  "is_default",
  "created_at",
  "modified_at",
  "account_id",
  "account_tag",
  "internal_id",
]);
/** Values of settings without a counterpart that mean the same as here. */
const OFF: readonly unknown[] = [null, undefined, false, "", "postpaid"];
/** What to do about settings without a counterpart. */
const ADVICE: Readonly<Record<string, string>> = {
  logpush: "write calls to a bucket with gateway.logPush of the configuration",
  logpush_public_key: "stored calls are not encrypted with a key of the receiver",
  stripe: "bill from signalbox usage, which exports CSV",
  store_id: "keys are stored encrypted in the database, or named by a variable or file of the service",
  zdr: "agree on zero data retention with the provider; collect_logs off stores nothing here",
  workers_ai_billing_mode: "calls are billed by the provider whose key is used",
  log_classification: "no counterpart",
};
const PROVIDER_FIELDS = ["name", "base_url", "description", "enable", "link", "logo", "position"] as const;
/** Known without being part of a request. */
const PROVIDER_IDENTITY: ReadonlySet<string> = new Set([
  ...PROVIDER_FIELDS,
  "id",
  "slug",
  "headers",
  "created_at",
  "modified_at",
  "account_id",
  "account_tag",
]);
/** Shown in place of a value by a service that hides them. */
const HIDDEN = /^(?:\[secret\]|\*+)$/;

export function planCloudflareImport({ lists, failures }: CloudflareAnswers): CloudflareImport {
  const notes = Object.values(failures);
  const providers = (lists[CUSTOM_PROVIDERS] ?? []).flatMap((one) => toProvider(one, notes));
  const isProvider = (slug: string) =>
    BUILT_IN_PROVIDERS.some((one) => one.slug === slug) ||
    providers.some((one) => `custom-${one.slug}` === slug);
  const gateways = (lists[GATEWAYS] ?? []).flatMap((one): ImportedGateway[] => {
    const { id } = one;
    if (typeof id !== "string" || id === "") {
      notes.push("a gateway without an id was left out");
      return [];
    }
    const [routes, keys, datasets, evaluations] = GATEWAY_LISTS.map(
      (list) => lists[listPath(id, list)] ?? [],
    );
    const settings = toSettings(id, one, notes);
    const found = (routes ?? []).flatMap((route) => toRoute(id, route, isProvider, notes));
    for (const key of keys ?? []) notes.push(keyNote(id, key));
    const others = { datasets: datasets?.length ?? 0, evaluations: evaluations?.length ?? 0 };
    for (const [name, count] of Object.entries(others)) {
      if (count > 0)
        notes.push(`${id}: ${count} ${name} were not taken over: export the stored calls instead`);
    }
    return [{ id, settings, routes: found }];
  });
  if (providers.length > 0)
    notes.push("prices of custom providers cannot be read there: set them with signalbox prices set");
  if (gateways.length > 0) notes.push("stored calls, and what was spent of limits, stay there");
  return { providers, gateways, notes };
}

function toSettings(id: string, given: Fields, notes: string[]): Partial<GatewaySettings> {
  const settings: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    const schema = Object.entries(gatewaySettings.shape).find(([known]) => known === name)?.[1];
    if (IDENTITY.has(name)) continue;
    if (schema === undefined) {
      if (!isOff(value))
        notes.push(`${id}: ${name} was not taken over: ${ADVICE[name] ?? "it is not known here"}`);
      continue;
    }
    const wanted = name === "otel" ? toReceivers(id, value, notes) : value;
    const checked = schema.safeParse(wanted);
    if (checked.success) settings[name] = checked.data;
    else if (!isOff(value)) {
      const [issue] = checked.error.issues;
      const where = [name, ...(issue?.path ?? [])].join(".");
      notes.push(`${id}: ${name} was not taken over: ${where}: ${issue?.message ?? "not valid"}`);
    }
  }
  noteMeaning(id, settings, notes);
  return settings;
}

/** What settings need here that they do not need there. */
function noteMeaning(id: string, settings: Partial<GatewaySettings> & Fields, notes: string[]): void {
  if (settings.authentication === true)
    notes.push(
      `${id}: tokens cannot be read there: callers need new ones from signalbox gateway token ${id}`,
    );
  if ((settings.spend_limits?.rules ?? []).length > 0)
    notes.push(
      `${id}: limits on cost refuse calls without a known price: set prices, or spend_limits.unknown_price`,
    );
  if (settings["guardrails"] != null)
    notes.push(
      `${id}: guardrails need gateway.guardrails.safetyModel and injectionModel in the configuration: BLOCK refuses what no model judges`,
    );
}

function toReceivers(id: string, value: unknown, notes: string[]): unknown {
  if (!Array.isArray(value)) return value;
  return value.map(fieldsOf).map(({ url, headers, authorization, content_type: format }) => {
    const all = Object.entries({ ...fieldsOf(headers), ...(authorization == null ? {} : { authorization }) });
    const open = all.filter(([, text]) => !isHidden(text));
    if (open.length < all.length)
      notes.push(`${id}: otel ${String(url)}: set the headers again, their values cannot be read there`);
    const { authorization: shown, ...rest } = Object.fromEntries(open);
    return {
      url,
      headers: rest,
      ...(shown === undefined ? {} : { authorization: shown }),
      ...(format == null ? {} : { content_type: format }),
    };
  });
}

function toRoute(
  id: string,
  { name, elements: given }: Fields,
  isProvider: (slug: string) => boolean,
  notes: string[],
): ImportedGateway["routes"] {
  const title = `route ${String(name)} of ${id}`;
  const elements = (Array.isArray(given) ? given : []).map(fieldsOf).map(toElement);
  const unknown = new Set<string>();
  try {
    parseGraph(elements, (slug) => {
      if (!isProvider(slug)) unknown.add(slug);
      return true;
    });
  } catch (error) {
    notes.push(`${title} was left out: ${error instanceof Error ? error.message : String(error)}`);
    return [];
  }
  for (const slug of unknown)
    notes.push(`${title} names the provider ${slug}, which must be in providers of the configuration`);
  return [{ name: String(name), elements }];
}

function toElement({ id, type, properties, outputs }: Fields): RouteElement {
  const members = { id, type, properties, outputs };
  return Object.fromEntries(
    Object.entries(members).filter(([, value]) => value != null),
  ) as unknown as RouteElement;
}

function toProvider(given: Fields, notes: string[]): ImportedProvider[] {
  const { slug, name, base_url: url, headers } = given;
  if (typeof slug !== "string" || typeof name !== "string" || typeof url !== "string") {
    notes.push(
      `the custom provider ${String(slug ?? given["id"])} has no slug, name or base_url and was left out`,
    );
    return [];
  }
  const title = `custom provider ${slug}`;
  const others = Object.keys(given).filter((one) => !PROVIDER_IDENTITY.has(one) && !isOff(given[one]));
  if (others.length > 0) notes.push(`${title}: not taken over: ${others.join(", ")}`);
  const wanted = PROVIDER_FIELDS.flatMap((one) => (given[one] == null ? [] : [[one, given[one]]]));
  const sent = toHeaders(title, headers, notes);
  return [
    { slug, name, base_url: url, ...Object.fromEntries(wanted), ...(sent === null ? {} : { headers: sent }) },
  ];
}

/** The text of the headers; null for none. */
function toHeaders(title: string, given: unknown, notes: string[]): string | null {
  if (typeof given !== "string" || given === "") return null;
  let headers: Fields;
  try {
    headers = fieldsOf(JSON.parse(given));
  } catch {
    notes.push(`${title}: its headers are no JSON and were not taken over`);
    return null;
  }
  const open = Object.entries(headers).filter(([, value]) => !isHidden(value));
  if (open.length < Object.keys(headers).length)
    notes.push(`${title}: set its headers again, their values cannot be read there`);
  return open.length === 0 ? null : JSON.stringify(Object.fromEntries(open));
}

/** A stored key is never answered. */
function keyNote(id: string, key: Fields): string {
  const { provider_slug: provider, alias, rate_limit: limit, rate_limit_period: period } = key;
  const options = [
    `--gateway ${id}`,
    ...(typeof alias === "string" && alias !== "" ? [`--alias ${alias}`] : []),
    ...(typeof limit === "number" && limit > 0
      ? [`--rate ${limit}/${typeof period === "number" ? period : 60}`]
      : []),
  ];
  return `${id}: the key of ${String(provider)} cannot be read there: signalbox provider-keys create ${String(provider)} ${options.join(" ")}`;
}

function isOff(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (fieldsOf(value)["enabled"] === false) return true;
  return OFF.includes(value);
}

function isHidden(value: unknown): boolean {
  return typeof value !== "string" || HIDDEN.test(value);
}
