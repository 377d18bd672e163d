/**
 * Secrets that must be stored: sealed, so that a copy of the database alone gives nothing away.
 *
 * AES-256-GCM with a key derived from a text of the operator's. What a text is sealed for (its context) is authenticated along: a sealed
 * text that is moved elsewhere in the database, to another owner or purpose, does not open.
 *
 * Sealed form: `v1.<key id>.<base64url of nonce, ciphertext and tag>`.
 */
import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from "node:crypto";
import type { Secret } from "./secret.ts";

const ALGORITHM = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Separates this use of the operator's text from any other. */
const PURPOSE = "signalbox sealing v1";
const SEALED = /^v1\.([0-9a-f]{16})\.([\w-]+)$/;

interface SealingKey {
  /** Says which key a text was sealed with, and nothing else about it. */
  readonly id: string;
  readonly bytes: Buffer;
}

export class Sealing {
  readonly #keys: readonly [SealingKey, ...SealingKey[]];

  /** The first key seals; all of them open. */
  constructor(first: Secret, ...older: readonly Secret[]) {
    this.#keys = [toKey(first), ...older.map(toKey)];
  }

  seal(text: string, context: string): string {
    const [key] = this.#keys;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, key.bytes, nonce).setAAD(Buffer.from(context));
    const sealed = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
    return `v1.${key.id}.${sealed.toString("base64url")}`;
  }

  /** Null when no key opens it, or it was sealed for another context, or is not a sealed text at all. */
  open(sealed: string, context: string): { readonly text: string; readonly isCurrentKey: boolean } | null {
    const [, id, body = ""] = SEALED.exec(sealed) ?? [];
    const key = this.#keys.find((candidate) => candidate.id === id);
    if (key === undefined) return null;
    const bytes = Buffer.from(body, "base64url");
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return null;
    const decipher = createDecipheriv(ALGORITHM, key.bytes, bytes.subarray(0, NONCE_BYTES))
      .setAAD(Buffer.from(context))
      .setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const plain = [decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()];
      return { text: Buffer.concat(plain).toString("utf8"), isCurrentKey: key === this.#keys[0] };
    } catch {
      // The tag does not fit: another context, or bytes that were changed. GCM tells no more.
      return null;
    }
  }
}

function toKey(text: Secret): SealingKey {
  const bytes = Buffer.from(hkdfSync("sha256", text.reveal(), "", PURPOSE, KEY_BYTES));
  return { id: hash("sha256", bytes).slice(0, 16), bytes };
}
