/** From a verified body to its payload: JSON, or a form for the sources that send one. */
import { isUtf8 } from "node:buffer";
import { SignalboxError } from "@signalbox/protocol";
import type { SourceKind } from "./sources/index.ts";

const FORM = "application/x-www-form-urlencoded";
const JSON_TYPE = /^(application\/([\w.+-]+\+)?json|text\/json|text\/plain)$/;

export function parsePayload(kind: SourceKind, contentType: string | undefined, body: Buffer): unknown {
  if (contentType === "application/json") return parseJson(body);
  const type = contentType?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (type === FORM && kind.takesForms === true) return parseForm(kind, body);
  // `curl -d` says form for whatever it posts, and some senders say nothing: the body itself decides then.
  if (type === "" || type === FORM || JSON_TYPE.test(type)) return parseJson(body);
  throw new SignalboxError("webhook_unsupported_media_type");
}

function parseJson(body: Buffer): unknown {
  if (!isUtf8(body)) throw invalid("The body is not valid UTF-8");
  let payload: unknown;
  try {
    payload = JSON.parse(body.toString());
  } catch {
    throw invalid("The body is not valid JSON");
  }
  if (!isEventLike(payload)) throw invalid("The body must be a JSON object, or a list of objects");
  return payload;
}

/** An event, or a batch of them as some senders post it: one object, or at least one in a list of nothing else. */
function isEventLike(payload: unknown): boolean {
  return Array.isArray(payload) ? payload.length > 0 && payload.every(isObject) : isObject(payload);
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parseForm(kind: SourceKind, body: Buffer): unknown {
  if (!isUtf8(body)) throw invalid("The body is not valid UTF-8");
  const fields: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>;
  for (const [name, value] of new URLSearchParams(body.toString())) {
    const present = fields[name];
    if (present === undefined) fields[name] = value;
    else if (Array.isArray(present)) present.push(value);
    else fields[name] = [present, value];
  }
  if (Object.keys(fields).length === 0) throw invalid("The form is empty");
  const inner = kind.formPayloadField === undefined ? undefined : fields[kind.formPayloadField];
  return typeof inner === "string" ? requireWritable(parseJson(Buffer.from(inner))) : { ...fields };
}

/** A form's payload is stored as JSON of our own, and what could be read can be nested too deeply to be written. */
function requireWritable(payload: unknown): unknown {
  try {
    JSON.stringify(payload);
    return payload;
  } catch {
    throw invalid("The payload is nested too deeply");
  }
}

function invalid(message: string): SignalboxError {
  return new SignalboxError("webhook_invalid_payload", { message });
}
