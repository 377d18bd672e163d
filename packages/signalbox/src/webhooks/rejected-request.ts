/**
 * What an operator needs to find out why a request was rejected. Nothing of it is verified, and its sender chooses all of it, so that everything is
 * short. Credentials are never kept: of a header that may carry the secret itself, only the length is.
 */
import { isUtf8 } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import type { Source } from "./source.ts";

export interface RejectedRequest {
  readonly address: string | null;
  readonly userAgent: string | null;
  readonly headerNames: readonly string[];
  readonly signature: { readonly header: string; readonly value: string } | null;
  /** Header and algorithm of the source's scheme. */
  readonly expected: string;
  readonly bodyPreview: string | null;
  /** Rejected deliveries of the source since the listed one before this that are not listed. */
  readonly alsoRejected: number;
}

export interface RequestFacts {
  readonly source: Source;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Address of the sender. */
  readonly address: string | null;
}

const MAX_NAMES = 50;
const MAX_NAME = 64;
const MAX_VALUE = 200;
const MAX_PREVIEW_BYTES = 256;
/** Of a signature: enough to compare with that of the sender's log, too little to be of use. */
const SHOWN_SIGNATURE = 16;
/** Names of headers in which senders send signatures, also those of other schemes than the source's. */
const SIGNATURE_NAME = /signature|hmac|digest/;
/** The value of such a header may be the secret. */
const SECRET_NAME = /token|secret|key|auth|password|cookie/;
/** Parts of the names of fields whose values are not shown. */
const SECRET_PART =
  "(?:passw|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential|authorization)";
/** In JSON, in a form, and in JSON that is the field of a form: Slack, for example, sends its verification token in all three. */
const SECRET_FIELDS = [
  new RegExp(`("[^"]*${SECRET_PART}[^"]*"\\s*:\\s*")(?:[^"\\\\]|\\\\.)*`, "gi"),
  new RegExp(`((?:^|[&?\\s])[^=&\\s]*${SECRET_PART}[^=&\\s]*=)[^&\\s"]*`, "gi"),
  new RegExp(`(%22[^%&]*${SECRET_PART}[^%&]*%22(?:%20|\\+)*%3A(?:%20|\\+)*%22)(?:(?!%22)[^&])*`, "gi"),
];
// oxlint-disable-next-line no-control-regex -- the expression matches control characters on purpose
const CONTROL = /[\u0000-\u001f\u007f-\u009f]+/g;

export function describeRejected(
  { source, headers, body, address }: RequestFacts,
  alsoRejected: number,
): RejectedRequest {
  return {
    address,
    userAgent: cleaned(headers["user-agent"], MAX_VALUE),
    headerNames: Object.keys(headers)
      .slice(0, MAX_NAMES)
      .map((name) => name.slice(0, MAX_NAME)),
    signature: findSignature(headers, expectedHeader(source), source.scheme.secretHeader),
    expected: source.scheme.summary,
    bodyPreview: previewOf(body),
    alsoRejected,
  };
}

/** The summary of a scheme begins with its header. */
function expectedHeader(source: Source): string {
  return source.scheme.summary.split(":", 1)[0]?.trim().toLowerCase() ?? "";
}

/** That of the source's scheme, otherwise one of another scheme: a sender with the wrong scheme is a common mistake. */
function findSignature(
  headers: IncomingHttpHeaders,
  expected: string,
  secretHeader: string | undefined,
): RejectedRequest["signature"] {
  const names = Object.keys(headers);
  const name = names.find((one) => one === expected) ?? names.find((one) => SIGNATURE_NAME.test(one));
  if (name === undefined) return null;
  const text = String(headers[name] ?? "");
  const length = `(${text.length} characters)`;
  // At most half of a short one.
  const shown = Math.min(SHOWN_SIGNATURE, Math.floor(text.length / 2));
  const value =
    name === secretHeader || SECRET_NAME.test(name)
      ? length
      : `${cleaned(text.slice(0, shown), shown) ?? ""}… ${length}`;
  return { header: name.slice(0, MAX_NAME), value };
}

/** As a rejected request names it. */
export function shownContentType(headers: IncomingHttpHeaders): string | null {
  return cleaned(headers["content-type"], MAX_VALUE);
}

/** Null for a body that is not text. */
function previewOf(body: Buffer): string | null {
  if (body.length === 0) return null;
  // A character may be cut in two at the end.
  const start = body.subarray(0, MAX_PREVIEW_BYTES);
  const cut = [0, 1, 2, 3]
    .map((bytes) => start.subarray(0, start.length - bytes))
    .find((part) => isUtf8(part));
  if (cut === undefined || cut.length === 0) return null;
  const text = cut.toString("utf8").replaceAll(CONTROL, " ");
  return SECRET_FIELDS.reduce((shown, field) => shown.replaceAll(field, "$1…"), text);
}

function cleaned(text: string | undefined, length: number): string | null {
  return text === undefined || text === "" ? null : text.replaceAll(CONTROL, " ").slice(0, length);
}
