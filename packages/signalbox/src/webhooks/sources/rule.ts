/** Where a value is found in a verified delivery: `header:<name>`, `body:<path>`, `fixed:<value>`, or a built-in's own way. */
import { SignalboxError } from "@signalbox/protocol";
import { asText, fieldAt, textAt } from "./payload-fields.ts";
import type { VerifiedDelivery } from "./source-kind.ts";

export interface Rule {
  /** As the configuration writes it; shown in listings. */
  readonly text: string;
  /** True when the value lies inside what the signature covers. */
  readonly isSigned: boolean;
  /**
   * Of a rule for entities: true when the sender does not mean the value as the entity, and it only stands in where nothing else names one.
   * An address that names another entity is right then.
   */
  readonly isGuess: boolean;
  /** True when there is a value in the place, of a type that can be no text. */
  isMisused?(delivery: VerifiedDelivery): boolean;
  find(delivery: VerifiedDelivery): string | null;
}

/** Parses a rule whose shape the configuration schema has checked. */
export function parseRule(text: string): Rule {
  const [kind = "", ...rest] = text.split(":");
  const argument = rest.join(":");
  switch (kind) {
    case "header": {
      const name = argument.toLowerCase();
      return { text, isSigned: false, isGuess: false, find: ({ headers }) => asText(headers[name]) };
    }
    case "body":
      return {
        text,
        isSigned: true,
        isGuess: false,
        find: ({ payload }) => textAt(payload, argument),
        isMisused: ({ payload }) => {
          const value = fieldAt(payload, argument);
          return value != null && value !== "" && asText(value) === null;
        },
      };
    case "fixed":
      // It names whom events without an entity concern, not whom this one does.
      return { text, isSigned: true, isGuess: true, find: () => argument };
    default:
      throw new Error(`unknown rule ${text}`);
  }
}

export function rules(...texts: readonly string[]): Rule[] {
  return texts.map(parseRule);
}

/** Rules that take a value for the entity for want of a better one. */
export function guesses(...texts: readonly string[]): Rule[] {
  return texts.map((text) => ({ ...parseRule(text), isGuess: true }));
}

/** A rule that no path can express; `text` says what it does. */
export function payloadRule(text: string, find: (payload: unknown) => string | null): Rule {
  return { text, isSigned: true, isGuess: false, find: ({ payload }) => find(payload) };
}

export function findFirst(candidates: readonly Rule[], delivery: VerifiedDelivery): string | null {
  for (const rule of candidates) {
    const found = rule.find(delivery);
    if (found !== null) return found;
  }
  return null;
}

/** As `findFirst`, and throws for a value that is there but can be no text: an event must not get another name because of it. */
export function findText(candidates: readonly Rule[], delivery: VerifiedDelivery): string | null {
  for (const rule of candidates) {
    const found = rule.find(delivery);
    if (found !== null) return found;
    if (rule.isMisused?.(delivery) === true) {
      throw new SignalboxError("webhook_invalid_payload", {
        message: `The field ${rule.text.slice("body:".length)} must be text or a number`,
      });
    }
  }
  return null;
}
