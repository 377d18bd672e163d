/**
 * Entity tags of settings (RFC 9110, section 8.8.3): a client that has read settings, and writes them back changed, sends the tag in
 * `If-Match`. The write is refused if the settings were changed since, so that it cannot undo the other change, such as added credit.
 * The tag is derived from the value and not stored; a change that is undone restores it, which is harmless.
 */
import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { SignalboxError } from "@signalbox/protocol";

/** 132 bits of the hash. */
const TAG_LENGTH = 22;

export function entityTag(value: unknown): string {
  const text = JSON.stringify(value) ?? "";
  return `"${createHash("sha256").update(text).digest("base64url").slice(0, TAG_LENGTH)}"`;
}

/** Throws `changed_meanwhile` if the request has `If-Match` and `present` has another tag. Called where no other write can interleave. */
export function requireMatch({ "if-match": wanted }: IncomingHttpHeaders, present: unknown): void {
  if (wanted === undefined || wanted.trim() === "*") return;
  const tag = entityTag(present);
  // Without quotes as well, as for tags.
  const isPresent = wanted.split(",").some((one) => [tag, tag.slice(1, -1)].includes(one.trim()));
  if (!isPresent) throw new SignalboxError("changed_meanwhile");
}
