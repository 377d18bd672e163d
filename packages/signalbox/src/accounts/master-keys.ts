/**
 * The master keys, which encrypt the data keys of stored provider keys: `SIGNALBOX_MASTER_KEY` (or the file that `SIGNALBOX_MASTER_KEY_FILE`
 * names), else a file in the data folder that is created with the first stored key. With PostgreSQL the variable is required: another node has
 * another data folder.
 *
 * The first key encrypts, all decrypt. The file has one key a line, the current one first.
 *
 * Invariants:
 * 1. Whenever the process ends, the file has every key that a row of the database needs: a new key is durable in the file before the first
 *    data key is encrypted with it, and an old key leaves the file after the last data key that needs it is durable under the new one.
 * 2. The file is replaced by a rename, so it is never half written. One that is empty or cut is an error, and never replaced by a new key.
 * See docs/decisions/0118.
 */
import { randomBytes } from "node:crypto";
import { SignalboxError } from "@signalbox/protocol";
import { Sealing } from "../core/sealing.ts";
import { Secret } from "../core/secret.ts";
import { replaceFile } from "../engines/durable-file/index.ts";
import { readSecrets } from "./secret-file.ts";

const KEY_BYTES = 32;

export interface MasterKeyParts {
  /** Current key first; empty if none is set. */
  readonly fromEnvironment: readonly Secret[];
  /** Null if no file may be used. */
  readonly file: string | null;
  /** The file was created, or is in use: a copy of the data folder can then be decrypted. */
  readonly onFile: (file: string) => void;
}

export class MasterKeys {
  readonly #parts: MasterKeyParts;
  #sealing: Sealing | null = null;

  constructor(parts: MasterKeyParts) {
    this.#parts = parts;
  }

  get isInFile(): boolean {
    return this.#parts.fromEnvironment.length === 0;
  }

  /** Decrypts; null if there is no key. */
  opening(): Sealing | null {
    if (this.#sealing === null) {
      const keys = [...this.#parts.fromEnvironment, ...this.#readFile()];
      if (this.isInFile && keys.length > 0) this.#warn();
      this.#sealing = toSealing(keys);
    }
    return this.#sealing;
  }

  /** Encrypts. Creates the file if there is no key; throws `invalid_request` if there may be none. */
  sealing(): Sealing {
    const known = this.opening();
    if (known !== null) return known;
    this.#writeFile([newKey()]);
    this.#sealing = null;
    return this.sealing();
  }

  /**
   * Starts a rotation: the returned sealing encrypts with the new key, and decrypts with all. Without the variable the new key is generated; with it, the
   * operator has put the new key first. `finish` removes the old keys and is called when nothing is encrypted with them.
   */
  rotate(): { readonly sealing: Sealing; readonly finish: () => void } {
    if (!this.isInFile) return { sealing: this.sealing(), finish: () => undefined };
    const key = newKey();
    this.#writeFile([key, ...this.#readFile()]);
    this.#sealing = null;
    return {
      sealing: this.sealing(),
      finish: () => {
        this.#writeFile([key]);
        this.#sealing = null;
      },
    };
  }

  #readFile(): Secret[] {
    const { file } = this.#parts;
    const texts = file === null ? null : readSecrets(file, 2 * KEY_BYTES);
    return (texts ?? []).map((text) => new Secret(text));
  }

  #writeFile(keys: readonly Secret[]): void {
    const { file } = this.#parts;
    if (file === null) {
      throw new SignalboxError("invalid_request", {
        message:
          "secret: with PostgreSQL, keys are stored only if the service has SIGNALBOX_MASTER_KEY (32 bytes in hex or base64); set it, or use secret_id",
      });
    }
    replaceFile(file, keys.map((key) => `${key.reveal()}\n`).join(""));
  }

  #warn(): void {
    if (this.#parts.file !== null) this.#parts.onFile(this.#parts.file);
  }
}

function newKey(): Secret {
  return new Secret(randomBytes(KEY_BYTES).toString("hex"));
}

function toSealing([first, ...older]: readonly Secret[]): Sealing | null {
  return first === undefined ? null : new Sealing(first, ...older);
}
