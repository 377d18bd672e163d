/**
 * What a service tier, a speed or a place does to the price of a token. The price package has no prices of tiers; these are the factors that the
 * providers publish. Where the factor depends on the model, the table has the larger one, or the models.
 */
import type { Fields } from "../../core/fields.ts";
import { readTier } from "../../engines/relay/index.ts";

interface Tier {
  /** As `readTier` names it. */
  readonly name: string;
  readonly factor: number;
  /** Other models have the factor of the next entry with this name. */
  readonly models?: RegExp;
}

const CHEAPER: readonly Tier[] = [
  { name: "flex", factor: 0.5 },
  { name: "batch", factor: 0.5 },
];
/** A priority tier costs 1.7 to 2 times the usual price. */
const PRIORITY: Tier = { name: "priority", factor: 2 };

const TIERS: Readonly<Record<string, readonly Tier[]>> = {
  // `fast` is the later name of `priority`.
  openai: [...CHEAPER, PRIORITY, { name: "fast", factor: 2 }, { name: "ultrafast", factor: 6 }],
  "azure-openai": [...CHEAPER.slice(1), PRIORITY],
  // The priority tier of Anthropic is paid in advance.
  anthropic: [
    ...CHEAPER.slice(1),
    { name: "priority", factor: 1 },
    { name: "speed:fast", factor: 6, models: /opus-4-[67]/ },
    { name: "speed:fast", factor: 2 },
    { name: "geo:us", factor: 1.1 },
  ],
  "aws-bedrock": [
    ...CHEAPER,
    { name: "priority", factor: 1.75 },
    { name: "latency:optimized", factor: 1.25 },
  ],
  "google-ai-studio": [...CHEAPER, PRIORITY],
  "google-vertex-ai": [...CHEAPER, PRIORITY],
  // Flex has the usual price and fewer promises.
  groq: [...CHEAPER.slice(1), { name: "flex", factor: 1 }],
  mistral: CHEAPER.slice(1),
  together: CHEAPER.slice(1),
  fireworks: CHEAPER.slice(1),
};

/** Of a tier that its provider does not have in the table: the dearest that any provider has, so that a new name does not exceed a limit. */
const UNKNOWN_TIER = 6;
/** Nothing is taken off for a name that promises less, and whose price is not known. */
const UNKNOWN_CHEAPER_TIER = 1;

/** Bedrock's names, in requests that have the body of the model, and in their answers. */
const TIER_HEADERS: ReadonlyMap<string, (value: string) => Fields> = new Map<
  string,
  (value: string) => Fields
>([
  ["x-amzn-bedrock-service-tier", (tier) => ({ service_tier: tier })],
  ["x-amzn-bedrock-performanceconfig-latency", (latency) => ({ performanceConfig: { latency } })],
]);

/** The tier that headers of Bedrock name, as `readTier` names it. */
export function tierInHeaders(headers: readonly string[]): string {
  const fields: Record<string, unknown> = {};
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const read = TIER_HEADERS.get((headers[i] ?? "").toLowerCase());
    if (read !== undefined) Object.assign(fields, read((headers[i + 1] ?? "").trim().toLowerCase()));
  }
  return readTier(fields);
}

type OwnFactors = Readonly<Record<string, number>>;

/** `tier` as `readTier` names it; `own` are factors of the operator. */
export function tierFactor(provider: string, model: string, tier: string, own?: OwnFactors): number {
  if (tier === "") return 1;
  return tier.split("+").reduce((factor, name) => factor * factorOf(provider, model, name, own), 1);
}

function factorOf(provider: string, model: string, name: string, own: OwnFactors | undefined): number {
  const given =
    own === undefined ? undefined : (ownValue(own, name) ?? ownValue(own, FORMER_NAMES.get(name) ?? name));
  if (given !== undefined) return given;
  const tiers = Object.hasOwn(TIERS, provider) ? TIERS[provider] : undefined;
  const known = tiers?.find((tier) => tier.name === name && tier.models?.test(model) !== false);
  if (known !== undefined) return known.factor;
  return CHEAPER.some((tier) => tier.name === name) ? UNKNOWN_CHEAPER_TIER : UNKNOWN_TIER;
}

const FORMER_NAMES: ReadonlyMap<string, string> = new Map([["fast", "priority"]]);

/** The tier as far as it makes a call dearer: a cheaper one is believed when the response names it. */
export function dearerTier(tier: string): string {
  if (tier === "") return tier;
  return tier
    .split("+")
    .filter((name) => name !== "flex" && name !== "batch")
    .join("+");
}

function ownValue(record: OwnFactors, key: string): number | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
