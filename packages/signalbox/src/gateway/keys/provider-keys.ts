/**
 * Provider keys that a gateway adds to calls without a credential: stored encrypted (`keys/key-vault.ts`), or named by the variable or file that holds
 * them (`keys/key-source.ts`). A key belongs to one gateway, or to all gateways of its account; the keys of the gateway come first.
 *
 * Invariants:
 * 1. The grant of a variable or file is checked when an entry is written and at each use: an entry whose grant was withdrawn does not work.
 * 2. Responses do not reveal whether a variable or file exists that the account may not use.
 * 3. The text of a stored key leaves this process only in the credential header of a request to its provider. The key of a custom provider is bound to the
 *    address that the provider had when the key was stored.
 * 4. A write reads and decrypts only the keys that it changes, so that the keys of one account cost the others nothing.
 * 5. Writes run one after the other, so that none encrypts with a master key that a rotation is about to remove.
 * See docs/decisions/0118 and 0119.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { MasterKeys } from "../../accounts/index.ts";
import type { Clock } from "../../core/clock.ts";
import { invalidRequest } from "../../core/invalid-request.ts";
import type { Secret } from "../../core/secret.ts";
import { Serial } from "../../core/serial.ts";
import { sql, sqlList, type SqlQuery } from "../../core/sql.ts";
import { ulid } from "../../core/ulid.ts";
import type { Database, Queryable } from "../../database/database.ts";
import {
  ALL_KEYS,
  findToDelete,
  type SettingsStore,
  type SharedSettings,
} from "../../database/shared-settings.ts";
import { KeyHealth, type KeyOutcome } from "./key-health.ts";
import type { KeyRates } from "./key-rates.ts";
import { ProviderKeyPool, type PoolKey } from "./provider-key-pool.ts";
import { KeyMaterial, type KeyMaterialParts } from "./key-material.ts";
import { checkSecretId, envPrefix, grantName } from "./key-source.ts";
import { KeyVault } from "./key-vault.ts";
import { fromRow, type ProviderKey, type ProviderKeyRow, putKey } from "./provider-key.ts";
import { StoredHealth } from "./stored-health.ts";
import type { KeyIdentity } from "../providers/identity/cloud-identities.ts";
import { CUSTOM_PREFIX, type Provider } from "../providers/provider.ts";
import type { Gateway } from "../settings/gateway.ts";

export interface ProviderKeysParts extends KeyMaterialParts {
  readonly database: Database;
  readonly settings: SharedSettings;
  readonly clock: Clock;
  readonly masterKeys: MasterKeys;
  /** The folder whose files keys may name. */
  readonly secretFolder: string;
  readonly onError: (error: unknown) => void;
}

/** The owner of keys: a gateway, or with `gatewayId: null` the account. */
export interface KeyScope {
  readonly accountId: string;
  readonly gatewayId: string | null;
}

/** What a request sets; omitted members keep their values or get the default. */
export interface KeyChange {
  readonly alias?: string | undefined;
  readonly isDefault?: boolean | undefined;
  readonly secret?: Secret | undefined;
  readonly secretId?: string | undefined;
  readonly weight?: number | undefined;
  readonly models?: readonly string[] | undefined;
  readonly rateLimit?: number | null | undefined;
  readonly rateLimitPeriodS?: number | undefined;
  readonly isDisabled?: boolean | undefined;
}

/** The keys of one provider in one scope. */
interface Keys {
  readonly all: readonly PoolKey[];
  readonly pool: readonly PoolKey[];
}

const PREVIEW_LENGTH = 4;
const DEFAULT_WEIGHT = 1;
/** Every process keeps all keys in memory, and a call looks at all keys of a pool. */
const MAX_KEYS_OF_ACCOUNT = 1000;

export class ProviderKeys implements SettingsStore {
  readonly #parts: ProviderKeysParts;
  readonly #vault: KeyVault;
  readonly #material: KeyMaterial;
  readonly #byId = new Map<string, PoolKey>();
  /** By account, gateway and provider. */
  readonly #byProvider = new Map<string, Keys>();
  readonly #healthById = new Map<string, KeyHealth>();
  readonly #storedHealth: StoredHealth;
  #rates: KeyRates | null = null;
  readonly #writes = new Serial();

  constructor(parts: ProviderKeysParts) {
    this.#parts = parts;
    this.#vault = new KeyVault(parts.masterKeys);
    this.#material = new KeyMaterial(parts, this.#vault);
    this.#storedHealth = new StoredHealth(parts);
    parts.settings.register("provider_key", this);
  }

