/**
 * Headers that go with every request to a custom provider. Their values may be credentials: they are kept sealed, bound to the address
 * they were given for, and never shown again.
 *
 * Invariants:
 * 1. A stored value goes to the address it was given for and nowhere else: it is sealed for the provider, the header's name and the
 *    address together. Whoever changes the address must bring the values anew, and a row changed in the database does not open.
 * 2. `HIDDEN` in place of a value stands for the stored one, so that what was read can be written back. It never moves a value to
 *    another name.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Sealing } from "../../core/sealing.ts";
import { Secret } from "../../core/secret.ts";

/** What is shown in place of a value. */
export const HIDDEN = "[secret]";

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const FORBIDDEN_HEADERS = new Set([
  "connection",
  "content-length",
  "host",
  "transfer-encoding",
  "upgrade",
  "te",
]);

export interface SecretHeader {
  readonly name: string;
  readonly sealed: string;
  /** Null when none of the keys opens it. */
  readonly value: Secret | null;
}

/** Whose headers they are. */
export interface HeaderOwner {
  readonly providerId: string;
  readonly baseUrl: string;
}

/** The headers of a request body; a value may be `HIDDEN`. */
export function parseHeaders(text: string): Map<string, string> {
  const headers = new Map<string, string>();
  if (text === "") return headers;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid("headers must be a JSON object, serialised");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalid("headers must be a JSON object, serialised");
  }
  for (const [name, header] of Object.entries(value)) {
    if (
      !HEADER_NAME.test(name) ||
      typeof header !== "string" ||
      !HEADER_VALUE.test(header) ||
      FORBIDDEN_HEADERS.has(name.toLowerCase())
    ) {
      throw invalid(`headers.${name.slice(0, 64)} is not a header that can be sent`);
    }
    headers.set(name, header);
  }
  return headers;
}

export function sealHeader(sealing: Sealing, owner: HeaderOwner, name: string, value: string): SecretHeader {
  return { name, sealed: sealing.seal(value, contextOf(owner, name)), value: new Secret(value) };
}

/** The header as it was stored, and whether it was sealed with the key in use. */
export function openHeader(
  sealing: Sealing,
  owner: HeaderOwner,
  name: string,
  sealed: string,
): { readonly header: SecretHeader; readonly isCurrentKey: boolean } {
  const opened = sealing.open(sealed, contextOf(owner, name));
  return {
    header: { name, sealed, value: opened === null ? null : new Secret(opened.text) },
    // What cannot be opened cannot be sealed anew either.
    isCurrentKey: opened?.isCurrentKey ?? true,
  };
}

/** The stored header that `HIDDEN` stands for. */
export function findStored(stored: readonly SecretHeader[], name: string): SecretHeader {
  const found = stored.find((header) => header.name.toLowerCase() === name.toLowerCase());
  if (found !== undefined) return { ...found, name };
  throw invalid(
    `headers.${name.slice(0, 64)}: ${HIDDEN} stands for a stored value, and there is none of this name`,
  );
}

export function isSameAddress(one: string, other: string): boolean {
  return addressOf(one) === addressOf(other);
}

/** With the path: on a host that many share, another path can be another owner. */
function addressOf(baseUrl: string): string {
  return new URL(baseUrl).href.replace(/\/+$/, "");
}

function contextOf(owner: HeaderOwner, name: string): string {
  return JSON.stringify(["custom_provider", owner.providerId, name.toLowerCase(), addressOf(owner.baseUrl)]);
}

function invalid(message: string): SignalboxError {
  return new SignalboxError("invalid_request", { message });
}
