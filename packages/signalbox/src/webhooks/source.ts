/** Sources: the built-in kinds and those of the configuration, with the configuration's changes and the environment's secrets. */
import type { KeyObject } from "node:crypto";
import { ConfigError } from "../config/index.ts";
import type { CustomScheme, WebhooksConfig, WebhookSourceConfig } from "../config/webhook-keys.ts";
import type { ConfiguredRoute } from "../config/webhook-route-keys.ts";
import { objectAgent } from "../contracts/object-agent.ts";
import { Secret } from "../core/secret.ts";
import { AddressRanges } from "../engines/ip-address/index.ts";
import type { EntityForm } from "./entity-names.ts";
import {
  createAddressScheme,
  createApiKeyScheme,
  createBasicScheme,
  createBodyHmacScheme,
  createJwtScheme,
  genericScheme,
  type Scheme,
  timestampedScheme,
} from "./schemes/index.ts";
import { parseRule, type Rule, SOURCE_KINDS, type SourceKind } from "./sources/index.ts";

export interface Source {
  readonly name: string;
  readonly kind: SourceKind;
  readonly scheme: Scheme;
  readonly accountId: string;
  /** Kebab-case name of the agent class, or the name of an object (`objectAgent`). */
  readonly agent: string;
  readonly secretVariable: string;
  /** The active secrets; samples are signed with the first. Without a secret every delivery is refused. */
  readonly secrets: readonly Secret[];
  readonly keys: readonly KeyObject[];
  /** Addresses that may send; null if any may. */
  readonly addresses: Pick<AddressRanges, "includes"> | null;
  /** Replay window; 0 when neither the scheme nor the payload has a signed time. */
  readonly windowMs: number;
  readonly entity: readonly Rule[];
  /** The rules of `entity` whose value must agree with the address. */
  readonly statedEntity: readonly Rule[];
  readonly entityForm: EntityForm;
  readonly eventType: readonly Rule[];
  readonly deliveryId: readonly Rule[];
  /** Routes of the configuration file. */
  readonly routes: readonly ConfiguredRoute[];
  /** True when the items of a list are deliveries of their own. */
  readonly isBatch: boolean;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULTS: WebhookSourceConfig = {
  agent: "webhook-agent",
  entityForm: "plain",
  account: "default",
  timestamped: false,
  routes: [],
  batch: false,
};

/** Throws `ConfigError` for an invalid entry or secret. */
export function createSources(config: WebhooksConfig, environment: Environment): ReadonlyMap<string, Source> {
  const sources = new Map<string, Source>();
  const names = new Set([...SOURCE_KINDS.map((kind) => kind.name), ...Object.keys(config.sources)]);
  for (const name of names)
    sources.set(name, createSource(name, config.sources[name] ?? DEFAULTS, environment));
  return sources;
}

function createSource(name: string, config: WebhookSourceConfig, environment: Environment): Source {
  const { kind, scheme } = timestampedIf(config.timestamped, name, resolveScheme(name, config.scheme));
  const secretVariable = config.secretVariable ?? defaultVariable(name);
  const secrets = readSecrets(environment, secretVariable);
  const ownWindow = (scheme === kind.scheme ? kind.windowSeconds : undefined) ?? scheme.windowSeconds;
  if (config.toleranceSeconds !== undefined && ownWindow === null) {
    throw new ConfigError(
      `webhooks.sources.${name}.toleranceSeconds: expected nothing, since this scheme signs no time, found ${config.toleranceSeconds}`,
    );
  }
  if (scheme.needsNoSecret === true && config.addresses === undefined)
    throw new ConfigError(
      `webhooks.sources.${name}.addresses: expected the addresses of the sender, which are its only proof, found nothing`,
    );
  const entity = entityRules(config, kind);
  const windowSeconds = config.toleranceSeconds ?? ownWindow ?? 0;
  return {
    name,
    kind,
    scheme,
    accountId: config.account,
    agent: config.object === undefined ? config.agent : objectAgent(config.object),
    secretVariable,
    secrets: secrets.map((text) => new Secret(text)),
    keys: secrets.map((text) => toKey(scheme, text, secretVariable)),
    addresses: config.addresses === undefined ? null : new AddressRanges(config.addresses),
    windowMs: windowSeconds * 1000,
    entity,
    statedEntity: entity.filter(({ isGuess }) => !isGuess),
    entityForm: config.entityForm,
    eventType: config.eventType?.map(parseRule) ?? kind.eventType,
    deliveryId: config.deliveryId?.map(parseRule) ?? kind.deliveryId,
    routes: config.routes,
    isBatch: config.batch,
  };
}

/** A configured rule for a field that the kind knows treats its spelling as the kind does. */
function entityRules({ entity, entitySpelling }: WebhookSourceConfig, kind: SourceKind): readonly Rule[] {
  const found =
    entity?.map((text) => {
      const rule = parseRule(text);
      return { ...rule, isExact: kind.entity.find((known) => known.text === text)?.isExact ?? rule.isExact };
    }) ?? kind.entity;
  if (entitySpelling === undefined) return found;
  return found.map((rule) => ({ ...rule, isExact: entitySpelling === "exact" }));
}

function resolveScheme(
  name: string,
  wanted: string | CustomScheme | undefined,
): { kind: SourceKind; scheme: Scheme } {
  const find = (kindName: string) => SOURCE_KINDS.find((kind) => kind.name === kindName);
  if (typeof wanted === "object") {
    const kind = find("generic");
    if (kind !== undefined) return { kind, scheme: createCustomScheme(name, wanted) };
  }
  const kind = find(typeof wanted === "string" ? wanted : name);
  if (kind === undefined) {
    throw new ConfigError(
      `webhooks.sources.${name}.scheme: expected the name of a built-in source or a scheme, found nothing`,
    );
  }
  return { kind, scheme: kind.scheme };
}

function createCustomScheme(name: string, wanted: CustomScheme): Scheme {
  if (!("type" in wanted))
    return createBodyHmacScheme({ ...wanted, name, headers: [wanted.header.toLowerCase()] });
  switch (wanted.type) {
    case "jwt": {
      const header = wanted.header.toLowerCase();
      const prefix = header === "authorization" ? "Bearer " : "";
      const { issuer, audience, bodyHash } = wanted;
      return createJwtScheme({ name, header, prefix, issuer, audience, bodyHash });
    }
    case "basic":
      return createBasicScheme(name);
    case "apiKey":
      return createApiKeyScheme(
        name,
        wanted.header === undefined
          ? { parameter: wanted.parameter ?? "" }
          : { header: wanted.header.toLowerCase(), prefix: wanted.prefix ?? "" },
      );
    case "addresses":
      return createAddressScheme(name);
  }
}

function timestampedIf(
  isTimestamped: boolean,
  name: string,
  found: { kind: SourceKind; scheme: Scheme },
): { kind: SourceKind; scheme: Scheme } {
  if (!isTimestamped) return found;
  if (found.scheme !== genericScheme) {
    throw new ConfigError(
      `webhooks.sources.${name}.timestamped: expected the generic scheme, found ${found.scheme.name}, whose sender defines what is signed`,
    );
  }
  // Only the signed id is used.
  return { kind: { ...found.kind, deliveryId: [parseRule("header:x-event-id")] }, scheme: timestampedScheme };
}

/** `GITHUB_WEBHOOK_SECRET` for `github`; `WEBHOOK_SECRET` for `generic`. */
function defaultVariable(source: string): string {
  return source === "generic"
    ? "WEBHOOK_SECRET"
    : `${source.toUpperCase().replaceAll("-", "_")}_WEBHOOK_SECRET`;
}

/** A comma-separated list. All secrets are accepted; the first is used to sign. */
export function readSecrets(environment: Environment, variable: string): string[] {
  return (environment[variable] ?? "")
    .split(",")
    .map((text) => text.trim())
    .filter((text) => text !== "");
}

function toKey(scheme: Scheme, text: string, variable: string): KeyObject {
  try {
    return scheme.toKey(text);
  } catch (cause) {
    throw new ConfigError(`${variable}: ${cause instanceof Error ? cause.message : "cannot be used"}`, {
      cause,
    });
  }
}
