/**
 * Profiles of data in the setting `dlp`: names, and the ids of the hosted original's predefined profiles, which are the same in all accounts there.
 * What a profile finds there and nothing finds here is left out of it (names of persons, drivers' licences).
 */
import type { PII_KINDS } from "../../accounts/index.ts";

/** What a profile means here: kinds of personal data, or all kinds of secrets. */
export type DlpProfile = { readonly pii: readonly (typeof PII_KINDS)[number][] } | "secrets";

const PROFILES: ReadonlyMap<string, DlpProfile> = new Map<string, DlpProfile>([
  ["financial", { pii: ["card", "iban"] }],
  ["identifiers", { pii: ["national_id", "passport"] }],
  ["personal", { pii: ["email", "phone", "ip"] }],
  ["credentials", "secrets"],
  // Financial Information
  ["e91a2360-da51-4fdf-9711-bcdecd462614", { pii: ["card", "iban"] }],
  // Social Security, Insurance, Tax, and Identifier Numbers
  ["d658f520-6ecb-4a34-a725-ba37243c2d28", { pii: ["national_id"] }],
  // Personally Identifiable Information (PII) Record
  ["9111845c-6a77-4c6e-af7e-0d51960b48a4", { pii: ["email", "phone", "passport"] }],
  // Credentials and Secrets
  ["c8932cc4-3312-4152-8041-f3f257122dc4", "secrets"],
]);

/** Predefined there, and nothing that a pattern finds. */
const WITHOUT_PATTERN: ReadonlyMap<string, string> = new Map([
  ["583a2366-b16e-4f5c-90db-494710f4f71c", "Health Information"],
  ["0e1a3432-c838-4b28-b13e-2958047fad7c", "Source Code"],
  ["dcda46d3-5b3c-4a5b-b405-f8d6634503d8", "Unsanitized HAR"],
  ["a0cabf16-7491-4c9a-ac02-f64cabc66394", "AI Prompt: AI Security"],
  ["0ec8551b-e278-45a0-89da-652d1d7dd3e6", "AI Prompt: Customer"],
  ["bdf84737-5046-46c7-8dff-eb792901c278", "AI Prompt: Financial Information"],
  ["8c426a20-34fb-4fdc-afa0-20b0590750dc", "AI Prompt: PII"],
  ["90a1626d-556f-416f-966e-6221219f262d", "AI Prompt: Technical"],
]);

const NAMES = "financial, identifiers, personal, credentials";

export function dlpProfileOf(name: string): DlpProfile | undefined {
  return PROFILES.get(name.toLowerCase());
}

/** What is wrong with a profile; null if it is known. */
export function dlpProfileError(name: string): string | null {
  if (dlpProfileOf(name) !== undefined) return null;
  const theirs = WITHOUT_PATTERN.get(name.toLowerCase());
  if (theirs !== undefined)
    return `"${name}" (${theirs}) is a profile that patterns cannot find here; leave it out, or write a guardrail that asks a judge`;
  return `"${name}" is not known: use ${NAMES} or the id of a predefined profile; for a profile of your own, write guardrails`;
}
