/** What the gateway reads from a JSON request body. */
import { type Fields, isFields } from "../../core/fields.ts";
import { readMembers, readTier } from "../../engines/relay/index.ts";
import { parseFields } from "./json-body.ts";
import { toModelName } from "./model-name.ts";

export interface BodyFacts {
  readonly model: string | null;
  readonly maxOutputTokens: number | null;
  readonly choices: number;
  readonly tier: string;
  /** `without_usage`: a stream whose caller does not ask for its usage. */
  readonly stream: "none" | "with_usage" | "without_usage";
}

export const NO_FACTS: BodyFacts = {
  model: null,
  maxOutputTokens: null,
  choices: 1,
  tier: "",
  stream: "none",
};

/** Larger bodies (long conversations, images) are scanned: parsing megabytes would delay every other call. */
const PARSE_LIMIT_BYTES = 256 * 1024;
/**
 * Members of all APIs that say how much a request may use. `output`: a limit of each answer; of several the largest counts, because a provider may
 * ignore the others. `choices`: how many answers; `best_of` are written and billed, though one is returned. `nested`: an object that contains
 * such members (Gemini's, Bedrock's, Ollama's).
 */
const COUNTS: ReadonlyMap<string, "output" | "choices" | "nested"> = new Map([
  ["max_completion_tokens", "output"],
  ["max_output_tokens", "output"],
  ["max_tokens", "output"],
  ["maxOutputTokens", "output"],
  ["maxTokens", "output"],
  ["max_tokens_to_sample", "output"],
  ["num_predict", "output"],
  ["n", "choices"],
  ["best_of", "choices"],
  ["candidateCount", "choices"],
  ["num_generations", "choices"],
  ["generationConfig", "nested"],
  ["generation_config", "nested"],
  ["inferenceConfig", "nested"],
  ["options", "nested"],
]);
const WANTED: ReadonlySet<string> = new Set([
  "model",
  "stream",
  "stream_options",
  "service_tier",
  "serviceTier",
  "performanceConfig",
  "speed",
  "inference_geo",
  ...COUNTS.keys(),
]);

/** Throws `gateway_malformed_request` when the body is not a JSON object although `mustBeJson` requires one. */
export function inspectBody(bytes: Buffer, mustBeJson: boolean): BodyFacts {
  if (bytes.length > PARSE_LIMIT_BYTES) return inspectStart(bytes);
  let fields: Fields;
  try {
    fields = parseFields(bytes);
  } catch (error) {
    if (mustBeJson) throw error;
    return NO_FACTS;
  }
  return toFacts(fields);
}

/** Reads the beginning of a JSON object. */
export function inspectStart(bytes: Buffer): BodyFacts {
  return toFacts(Object.fromEntries(readMembers(bytes, WANTED)));
}

export function toFacts(fields: Fields): BodyFacts {
  const { model, stream, stream_options: streamOptions } = fields;
  const { maxOutputTokens, choices } = readCounts(fields);
  const asksForUsage = isFields(streamOptions) && streamOptions["include_usage"] === true;
  return {
    model: toModelName(model),
    maxOutputTokens,
    choices,
    tier: readTier(fields),
    stream: stream !== true ? "none" : asksForUsage ? "with_usage" : "without_usage",
  };
}

const FIELD = "name=";
/** A field of a form: its header, other headers, a blank line and the value. */
const FORM_FIELD = /^name="?(\w+)"?\r?\n(?:[^\r\n]+\r?\n)*\r?\n([^\r\n]{1,256})\r?\n/di;
/** More than the headers and the value of such a field take. */
const MAX_FIELD_BYTES = 1024;
/** More than any API takes. A form with more is not read: to look at each would take long. */
const MAX_FIELDS = 1000;

/**
 * The values that a form (`multipart/form-data`) has for a name. A form may have megabytes of sound: only what follows the names of fields is decoded.
 */
export function formValues(bytes: Buffer, wanted: string): string[] {
  return findFields(bytes, wanted).map(({ value }) => value);
}

/** The form with another value in every field of a name. All other bytes are kept. */
export function editForm(bytes: Buffer, wanted: string, value: string): Buffer {
  const parts: Buffer[] = [];
  let copied = 0;
  for (const { start, end } of findFields(bytes, wanted)) {
    parts.push(bytes.subarray(copied, start), Buffer.from(value));
    copied = end;
  }
  return copied === 0 ? bytes : Buffer.concat([...parts, bytes.subarray(copied)]);
}

interface FormField {
  readonly value: string;
  readonly start: number;
  readonly end: number;
}

function findFields(bytes: Buffer, wanted: string): FormField[] {
  const found: FormField[] = [];
  let fields = 0;
  for (let at = bytes.indexOf(FIELD); at !== -1; at = bytes.indexOf(FIELD, at + 1)) {
    if (++fields > MAX_FIELDS) return [];
    const match = FORM_FIELD.exec(bytes.toString("latin1", at, at + MAX_FIELD_BYTES));
    const [, name, value = ""] = match ?? [];
    const place = match?.indices?.[2];
    if (name?.toLowerCase() !== wanted || value.trim() === "" || place === undefined) continue;
    const start = at + place[0];
    // The end of a file before the field may look like the name of one.
    if (found.at(-1)?.start !== start) found.push({ value: value.trim(), start, end: at + place[1] });
  }
  return found;
}

/** What a form says about its model and the number of answers. */
export function inspectForm(bytes: Buffer): BodyFacts {
  let choices = 1;
  for (const text of formValues(bytes, "n")) {
    const n = Number(text);
    if (Number.isSafeInteger(n) && n > choices) choices = n;
  }
  return { ...NO_FACTS, model: formValues(bytes, "model")[0] ?? null, choices };
}

interface Counts {
  readonly maxOutputTokens: number | null;
  readonly choices: number;
}

/** A body has few members, and counts have many names: the members are looked up among the names, not the names in the body. */
function readCounts(fields: Fields, isNested = false): Counts {
  let maxOutputTokens: number | null = null;
  let choices = 1;
  for (const name in fields) {
    const kind = COUNTS.get(name);
    if (kind === undefined) continue;
    const value = fields[name];
    if (kind === "nested") {
      const inner = !isNested && isFields(value) ? readCounts(value, true) : null;
      maxOutputTokens = larger(maxOutputTokens, inner?.maxOutputTokens ?? null);
      choices = Math.max(choices, inner?.choices ?? 1);
    } else if (typeof value === "number" && value >= 0) {
      // A negative count means "no limit" at some providers.
      if (kind === "output") maxOutputTokens = larger(maxOutputTokens, Math.ceil(value));
      else choices = Math.max(choices, Math.ceil(value));
    }
  }
  return { maxOutputTokens, choices };
}

function larger(a: number | null, b: number | null): number | null {
  return a === null || (b !== null && b > a) ? b : a;
}
