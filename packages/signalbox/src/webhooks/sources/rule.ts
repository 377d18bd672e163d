/** Where a value is found in a verified delivery: `header:<name>`, `body:<path>`, `fixed:<value>`, or a built-in's own way. */
import { asText, textAt } from "./payload-fields.ts";
import type { VerifiedDelivery } from "./source-kind.ts";

export interface Rule {
  /** As the configuration writes it; shown in listings. */
  readonly text: string;
  /** True when the value lies inside what the signature covers. */
  readonly isSigned: boolean;
  find(delivery: VerifiedDelivery): string | null;
}

/** Parses a rule whose shape the configuration schema has checked. */
export function parseRule(text: string): Rule {
  const [kind = "", ...rest] = text.split(":");
  const argument = rest.join(":");
  switch (kind) {
    case "header": {
      const name = argument.toLowerCase();
      return { text, isSigned: false, find: ({ headers }) => asText(headers[name]) };
    }
    case "body":
      return { text, isSigned: true, find: ({ payload }) => textAt(payload, argument) };
    case "fixed":
      return { text, isSigned: true, find: () => argument };
    default:
      throw new Error(`unknown rule ${text}`);
  }
}

export function rules(...texts: readonly string[]): Rule[] {
  return texts.map(parseRule);
}

/** A rule that no path can express; `text` says what it does. */
export function payloadRule(text: string, find: (payload: unknown) => string | null): Rule {
  return { text, isSigned: true, find: ({ payload }) => find(payload) };
}

export function findFirst(candidates: readonly Rule[], delivery: VerifiedDelivery): string | null {
  for (const rule of candidates) {
    const found = rule.find(delivery);
    if (found !== null) return found;
  }
  return null;
}
