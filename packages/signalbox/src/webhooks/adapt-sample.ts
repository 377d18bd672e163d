/**
 * Makes the sample of a provider one of the source: with the caller's payload and type, and with the entity where the source's own rules look for it.
 * Rules that are functions cannot be applied backwards; the samples of the kinds that have them fit.
 */
import { parsePayload } from "./read-event.ts";
import type { Source } from "./source.ts";
import { findFirst, type Rule, type Sample } from "./sources/index.ts";

/** `body:a.b` or `header:x`, and nothing after it: the text of a function is a description. */
const PLACE = /^(body|header):(\S+)$/;

/** What the caller asks for. */
interface Wishes {
  readonly entity: string;
  readonly deliveryId: string;
  readonly type?: string | undefined;
  readonly body?: string | undefined;
}

export function adaptSample(
  source: Source,
  sample: Sample,
  { body, type, entity, deliveryId }: Wishes,
): Sample {
  let adapted = body === undefined ? sample : { ...sample, body, contentType: "application/json" };
  if (type !== undefined) adapted = withType(source, adapted, type);
  // A payload of the caller names its entity itself, or the address does.
  if (body !== undefined) return adapted;
  if (find(source, source.entity, adapted) !== entity) adapted = place(adapted, source.entity, entity);
  if (find(source, source.deliveryId, adapted) === null)
    adapted = place(adapted, source.deliveryId, deliveryId);
  return adapted;
}

/** At every place that has a type, since the first one counts and the others should agree; else at the first place. */
function withType(source: Source, sample: Sample, type: string): Sample {
  const present = source.eventType.filter((rule) => find(source, [rule], sample) !== null);
  if (present.length === 0) return place(sample, source.eventType, type);
  return present.reduce((adapted, rule) => place(adapted, [rule], type), sample);
}

function find(source: Source, rules: readonly Rule[], { headers, contentType, body }: Sample): string | null {
  try {
    const parsed = parsePayload(source.kind, contentType, Buffer.from(body));
    return findFirst(rules, { headers: { ...headers }, ...parsed });
  } catch {
    // A payload of the caller that is no event: the intake will say so.
    return null;
  }
}

/** Puts the value where the first rule looks that names a header or a field. */
function place(sample: Sample, rules: readonly Rule[], value: string): Sample {
  const [, kind, where = ""] =
    rules.map(({ text }) => PLACE.exec(text)).find((match) => match !== null) ?? [];
  if (kind === "header") return { ...sample, headers: { ...sample.headers, [where.toLowerCase()]: value } };
  if (kind !== "body") return sample;
  if (sample.contentType !== "application/json") {
    const form = new URLSearchParams(sample.body);
    form.set(where, value);
    return { ...sample, body: form.toString() };
  }
  const payload: unknown = JSON.parse(sample.body);
  if (!isRecord(payload)) return sample;
  setField(payload, where.split("."), value);
  return { ...sample, body: JSON.stringify(payload) };
}

function setField(target: Record<string, unknown>, path: readonly string[], value: string): void {
  const [key = "", ...rest] = path;
  // A field of this name would change the prototype.
  if (key === "__proto__") return;
  if (rest.length === 0) {
    target[key] = value;
    return;
  }
  const inner = Object.hasOwn(target, key) ? target[key] : undefined;
  const next = isRecord(inner) ? inner : {};
  target[key] = next;
  setField(next, rest, value);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
