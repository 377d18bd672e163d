/**
 * Encrypts stored provider keys. Each key has a data key of its own; the master key encrypts the data keys, so a new master key means a new
 * encryption of the short data keys only.
 *
 * Account, gateway and id are additional authenticated data of both: a row that was copied to another owner cannot be decrypted.
 * See docs/decisions/0118.
 */
import { randomBytes } from "node:crypto";
import type { MasterKeys } from "../../accounts/index.ts";
import { Sealing } from "../../core/sealing.ts";
import { Secret } from "../../core/secret.ts";

export interface KeyOwner {
  readonly id: string;
  readonly accountId: string;
  readonly gatewayId: string | null;
  /** The address that may receive the key of a custom provider. */
  readonly boundTo: string | null;
}

export interface SealedKey {
  readonly sealed: string;
  /** The data key, encrypted with the master key. */
  readonly dataKey: string;
}

const DATA_KEY_BYTES = 32;

export class KeyVault {
  readonly #masterKeys: MasterKeys;

  constructor(masterKeys: MasterKeys) {
    this.#masterKeys = masterKeys;
  }

  seal(owner: KeyOwner, secret: Secret): SealedKey {
    const dataKey = randomBytes(DATA_KEY_BYTES).toString("base64");
    return {
      sealed: new Sealing(new Secret(dataKey)).seal(secret.reveal(), contextOf("secret", owner)),
      dataKey: this.#masterKeys.sealing().seal(dataKey, contextOf("data key", owner)),
    };
  }

  /** Null if no master key decrypts it, or if the row belongs to another owner. */
  open(owner: KeyOwner, { sealed, dataKey }: SealedKey): Secret | null {
    const key = this.#masterKeys.opening()?.open(dataKey, contextOf("data key", owner)) ?? null;
    if (key === null) return null;
    const opened = new Sealing(new Secret(key.text)).open(sealed, contextOf("secret", owner));
    return opened === null ? null : new Secret(opened.text);
  }

  /** The data key under the first key of `sealing`; null if it cannot be decrypted. */
  rewrap(sealing: Sealing, owner: KeyOwner, dataKey: string): string | null {
    const context = contextOf("data key", owner);
    const opened = sealing.open(dataKey, context);
    if (opened === null) return null;
    return opened.isCurrentKey ? dataKey : sealing.seal(opened.text, context);
  }
}

function contextOf(what: string, { accountId, gatewayId, id, boundTo }: KeyOwner): string {
  return JSON.stringify(["provider key", what, accountId, gatewayId, id, boundTo]);
}
