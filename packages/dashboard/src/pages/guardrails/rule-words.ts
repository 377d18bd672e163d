/** What the members of guardrails are called on the page. */
import type { GuardrailAction, GuardrailRule } from "@signalbox/client";
import type { Tone } from "../../components/badge.tsx";

export const TYPE_TITLES: Readonly<Record<GuardrailRule["type"], string>> = {
  pii: "Personal data",
  secrets: "Secrets",
  words: "Words",
  regex: "Pattern",
  model: "Model that judges",
  webhook: "Webhook that judges",
};

export const KIND_TITLES: Readonly<Record<string, string>> = {
  email: "E-mail addresses",
  phone: "Phone numbers",
  card: "Card numbers",
  iban: "IBANs",
  national_id: "National ids",
  passport: "Passport numbers",
  ip: "IP and MAC addresses",
  key: "Keys of services",
  private_key: "Private keys",
  entropy: "Passwords and tokens",
};

export const ACTION_TITLES: Readonly<Record<GuardrailAction, string>> = {
  block: "Block",
  mask: "Mask",
  flag: "Flag",
};

export const ACTION_TONES: Readonly<Record<GuardrailAction, Tone>> = {
  block: "bad",
  mask: "accent",
  flag: "warn",
};

/** What a rule looks for, in a few words. */
export function subjectOf(rule: GuardrailRule): string {
  if (rule.type === "regex") return rule.pattern;
  if (rule.type === "words") return shortList(rule.words);
  if (rule.type === "model") return rule.model;
  if (rule.type === "webhook") return rule.url;
  return rule.kinds === undefined
    ? "all kinds"
    : shortList(rule.kinds.map((kind) => KIND_TITLES[kind] ?? kind));
}

export function placesOf({ on = ["prompt", "response"] }: GuardrailRule): string {
  return on.map((place) => (place === "prompt" ? "prompts" : "answers")).join(" and ");
}

const SHOWN = 4;

function shortList(items: readonly string[]): string {
  const more = items.length - SHOWN;
  return `${items.slice(0, SHOWN).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
