/**
 * Where the text of a provider key comes from: `env:NAME`, a variable of the service, `file:PATH`, a file, or the database.
 *
 * A tenant must not be able to have another secret of the machine sent to a provider. Therefore a variable must have the name of the provider, and a file
 * must be directly in the folder for secrets (`gateway.secretFolder`) and have such a name (`/run/secrets/openai_api_key`); of these an account
 * may use those that the operator granted (`keys/key-grants.ts`).
 *
 * A file is read again when its time, size or inode has changed, which is looked at once a second at most.
 */
import { readFileSync, statSync } from "node:fs";
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import { Secret } from "../../core/secret.ts";

const ENV = "env:";
const FILE = "file:";
const CHECK_MS = 1000;
const MAX_FILE_BYTES = 16 * 1024;
/** What can be sent in a header without changing its structure. */
export const SECRET_TEXT = /^[\x21-\x7e](?:[\x20-\x7e]{0,8190}[\x21-\x7e])?$/;

/** `google-ai-studio` → `GOOGLE_AI_STUDIO_API_KEY`. */
export function envPrefix(providerSlug: string): string {
  return `${providerSlug.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}_API_KEY`;
}

/** The secret id with its scheme. Throws `invalid_request` for a name that does not belong to the provider. */
export function checkSecretId(text: string, providerSlug: string, secretFolder: string): string {
  const prefix = envPrefix(providerSlug);
  if (text.startsWith(FILE)) {
    const path = text.slice(FILE.length);
    const name = path.startsWith(`${secretFolder}/`) ? path.slice(secretFolder.length + 1) : "";
    if (!/^[\w.-]+$/.test(name) || !isOf(prefix, name.toUpperCase().replaceAll(/[.-]/g, "_"))) {
      throw new SignalboxError("invalid_request", {
        message: `secret_id: a file must be directly in ${secretFolder}, and its name must be ${prefix.toLowerCase()} or begin with ${prefix.toLowerCase()}_`,
      });
    }
    return text;
  }
  const name = text.startsWith(ENV) ? text.slice(ENV.length) : text;
  if (!isOf(prefix, name)) {
    throw new SignalboxError("invalid_request", {
      message: `secret_id must be ${prefix} or begin with ${prefix}_`,
    });
  }
  return ENV + name;
}

/** `OPENAI_API_KEY` itself, or `OPENAI_API_KEY_…`. */
export function isOf(prefix: string, name: string): boolean {
  return name === prefix || name.startsWith(`${prefix}_`);
}

/** The name under which the operator grants the key: that of the variable, or `file:PATH`. */
export function grantName(secretId: string): string {
  return secretId.startsWith(ENV) ? secretId.slice(ENV.length) : secretId;
}

interface WatchedFile {
  checkedAt: number;
  /** Changes with the content. */
  state: string;
  text: Secret | null;
}

export class KeySources {
  readonly #environment: Readonly<Record<string, string | undefined>>;
  readonly #clock: Clock;
  readonly #files = new Map<string, WatchedFile>();

  constructor(environment: Readonly<Record<string, string | undefined>>, clock: Clock) {
    this.#environment = environment;
    this.#clock = clock;
  }

  /** The text of the key, and a text that changes with it; null if there is none. */
  read(secretId: string): { readonly text: string; readonly state: string } | null {
    if (!secretId.startsWith(FILE)) {
      const text = this.#environment[grantName(secretId)];
      return text === undefined || text === "" ? null : { text, state: "" };
    }
    const { text, state } = this.#readFile(secretId.slice(FILE.length));
    return text === null ? null : { text: text.reveal(), state };
  }

  #readFile(path: string): WatchedFile {
    const now = this.#clock.now();
    const known = this.#files.get(path);
    if (known !== undefined && Math.abs(now - known.checkedAt) < CHECK_MS) return known;
    const state = stateOf(path);
    if (known?.state === state) {
      known.checkedAt = now;
      return known;
    }
    const read: WatchedFile = { checkedAt: now, state, text: state === "" ? null : readText(path) };
    this.#files.set(path, read);
    return read;
  }
}

/** Empty if there is no such file. */
function stateOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
  if (stat === undefined || !stat.isFile() || stat.size > MAX_FILE_BYTES) return "";
  return `${stat.mtimeNs} ${stat.ctimeNs} ${stat.size} ${stat.ino}`;
}

function readText(path: string): Secret | null {
  try {
    const text = readFileSync(path, "utf8").trim();
    return SECRET_TEXT.test(text) ? new Secret(text) : null;
  } catch {
    // Removed or not readable: the key has no value until the file changes.
    return null;
  }
}