  /** Nodes share the rate limits of keys. Called before the first call. */
  shareRates(rates: KeyRates): void {
    this.#rates = rates;
  }

  load(): Promise<void> {
    return this.#parts.settings.load("provider_key");
  }

  /** An edited key is a new one for its health. */
  async reload(ids: readonly string[] | null): Promise<void> {
    const selected = ids === null ? sql`` : sql`WHERE id IN (${sqlList(ids)})`;
    const rows = await this.#parts.database.all<ProviderKeyRow>(
      sql`SELECT * FROM stored_provider_key ${selected} ORDER BY id`,
    );
    const read = new Map(rows.map((row) => [row.id, fromRow(row)]));
    /** Names of the lists that have to be made again. */
    const changed = new Set<string>();
    for (const { key } of ids === null
      ? [...this.#byId.values()]
      : ids.flatMap((id) => this.#byId.get(id) ?? [])) {
      this.#byId.delete(key.id);
      if (read.get(key.id)?.modifiedAt !== key.modifiedAt) this.#healthById.delete(key.id);
      changed.add(listOf(key));
    }
    const added = [...read.values()].map((key) => this.#toPoolKey(key));
    for (const found of added) {
      this.#byId.set(found.key.id, found);
      changed.add(listOf(found.key));
    }
    const kept = [...changed].flatMap((name) => this.#byProvider.get(name)?.all ?? []);
    const all = [...kept.filter((found) => this.#byId.get(found.key.id) === found), ...added];
    for (const name of changed) this.#byProvider.delete(name);
    for (const [name, list] of Map.groupBy(all, ({ key }) => listOf(key))) {
      list.sort(byId);
      this.#byProvider.set(name, {
        all: list,
        pool: list.filter(({ key }) => key.alias === "" || key.isDefault),
      });
    }
  }

  start(): void {
    this.#storedHealth.start();
  }

  stop(): Promise<void> {
    return this.#storedHealth.stop();
  }

  list({ accountId, gatewayId }: KeyScope): PoolKey[] {
    return [...this.#byId.values()]
      .filter(({ key }) => key.accountId === accountId && key.gatewayId === gatewayId)
      .sort(byId);
  }

  /**
   * The keys for a call: that of the alias, else the pool of the provider; null if there is none. Throws `gateway_unknown_key_alias` for an
   * unknown alias.
   */
  poolFor(gateway: Gateway, provider: Provider, alias: string | undefined): ProviderKeyPool | null {
    const { accountId } = gateway;
    const own = this.#byProvider.get(nameOf(accountId, gateway.id, provider.slug));
    const shared = this.#byProvider.get(nameOf(accountId, null, provider.slug));
    if (alias !== undefined) {
      const all = [...(own?.all ?? []), ...(shared?.all ?? [])].filter(({ key }) => key.alias !== "");
      const found = all.find(({ key }) => key.alias === alias);
      if (found === undefined) throw unknownAlias(provider.slug, all);
      return this.#toPool(gateway, provider, [found], found.key.id);
    }
    const keys = own !== undefined && own.pool.length > 0 ? own.pool : (shared?.pool ?? []);
    return keys.length === 0 ? null : this.#toPool(gateway, provider, keys, "pool");
  }

  async create(scope: KeyScope, providerSlug: string, wanted: KeyChange): Promise<PoolKey> {
    return this.#writes.run(async () => {
      const now = this.#parts.clock.now();
      const blank: ProviderKey = {
        id: ulid(now).toLowerCase(),
        accountId: scope.accountId,
        gatewayId: scope.gatewayId,
        providerSlug,
        alias: "",
        isDefault: false,
        secretId: null,
        sealed: null,
        preview: "",
        boundTo: null,
        weight: DEFAULT_WEIGHT,
        models: [],
        rateLimit: null,
        rateLimitPeriodS: 60,
        isDisabled: false,
        invalidSince: null,
        lastUsedAt: null,
        createdAt: now,
        modifiedAt: now,
      };
      // A key without any source is the variable of the provider.
      const secretId = wanted.secret === undefined ? (wanted.secretId ?? envPrefix(providerSlug)) : undefined;
      return this.#write(scope, sql`${providerSlug}`, async (_, tx) => {
        const count = await tx.get<{ n: number }>(
          sql`SELECT COUNT(*) AS n FROM stored_provider_key WHERE account_id = ${scope.accountId}`,
        );
        if (Number(count?.n) >= MAX_KEYS_OF_ACCOUNT) {
          throw invalidRequest(`An account has at most ${MAX_KEYS_OF_ACCOUNT} provider keys`);
        }
        return { ...this.#changed(blank, { ...wanted, secretId }), lastUsedAt: null };
      });
    });
  }

  /** Changes a key. It counts as active until a provider says otherwise. */
  async update(scope: KeyScope, id: string, wanted: KeyChange): Promise<PoolKey> {
    return this.#writes.run(() =>
      this.#write(scope, sql`(SELECT provider_slug FROM stored_provider_key WHERE id = ${id})`, (stored) => {
        const before = stored.find((key) => key.id === id);
        if (before === undefined) throw keyMissing();
        const key = this.#changed(before, wanted);
        // Every edit has another time, by which its health is told from that before, also if the clock of another node is ahead.
        return { ...key, modifiedAt: Math.max(key.modifiedAt, before.modifiedAt + 1) };
      }),
    );
  }

  async delete(scope: KeyScope, id: string): Promise<PoolKey> {
    return this.#writes.run(async () => {
      const found = await findToDelete(this.#parts.settings, () => this.get(scope, id));
      await this.#parts.settings.write("provider_key", async (tx, changed) => {
        const { changes } = await tx.run(sql`DELETE FROM stored_provider_key WHERE id = ${id}`);
        if (changes === 0) throw keyMissing();
        changed(id);
      });
      return found;
    });
  }

  get(scope: KeyScope, id: string): PoolKey {
    const found = this.#byId.get(id);
    if (found?.key.accountId !== scope.accountId || found.key.gatewayId !== scope.gatewayId)
      throw keyMissing();
    return found;
  }

  /** The cloud identity of a key that is one. */
  identityOf({ key, reveal }: PoolKey): KeyIdentity | null {
    const text = key.secretId === null ? null : reveal();
    return text === null ? null : this.#material.identityOf(key, text);
  }

  /** The gateway was deleted; the database deleted the rows. */
  forget(gateway: Gateway): void {
    for (const { key } of this.list({ accountId: gateway.accountId, gatewayId: gateway.id })) {
      this.#byProvider.delete(listOf(key));
      this.#byId.delete(key.id);
      this.#healthById.delete(key.id);
    }
  }

  /** Encrypts all data keys with a new master key. Old master keys are kept while a data key cannot be decrypted. */
  async rotateMaster(): Promise<{ readonly rotated: number; readonly unreadable: number }> {
    return this.#writes.run(async () => {
      const { sealing, finish } = this.#parts.masterKeys.rotate();
      let rotated = 0;
      let unreadable = 0;
      await this.#parts.settings.write("provider_key", async (tx, changed) => {
        const rows = await tx.all<ProviderKeyRow>(
          sql`SELECT * FROM stored_provider_key WHERE data_key IS NOT NULL ORDER BY id`,
        );
        [rotated, unreadable] = [0, 0];
        for (const row of rows) {
          const dataKey = this.#vault.rewrap(sealing, fromRow(row), row.data_key ?? "");
          if (dataKey === null) unreadable += 1;
          else {
            await tx.run(sql`UPDATE stored_provider_key SET data_key = ${dataKey} WHERE id = ${row.id}`);
            rotated += 1;
          }
        }
        // Nothing changes that concerns the health of a single key.
        if (rotated > 0) changed(ALL_KEYS);
      });
      if (unreadable === 0) finish();
      return { rotated, unreadable };
    });
  }

  /** The key after a change, checked and sealed. */
  #changed(before: ProviderKey, wanted: KeyChange): ProviderKey {
    const alias = wanted.alias ?? before.alias;
    const key: ProviderKey = {
      ...before,
      alias,
      // A key without an alias can be reached through the pool only.
      isDefault: alias === "" || (wanted.isDefault ?? before.isDefault),
      weight: wanted.weight ?? before.weight,
      models: wanted.models ?? before.models,
      rateLimit: wanted.rateLimit === undefined ? before.rateLimit : wanted.rateLimit,
      rateLimitPeriodS: wanted.rateLimitPeriodS ?? before.rateLimitPeriodS,
      isDisabled: wanted.isDisabled ?? before.isDisabled,
      invalidSince: null,
      modifiedAt: this.#parts.clock.now(),
    };
    if (wanted.secret !== undefined) return this.#stored(key, wanted.secret);
    if (wanted.secretId !== undefined) return this.#named(key, wanted.secretId);
    return key;
  }

  #stored(key: ProviderKey, secret: Secret): ProviderKey {
    const { accountId, providerSlug } = key;
    const boundTo = providerSlug.startsWith(CUSTOM_PREFIX)
      ? (this.#parts.customAddress(accountId, providerSlug) ?? "")
      : null;
    const bound = { ...key, boundTo };
    const text = secret.reveal();
    return {
      ...bound,
      secretId: null,
      sealed: this.#vault.seal(bound, secret),
      // The end of a short key would be a large part of it.
      preview: text.length < PREVIEW_LENGTH * 4 ? "" : text.slice(-PREVIEW_LENGTH),
      lastUsedAt: null,
    };
  }

  #named(key: ProviderKey, text: string): ProviderKey {
    const secretId = checkSecretId(text, key.providerSlug, this.#parts.secretFolder);
    if (!this.#material.mayUse(key, secretId)) {
      throw new SignalboxError("invalid_request", {
        message: `secret_id: this account may not use ${grantName(secretId)}; the operator gives variables and files to accounts (gateway.providerKeys)`,
      });
    }
    return { ...key, secretId, sealed: null, preview: "", boundTo: null };
  }

  /** `toKey` gets the keys of the scope and the provider as the database has them: another node may have changed them. */
  async #write(
    scope: KeyScope,
    providerSlug: SqlQuery,
    toKey: (stored: readonly ProviderKey[], tx: Queryable) => ProviderKey | Promise<ProviderKey>,
  ): Promise<PoolKey> {
    const written = await this.#parts.settings.write("provider_key", async (tx, changed) => {
      const rows = await tx.all<ProviderKeyRow>(
        sql`SELECT * FROM stored_provider_key WHERE account_id = ${scope.accountId} AND provider_slug = ${providerSlug}`,
      );
      const stored = rows.map(fromRow).filter(({ gatewayId }) => gatewayId === scope.gatewayId);
      const key = await toKey(stored, tx);
      const { alias } = key;
      const others = stored.filter((other) => other.id !== key.id && other.alias !== "");
      if (alias !== "" && others.some((other) => other.alias === alias)) {
        throw new SignalboxError("conflict", { message: `alias ${alias} already exists` });
      }
      if (key.isDefault && alias !== "") {
        for (const other of others.filter(({ isDefault }) => isDefault)) {
          await tx.run(sql`UPDATE stored_provider_key SET is_default = 0 WHERE id = ${other.id}`);
          changed(other.id);
        }
      }
      await tx.run(putKey(key));
      changed(key.id);
      return key;
    });
    return this.get(scope, written.id);
  }

  #toPoolKey(key: ProviderKey): PoolKey {
    let health = this.#healthById.get(key.id);
    if (health === undefined) {
      health = new KeyHealth(key);
      this.#healthById.set(key.id, health);
    } else health.follow(key);
    return this.#material.toPoolKey(key, health);
  }

  #toPool(gateway: Gateway, provider: Provider, keys: readonly PoolKey[], scope: string): ProviderKeyPool {
    const rates = this.#rates;
    return new ProviderKeyPool({
      keys,
      scope,
      clock: this.#parts.clock,
      takeRate: rates === null ? null : (key, isNow) => rates.take(key, gateway, isNow),
      toHeaders: (key, text) =>
        this.#material.identityOf(key, text)?.headers() ?? [
          provider.credentialHeaders[0] ?? "authorization",
          provider.toCredential(text),
        ],
      onReport: (key, outcome) => this.#onReport(key, outcome),
    });
  }

  #onReport(found: PoolKey, outcome: KeyOutcome): void {
    const { key, health } = found;
    // A report of a call that began before the key was edited.
    if (this.#healthById.get(key.id) !== health) return;
    const now = this.#parts.clock.now();
    const change = health.report(outcome, now);
    if (change === "invalid") this.#parts.onProblem(key, "refused");
    if (outcome.status === 401 || outcome.status === 403) this.identityOf(found)?.refuse();
    this.#storedHealth.store(found, change, outcome, now);
  }
}

function keyMissing(): SignalboxError {
  return new SignalboxError("not_found", { message: "Provider config not found" });
}

function unknownAlias(slug: string, all: readonly PoolKey[]): SignalboxError {
  const known = [...new Set(all.map(({ key }) => key.alias))].join(", ");
  return new SignalboxError("gateway_unknown_key_alias", {
    message: `Unknown stored key alias; configured for ${slug}: ${known === "" ? "none" : known}`,
  });
}

function byId(a: PoolKey, b: PoolKey): number {
  return a.key.id < b.key.id ? -1 : 1;
}

function listOf({ accountId, gatewayId, providerSlug }: ProviderKey): string {
  return nameOf(accountId, gatewayId, providerSlug);
}

function nameOf(accountId: string, gatewayId: string | null, providerSlug: string): string {
  return `${accountId}/${gatewayId ?? ""}/${providerSlug}`;
}
