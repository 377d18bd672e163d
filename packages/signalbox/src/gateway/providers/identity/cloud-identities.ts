/**
 * The identities of this machine in the clouds whose models it calls, one kept credential for each description.
 *
 * Invariants:
 * 1. Only the operator can describe an identity, in a variable or file that the account was given (`keys/key-grants.ts`). The text of a key that is stored
 *    through the API never comes here.
 * 2. A description is never sent to a provider: without a credential, the call fails.
 */
import { SignalboxError } from "@signalbox/protocol";
import { fetchAwsCredentials } from "./aws-identity.ts";
import { fetchAzureToken } from "./azure-identity.ts";
import { type Cloud, CLOUDS, isIdentity, parseIdentity } from "./cloud-identity.ts";
import { fetchGoogleToken } from "./google-identity.ts";
import { parseJson } from "./ask-server.ts";
import type { SourceParts } from "./identity-source.ts";
import { type Expiring, KeptCredential } from "./kept-credential.ts";

export interface CloudIdentitiesParts extends SourceParts {
  /** Of AWS's token service, if AWS_REGION does not say. */
  readonly region: string | undefined;
}

/** For operators. */
export interface IdentityState {
  readonly source: string;
  /** Milliseconds since 1970; null while there is no credential, and for one that does not expire. */
  readonly expiresAt: number | null;
  /** Why the last request for a credential failed; null after a success. */
  readonly error: string | null;
}

type Headers = readonly string[];

export class CloudIdentities {
  readonly #parts: CloudIdentitiesParts;
  /** By cloud and description, which only operators write. */
  readonly #known = new Map<string, KeyIdentity>();

  constructor(parts: CloudIdentitiesParts) {
    this.#parts = parts;
  }

  /** The identity that the text of an operator's variable or file describes; null for a key. */
  find(providerSlug: string, text: string): KeyIdentity | null {
    if (!text.startsWith("{") || !Object.hasOwn(CLOUDS, providerSlug)) return null;
    const name = `${providerSlug} ${text}`;
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    if (!isIdentity(text)) return null;
    const fetch = () => this.#fetch(CLOUDS[providerSlug as keyof typeof CLOUDS], text);
    const identity = new KeyIdentity(
      providerSlug,
      sourceOf(text),
      new KeptCredential(fetch, this.#parts.clock),
    );
    this.#known.set(name, identity);
    return identity;
  }

  /** The headers that carry a new credential. */
  async #fetch(cloud: Cloud, text: string): Promise<Expiring<Headers>> {
    if (cloud === "aws") {
      const { value, expiresAt } = await fetchAwsCredentials(this.#parts, parseIdentity(cloud, text));
      // As the JSON text of a stored access key, which the signer replaces with a signature.
      return { value: bearer(JSON.stringify(value)), expiresAt };
    }
    const { value, expiresAt } =
      cloud === "google"
        ? await fetchGoogleToken(this.#parts, parseIdentity(cloud, text))
        : await fetchAzureToken(this.#parts, parseIdentity(cloud, text));
    return { value: bearer(value), expiresAt };
  }
}

export class KeyIdentity {
  readonly #providerSlug: string;
  readonly #source: string;
  readonly #credential: KeptCredential<Headers>;

  constructor(providerSlug: string, source: string, credential: KeptCredential<Headers>) {
    this.#providerSlug = providerSlug;
    this.#source = source;
    this.#credential = credential;
  }

  get state(): IdentityState {
    const { expiresAt, error } = this.#credential;
    return { source: this.#source, expiresAt: expiresAt === Infinity ? null : expiresAt, error };
  }

  /** Changes with the credential: a new one has a health of its own. */
  get generation(): string {
    return this.#credential.generation;
  }

  /** The headers that carry the credential; a promise while there is none. It rejects with `gateway_identity_failed`. */
  headers(): Headers | Promise<Headers> {
    const headers = this.#credential.get();
    return headers instanceof Promise ? headers.catch((cause: unknown) => this.#fail(cause)) : headers;
  }

  /** The provider has refused the credential: the next call gets a new one, unless this one is new. */
  refuse(): void {
    this.#credential.refuse();
  }

  #fail(cause: unknown): never {
    const why = cause instanceof Error ? cause.message : "unknown";
    throw new SignalboxError("gateway_identity_failed", {
      message: `The identity ${this.#source} of ${this.#providerSlug} gave no credential: ${why}`,
      cause,
    });
  }
}

function sourceOf(text: string): string {
  const value = parseJson(text) as { readonly identity?: unknown } | undefined;
  return typeof value?.identity === "string" ? value.identity.slice(0, 64) : "unknown";
}

function bearer(text: string): Headers {
  return ["authorization", `Bearer ${text}`];
}
