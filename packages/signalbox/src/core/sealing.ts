/**
 * Encrypts secrets that are stored in the database: a copy of the database alone does not reveal them.
 *
 * AES-256-GCM with a key derived from the operator's key text. The context (owner and purpose) is additional authenticated data: a sealed text
 * that is copied to another owner or purpose cannot be decrypted.
 *
 * Format: `v1.<key id>.<base64url of nonce, ciphertext and tag>`.
 */
import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hash,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import type { Secret } from "./secret.ts";

const ALGORITHM = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** HKDF info: separates this use of the key text from others. */
const PURPOSE = "signalbox sealing v1";
const SEALED = /^v1\.([0-9a-f]{16})\.([\w-]+)$/;

interface SealingKey {
  /** Identifies the key without revealing it. */
  readonly id: string;
  /** Not as bytes: with those, the setup of a cipher takes three times as long. */
  readonly key: KeyObject;
}

export class Sealing {
  readonly #keys: readonly [SealingKey, ...SealingKey[]];

  /** The first key encrypts; all keys decrypt. */
  constructor(first: Secret, ...older: readonly Secret[]) {
    this.#keys = [toKey(first), ...older.map(toKey)];
  }

  seal(text: string, context: string): string {
    const [{ id, key }] = this.#keys;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(context));
    const sealed = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
    return `v1.${id}.${sealed.toString("base64url")}`;
  }

  /** A secret of its own for a purpose: the same on all nodes, until the operator's first key is another one. */
  derive(purpose: string): string {
    const [{ key }] = this.#keys;
    const bytes = hkdfSync("sha256", key, "", `signalbox derived secret: ${purpose}`, KEY_BYTES);
    return Buffer.from(bytes).toString("base64");
  }

  /** Decrypts. Returns null if no key matches, the context differs, or the text is malformed. */
  open(sealed: string, context: string): { readonly text: string; readonly isCurrentKey: boolean } | null {
    const [, id, body = ""] = SEALED.exec(sealed) ?? [];
    const found = this.#keys.find((candidate) => candidate.id === id);
    if (found === undefined) return null;
    const bytes = Buffer.from(body, "base64url");
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return null;
    const decipher = createDecipheriv(ALGORITHM, found.key, bytes.subarray(0, NONCE_BYTES))
      .setAAD(Buffer.from(context))
      .setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const plain = [decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()];
      return { text: Buffer.concat(plain).toString("utf8"), isCurrentKey: found === this.#keys[0] };
    } catch {
      // Authentication failed: another context, or changed bytes.
      return null;
    }
  }
}

function toKey(text: Secret): SealingKey {
  const bytes = Buffer.from(hkdfSync("sha256", text.reveal(), "", PURPOSE, KEY_BYTES));
  return { id: hash("sha256", bytes).slice(0, 16), key: createSecretKey(bytes) };
}
