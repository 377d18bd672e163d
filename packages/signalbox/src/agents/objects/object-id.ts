/**
 * Ids of objects: 64 hexadecimal digits. The first half names the object, the second half proves that the id belongs to the namespace, so that an
 * id of another class, or an invented one, is refused.
 */
import { createHmac, createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import type { ObjectId } from "./object-types.ts";

/** Bytes of each half. */
const HALF = 16;

class Id implements ObjectId {
  readonly name: string | undefined;
  readonly #hex: string;

  constructor(hex: string, name: string | undefined) {
    this.#hex = hex;
    this.name = name;
  }

  get [Symbol.toStringTag](): string {
    return "DurableObjectId";
  }

  toString(): string {
    return this.#hex;
  }

  equals(other: ObjectId): boolean {
    return this.#hex === String(other);
  }
}

/** Makes and checks the ids of one namespace; `key` identifies the namespace. */
export class ObjectIds {
  /** Not as text: with that, each HMAC takes five times as long. */
  readonly #key: KeyObject;
  /** Ids of names that were used lately: hashing costs more than a call. */
  readonly #known = new Map<string, ObjectId>();

  constructor(key: string) {
    this.#key = createSecretKey(key, "utf8");
  }

  fromName(name: string): ObjectId {
    let id = this.#known.get(name);
    if (id === undefined) {
      id = new Id(this.#complete(this.#hash(`name:${name}`)), name);
      if (this.#known.size >= MAX_KNOWN) this.#known.clear();
      this.#known.set(name, id);
    }
    return id;
  }

  unique(): ObjectId {
    return new Id(this.#complete(randomBytes(HALF)), undefined);
  }

  fromString(hex: string): ObjectId {
    const digits = hex.toLowerCase();
    if (!/^[0-9a-f]{64}$/.test(digits))
      throw new TypeError("Invalid Durable Object ID: must be 64 hex digits");
    if (this.#complete(Buffer.from(digits.slice(0, 2 * HALF), "hex")) !== digits)
      throw new TypeError("Durable Object ID is not valid for this namespace.");
    return new Id(digits, undefined);
  }

  /** True for an id of this namespace, as 64 lower-case digits. */
  owns(hex: string): boolean {
    return this.#complete(Buffer.from(hex.slice(0, 2 * HALF), "hex")) === hex;
  }

  #complete(first: Buffer): string {
    return first.toString("hex") + this.#hash(first).toString("hex");
  }

  #hash(value: string | Buffer): Buffer {
    return createHmac("sha256", this.#key).update(value).digest().subarray(0, HALF);
  }
}

const MAX_KNOWN = 10_000;

export function isId(value: unknown): value is ObjectId {
  return value instanceof Id;
}

/** An id that a program chose for a facet, or that an object was created with. */
export function createId(hex: string, name: string | undefined): ObjectId {
  return new Id(hex, name);
}
