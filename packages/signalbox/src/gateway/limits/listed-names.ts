/** Under which name a price list has a model that callers name in another way, and what that does to its price. */
import type { ModelPrice } from "@pydantic/genai-prices";

interface ListedName {
  readonly name: string;
  readonly adjust: (rates: ModelPrice) => ModelPrice;
}

/** Google's resource names. */
const RESOURCE = /^(?:publishers\/google\/)?models\//;
/** Amazon's resource names; a profile of an application, an imported or a provisioned model is one that only its owner knows. */
const ARN = /^arn:[^/]+\//;
/** OpenRouter's ways to choose a host: the price is at most that of the model. */
const CHOICE = /:(?:nitro|floor|exacto)$/;
/** OpenRouter's search: five results for each request, at four dollars a thousand. */
const ONLINE = /:online$/;
const ONLINE_REQUESTS_KCOUNT = 20;
/** `ft:gpt-4.1-2025-04-14:organisation:name:id` */
const FINE_TUNED = /^ft:([^:]+)/;

/** What a fine-tuned model costs, of its base; of models that are not named, the usual factor of the smaller ones. */
const FINE_TUNED_FACTORS: readonly (readonly [RegExp, number])[] = [
  [/^gpt-(?:4o|4\.1)(?:-\d|$)/, 1.5],
  [/^gpt-3\.5/, 6],
];
const FINE_TUNED_FACTOR = 2;

const asItIs = (rates: ModelPrice) => rates;

/** Null for a name that is used as it is. `packageId` is that of the price package. */
export function listedNameOf(packageId: string, model: string): ListedName | null {
  if (packageId === "google" && RESOURCE.test(model)) {
    return { name: model.replace(RESOURCE, ""), adjust: asItIs };
  }
  if (packageId === "aws" && ARN.test(model)) return { name: model.replace(ARN, ""), adjust: asItIs };
  if (packageId === "openrouter" && CHOICE.test(model)) {
    return { name: model.replace(CHOICE, ""), adjust: asItIs };
  }
  if (packageId === "openrouter" && ONLINE.test(model)) {
    return { name: model.replace(ONLINE, ""), adjust: withSearches };
  }
  const base = packageId === "openai" ? FINE_TUNED.exec(model)?.[1] : undefined;
  if (base === undefined) return null;
  const factor = FINE_TUNED_FACTORS.find(([models]) => models.test(base))?.[1] ?? FINE_TUNED_FACTOR;
  return { name: base, adjust: (rates) => scaled(rates, factor) };
}

function withSearches(rates: ModelPrice): ModelPrice {
  return { ...rates, requests_kcount: ONLINE_REQUESTS_KCOUNT };
}

/** Only tokens are dearer; searches are not. */
function scaled(rates: ModelPrice, factor: number): ModelPrice {
  const entries = Object.entries(rates).map(([name, value]) => {
    if (!name.endsWith("_mtok") || value === undefined) return [name, value];
    if (typeof value === "number") return [name, value * factor];
    const tiers = value.tiers.map((tier) => ({ ...tier, price: tier.price * factor }));
    return [name, { base: value.base * factor, tiers }];
  });
  return Object.fromEntries(entries) as ModelPrice;
}
