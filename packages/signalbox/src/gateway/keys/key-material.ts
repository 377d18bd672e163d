/**
 * The text of a provider key and the right to use it, checked at each use: a grant that was withdrawn, or a custom provider that has moved to another
 * address, makes the key unusable at once.
 */
import { AllowRules } from "../../accounts/index.ts";
import { grantedReach, type KeyGrants } from "./key-grants.ts";
import type { KeyHealth } from "./key-health.ts";
import type { PoolKey } from "./provider-key-pool.ts";
import { grantName, type KeySources } from "./key-source.ts";
import type { KeyVault } from "./key-vault.ts";
import type { CloudIdentities, KeyIdentity } from "../providers/identity/cloud-identities.ts";
import type { ProviderKey } from "./provider-key.ts";

export interface KeyMaterialParts {
  readonly sources: KeySources;
  readonly grants: KeyGrants;
  readonly identities: CloudIdentities;
  /** The current base address of a custom provider; undefined when it does not exist. */
  readonly customAddress: (accountId: string, providerSlug: string) => string | undefined;
  /** The provider refused a key, or a key cannot be decrypted. */
  readonly onProblem: (key: ProviderKey, problem: "refused" | "unreadable") => void;
}

export class KeyMaterial {
  readonly #parts: KeyMaterialParts;
  readonly #vault: KeyVault;

  constructor(parts: KeyMaterialParts, vault: KeyVault) {
    this.#parts = parts;
    this.#vault = vault;
  }

  toPoolKey(key: ProviderKey, health: KeyHealth): PoolKey {
    const rules = key.models.length === 0 ? null : AllowRules.ofModels(key.models);
    return {
      key,
      health,
      reveal: key.secretId === null ? this.#stored(key) : this.#named(key, key.secretId, health),
      serves: (model) => rules === null || rules.allows(key.providerSlug, model),
    };
  }

  /** True if the account may use the variable or file for the provider. It does not depend on whether the variable or file exists. */
  mayUse({ accountId, providerSlug }: ProviderKey, secretId: string): boolean {
    const reach = grantedReach(this.#parts.grants, { accountId, providerSlug, envName: grantName(secretId) });
    if (reach === null) return false;
    if (reach.to === "anywhere") return true;
    const address = this.#parts.customAddress(accountId, providerSlug);
    return address !== undefined && new URL(address).origin === reach.origin;
  }

  #stored(key: ProviderKey): PoolKey["reveal"] {
    const secret = key.sealed === null ? null : this.#vault.open(key, key.sealed);
    if (secret === null) {
      this.#parts.onProblem(key, "unreadable");
      return () => null;
    }
    if (key.boundTo === null) return () => secret.reveal();
    return () =>
      this.#parts.customAddress(key.accountId, key.providerSlug) === key.boundTo ? secret.reveal() : null;
  }

  #named(key: ProviderKey, secretId: string, health: KeyHealth): PoolKey["reveal"] {
    return () => {
      const read = this.mayUse(key, secretId) ? this.#parts.sources.read(secretId) : null;
      if (read === null) return null;
      health.followText(read.state);
      const identity = this.identityOf(key, read.text);
      if (identity !== null) health.followCredential(identity.generation);
      return read.text;
    };
  }

  /** The cloud identity that the variable or file describes; null for a key, and for every text that was stored through the API. */
  identityOf({ providerSlug, secretId }: ProviderKey, text: string): KeyIdentity | null {
    return secretId === null ? null : this.#parts.identities.find(providerSlug, text);
  }
}
