/**
 * Values of a verified delivery: fields of its payload, and the rules that say where a value is found. A rule is `header:<name>`,
 * `body:<path>`, `fixed:<value>`, or a function of a built-in source.
 *
 * Only own properties are read: `constructor` and other inherited names are not fields.
 */
import type { IncomingHttpHeaders } from "node:http";
import { SignalboxError } from "@signalbox/protocol";
import { isRounded, parseKeepingDigits } from "../../core/large-integers.ts";

/** A delivery whose signature is valid and whose body was parsed. */
export interface VerifiedDelivery {
  readonly headers: IncomingHttpHeaders;
  /** Parsed JSON, or the fields of a form. */
  readonly payload: unknown;
  /** The text of `payload`; null if it is the fields of a form, which are text. */
  readonly json: string | null;
}

/** The value at `a.b.c`, or undefined. */
export function fieldAt(payload: unknown, path: string): unknown {
  let value = payload;
  for (const key of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

/** Text or a finite number as text; null for everything else, also for the empty text. */
export function textAt(payload: unknown, path: string): string | null {
  return asText(fieldAt(payload, path));
}

export function asText(value: unknown): string | null {
  if (typeof value === "string") return value === "" ? null : value;
  return typeof value === "number" && Number.isFinite(value) ? String(value) : null;
}

/**
 * As `textAt`, for values that identify something: the digits of a large integer are those of the sender's text. The text is parsed again only for a
 * delivery with such an integer.
 */
export function idAt({ payload, json }: VerifiedDelivery, path: string): string | null {
  const value = fieldAt(payload, path);
  return json !== null && typeof value === "number" && isRounded(value)
    ? asText(fieldAt(parseAgain(json), path))
    : asText(value);
}

function parseAgain(json: string): unknown {
  try {
    return parseKeepingDigits(json);
  } catch {
    throw new SignalboxError("webhook_invalid_payload", { message: "The body is nested too deeply" });
  }
}

/** The first path that holds an id. */
export function firstIdAt(delivery: VerifiedDelivery, ...paths: readonly string[]): string | null {
  for (const path of paths) {
    const id = idAt(delivery, path);
    if (id !== null) return id;
  }
  return null;
}

/** The first path that holds text. */
export function firstTextAt(payload: unknown, ...paths: readonly string[]): string | null {
  for (const path of paths) {
    const text = textAt(payload, path);
    if (text !== null) return text;
  }
  return null;
}

export function firstLine(text: string | null): string | null {
  return text === null ? null : (text.split("\n", 1)[0] ?? null);
}

/** Joins the parts that are not empty: `words("Issue", null, "opened")` is `Issue opened`. */
export function words(...parts: readonly (string | null | undefined)[]): string {
  return parts.filter((part) => part != null && part !== "").join(" ");
}

export interface Rule {
  /** The rule as the configuration spells it; shown in listings. */
  readonly text: string;
  /** For entities: true when the value is used only if nothing names the entity. An address may name another one. */
  readonly isGuess: boolean;
  /**
   * For entities: true when texts that differ in case, blanks or Unicode form are different entities. Providers treat ids as exact, but neither names of
   * repositories nor host names.
   */
  readonly isExact: boolean;
  /** True when the field exists but is neither text nor a number. */
  isMisused?(delivery: VerifiedDelivery): boolean;
  find(delivery: VerifiedDelivery): string | null;
}

/** The configuration schema has checked the syntax. */
export function parseRule(text: string): Rule {
  const [kind = "", ...rest] = text.split(":");
  const argument = rest.join(":");
  switch (kind) {
    case "header": {
      const name = argument.toLowerCase();
      return { text, isGuess: false, isExact: false, find: ({ headers }) => asText(headers[name]) };
    }
    case "body":
      return {
        text,
        isGuess: false,
        isExact: true,
        find: (delivery) => idAt(delivery, argument),
        isMisused: ({ payload }) => {
          const value = fieldAt(payload, argument);
          return value != null && value !== "" && asText(value) === null;
        },
      };
    case "fixed":
      // A fixed value applies to events without an entity, so it does not contradict an address.
      return { text, isGuess: true, isExact: false, find: () => argument };
    default:
      throw new Error(`unknown rule ${text}`);
  }
}

export function rules(...texts: readonly string[]): Rule[] {
  return texts.map(parseRule);
}

/** Rules whose value is used only if nothing names the entity. */
export function guesses(...texts: readonly string[]): Rule[] {
  return texts.map((text) => ({ ...parseRule(text), isGuess: true }));
}

/** Rules for entities whose provider ignores case. */
export function foldedRules(...texts: readonly string[]): Rule[] {
  return texts.map((text) => ({ ...parseRule(text), isExact: false }));
}

/** A rule that is a function of the payload; `text` describes it. */
export function payloadRule(text: string, find: Rule["find"]): Rule {
  return { text, isGuess: false, isExact: true, find };
}

export function findFirst(candidates: readonly Rule[], delivery: VerifiedDelivery): string | null {
  for (const rule of candidates) {
    const found = rule.find(delivery);
    if (found !== null) return found;
  }
  return null;
}

/** As `findFirst`, but throws for a field that is neither text nor a number instead of trying the next rule. */
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
