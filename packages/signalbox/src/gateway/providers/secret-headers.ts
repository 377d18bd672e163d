/**
 * Headers that are sent with every request to a custom provider. Their values may be credentials: they are stored encrypted, bound to the
 * address they were set for, and never shown.
 *
 * Invariants:
 * 1. A stored value is sent only to the address it was set for: it is sealed with the provider, the header's name and the address as
 *    context. A user who changes the address must set the values again, and a row that was modified in the database cannot be decrypted.
 * 2. `HIDDEN` in place of a value means the stored value of that name, so that a client can send back what it read. It never moves a
 *    value to another name.
 * See docs/decisions/0118.
 */
import { invalidRequest } from "../../core/invalid-request.ts";
import type { Sealing } from "../../core/sealing.ts";
import { Secret } from "../../core/secret.ts";

/** Shown in place of a value. */
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
  /** Null when no key decrypts it. */
  readonly value: Secret | null;
}

/** The provider and address that headers belong to. */
export interface HeaderOwner {
  readonly providerId: string;
  readonly baseUrl: string;
}

/** Parses the headers of a management request; a value may be `HIDDEN`. */
export function parseHeaders(text: string): Map<string, string> {
  const headers = new Map<string, string>();
  if (text === "") return headers;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalidRequest("headers must be a JSON object, serialised");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalidRequest("headers must be a JSON object, serialised");
  }
  for (const [name, header] of Object.entries(value)) {
    if (
      !HEADER_NAME.test(name) ||
      typeof header !== "string" ||
      !HEADER_VALUE.test(header) ||
      FORBIDDEN_HEADERS.has(name.toLowerCase())
    ) {
      throw invalidRequest(`headers.${name.slice(0, 64)} is not a header that can be sent`);
    }
    headers.set(name, header);
  }
  return headers;
}

export function sealHeader(sealing: Sealing, owner: HeaderOwner, name: string, value: string): SecretHeader {
  return { name, sealed: sealing.seal(value, contextOf(owner, name)), value: new Secret(value) };
}

/** The stored header, and whether it was sealed with the current key. */
export function openHeader(
  sealing: Sealing,
  owner: HeaderOwner,
  name: string,
  sealed: string,
): { readonly header: SecretHeader; readonly isCurrentKey: boolean } {
  const opened = sealing.open(sealed, contextOf(owner, name));
  return {
    header: { name, sealed, value: opened === null ? null : new Secret(opened.text) },
    // A value that cannot be decrypted cannot be sealed again either.
    isCurrentKey: opened?.isCurrentKey ?? true,
  };
}

/** The stored header that `HIDDEN` means. */
export function findStored(stored: readonly SecretHeader[], name: string): SecretHeader {
  const found = stored.find((header) => header.name.toLowerCase() === name.toLowerCase());
  if (found !== undefined) return { ...found, name };
  throw invalidRequest(
    `headers.${name.slice(0, 64)}: ${HIDDEN} means the stored value, but no value of this name is stored`,
  );
}

export function isSameAddress(one: string, other: string): boolean {
  return addressOf(one) === addressOf(other);
}

/** Includes the path: on a shared host another path may belong to another owner. */
function addressOf(baseUrl: string): string {
  return new URL(baseUrl).href.replace(/\/+$/, "");
}

function contextOf(owner: HeaderOwner, name: string): string {
  return JSON.stringify(["custom_provider", owner.providerId, name.toLowerCase(), addressOf(owner.baseUrl)]);
}
