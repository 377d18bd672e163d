/**
 * Custom providers: each belongs to an account and is reached as `custom-<slug>`. The database is the source of truth; calls read the
 * copy in memory.
 *
 * A provider whose headers cannot be decrypted (another encryption key) stays listed and refuses calls; the others work.
 */
import { SignalboxError } from "@signalbox/protocol";
import { invalidRequest } from "../../core/invalid-request.ts";
import type { Clock } from "../../core/clock.ts";
import { isPrivateHost } from "../../engines/ip-address/index.ts";
import type { Sealing } from "../../core/sealing.ts";
import { ulid } from "../../core/ulid.ts";
import type { Database, Queryable } from "../../database/database.ts";
import { findToDelete, type SettingsStore, type SharedSettings } from "../../database/shared-settings.ts";
import { sql, sqlList } from "../../core/sql.ts";
import { createProvider, CUSTOM_PREFIX, type Provider, ruleForBase } from "./provider.ts";
import {
  findStored,
  HIDDEN,
  isSameAddress,
  openHeader,
  parseHeaders,
  sealHeader,
  type SecretHeader,
} from "./secret-headers.ts";

export interface CustomProviderDetails {
  readonly name: string;
  readonly base_url: string;
  readonly description: string;
  readonly enable: boolean;
  readonly link: string;
  readonly logo: string;
  readonly position: number;
}

/** The details as a management request states them. */
export interface GivenDetails extends CustomProviderDetails {
  /** Serialised JSON object of headers that are sent with every request. */
  readonly headers: string;
}

export interface CustomProvider {
  readonly id: string;
  readonly accountId: string;
  readonly slug: string;
  readonly details: CustomProviderDetails;
  readonly headers: readonly SecretHeader[];
  readonly createdAt: number;
  readonly modifiedAt: number;
}

export interface CustomProvidersParts {
  readonly database: Database;
  readonly settings: SharedSettings;
  readonly clock: Clock;
  readonly mayBePrivate: boolean;
  readonly sealing: Sealing;
  /** Called at the start for each provider whose headers cannot be decrypted. */
  readonly onUnreadable: (provider: CustomProvider) => void;
}

/** Every process keeps all providers in memory, with a logo of up to 64 KB each. */
const MAX_PROVIDERS_OF_ACCOUNT = 500;
const SLUG = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export class CustomProviders implements SettingsStore {
  readonly #parts: CustomProvidersParts;
  readonly #byId = new Map<string, CustomProvider>();
  /** The enabled providers by account and slug; those with unreadable headers refuse calls. */
  readonly #providers = new Map<string, Provider>();
  /** Base addresses, also of disabled providers: read at each use of a key that is bound to one. */
  readonly #addresses = new Map<string, string>();

  constructor(parts: CustomProvidersParts) {
    this.#parts = parts;
    parts.settings.register("custom_provider", this);
  }

  /** Reads all providers. Headers stored as plain text, or sealed with a former key, are sealed with the current key. */
  async load(): Promise<void> {
    await this.#rewriteOutdated();
    await this.#parts.settings.load("custom_provider");
    for (const provider of this.#byId.values()) {
      if (!isReadable(provider)) this.#parts.onUnreadable(provider);
    }
  }

  async reload(ids: readonly string[] | null): Promise<void> {
    const selected = ids === null ? sql`` : sql`WHERE id IN (${sqlList(ids)})`;
    const rows = await this.#parts.database.all<CustomProviderRow>(
      sql`SELECT * FROM custom_provider ${selected}`,
    );
    for (const id of ids ?? [...this.#byId.keys()]) this.#forget(id);
    for (const row of rows) this.#put(this.#fromRow(row).provider);
  }

  #forget(id: string): void {
    const provider = this.#byId.get(id);
    if (provider === undefined) return;
    this.#byId.delete(id);
    this.#providers.delete(`${provider.accountId}/${provider.slug}`);
    this.#addresses.delete(`${provider.accountId}/${provider.slug}`);
  }

  /** The enabled provider with this slug. */
  findProvider(accountId: string, slug: string): Provider | undefined {
    return this.#providers.get(`${accountId}/${slug}`);
  }

  /** The base address of the provider with this slug. */
  addressOf(accountId: string, slug: string): string | undefined {
    return this.#addresses.get(`${accountId}/${slug}`);
  }

  /** Sorted by position, then by name. */
  list(accountId: string): CustomProvider[] {
    return [...this.#byId.values()]
      .filter((provider) => provider.accountId === accountId)
      .sort((a, b) => a.details.position - b.details.position || (a.details.name < b.details.name ? -1 : 1));
  }

  get(accountId: string, id: string): CustomProvider {
    const found = this.#byId.get(id);
    if (found?.accountId !== accountId) throw missing();
    return found;
  }

  async create(accountId: string, slug: string, given: GivenDetails): Promise<CustomProvider> {
    if (!SLUG.test(slug)) throw invalidRequest("slug must be 1 to 63 lower-case letters, digits and -");
    const { headers: headerText, ...details } = given;
    this.#check(details);
    const now = this.#parts.clock.now();
    const id = ulid(now).toLowerCase();
    const provider: CustomProvider = {
      id,
      accountId,
      slug,
      details,
      headers: this.#toStored({ id, details, headers: [] }, details.base_url, headerText).headers,
      createdAt: now,
      modifiedAt: now,
    };
    await this.#parts.settings.write("custom_provider", async (tx, changed) => {
      const count = await tx.get<{ n: number }>(
        sql`SELECT COUNT(*) AS n FROM custom_provider WHERE account_id = ${accountId}`,
      );
      if (Number(count?.n) >= MAX_PROVIDERS_OF_ACCOUNT)
        throw invalidRequest(`An account has at most ${MAX_PROVIDERS_OF_ACCOUNT} custom providers`);
      if (!(await insert(tx, provider)))
        throw new SignalboxError("conflict", { message: `custom provider ${slug} already exists` });
      changed(id);
    });
    return provider;
  }

  /** `dropped` names the headers whose stored values were removed because the address changed. */
  async update(
    accountId: string,
    id: string,
    { headers: headerText, ...wanted }: Partial<GivenDetails>,
  ): Promise<{ readonly provider: CustomProvider; readonly dropped: readonly string[] }> {
    return this.#parts.settings.write("custom_provider", async (tx, changed) => {
      const row = await tx.get<CustomProviderRow>(
        sql`SELECT * FROM custom_provider WHERE id = ${id} AND account_id = ${accountId}`,
      );
      if (row === undefined) throw missing();
      const before = this.#fromRow(row).provider;
      const details = { ...before.details, ...wanted };
      this.#check(details);
      const { headers, dropped } = this.#toStored(before, details.base_url, headerText);
      const provider = { ...before, details, headers, modifiedAt: this.#parts.clock.now() };
      await tx.run(
        sql`UPDATE custom_provider SET details = ${toStoredText(provider)}, modified_at = ${provider.modifiedAt} WHERE id = ${id}`,
      );
      changed(id);
      return { provider, dropped };
    });
  }

  async delete(accountId: string, id: string): Promise<CustomProvider> {
    const provider = await findToDelete(this.#parts.settings, () => this.get(accountId, id));
    await this.#parts.settings.write("custom_provider", async (tx, changed) => {
      await tx.run(sql`DELETE FROM custom_provider WHERE id = ${id}`);
      changed(id);
    });
    return provider;
  }

  /** The headers after a change to `baseUrl` and `headerText`. Undefined text keeps them, unless the address changes. */
  #toStored(
    before: Pick<CustomProvider, "id" | "details" | "headers">,
    baseUrl: string,
    headerText: string | undefined,
  ): { headers: SecretHeader[]; dropped: string[] } {
    const owner = { providerId: before.id, baseUrl };
    const isSame = isSameAddress(before.details.base_url, baseUrl);
    const wanted =
      headerText === undefined
        ? new Map(before.headers.map(({ name }) => [name, HIDDEN]))
        : parseHeaders(headerText);
    const headers: SecretHeader[] = [];
    const dropped: string[] = [];
    for (const [name, value] of wanted) {
      if (value !== HIDDEN) headers.push(sealHeader(this.#parts.sealing, owner, name, value));
      else {
        const stored = findStored(before.headers, name);
        if (isSame) headers.push(stored);
        else dropped.push(name);
      }
    }
    return { headers, dropped };
  }

  #fromRow(row: CustomProviderRow): { provider: CustomProvider; isUpToDate: boolean } {
    const {
      sealed_headers: sealed = {},
      headers: plain = "",
      ...details
    } = JSON.parse(row.details) as StoredDetails;
    const owner = { providerId: row.id, baseUrl: details.base_url };
    const { sealing } = this.#parts;
    let isUpToDate = plain === "";
    const headers = [...parseHeaders(plain)].map(([name, value]) => sealHeader(sealing, owner, name, value));
    for (const [name, text] of Object.entries(sealed)) {
      const { header, isCurrentKey } = openHeader(sealing, owner, name, text);
      const mustSeal = !isCurrentKey && header.value !== null;
      headers.push(mustSeal ? sealHeader(sealing, owner, name, header.value.reveal()) : header);
      isUpToDate &&= isCurrentKey;
    }
    return {
      provider: {
        id: row.id,
        accountId: row.account_id,
        slug: row.slug,
        details,
        headers,
        createdAt: row.created_at,
        modifiedAt: row.modified_at,
      },
      isUpToDate,
    };
  }

  /**
   * Rewrites all rows of the table if one is outdated: SQLite leaves old copies of a row in unused parts of its pages, and `secure_delete`
   * overwrites only what is deleted. The values stay the same, so no other node needs to read them again.
   */
  async #rewriteOutdated(): Promise<void> {
    const { database, settings } = this.#parts;
    const isOutdated = (row: CustomProviderRow) => !this.#fromRow(row).isUpToDate;
    // Most starts find nothing to write, and then begin no transaction.
    if (!(await readRows(database)).some(isOutdated)) return;
    const isSqlite = database.engine === "sqlite";
    await settings.write("custom_provider", async (tx) => {
      const providers = (await readRows(tx)).map((row) => this.#fromRow(row).provider);
      if (isSqlite) await tx.run(sql`PRAGMA secure_delete = ON`);
      await tx.run(sql`DELETE FROM custom_provider`);
      for (const provider of providers) await insert(tx, provider);
      if (isSqlite) await tx.run(sql`PRAGMA secure_delete = OFF`);
    });
  }

  #put(provider: CustomProvider): void {
    const { accountId, slug, details, headers } = provider;
    this.#byId.set(provider.id, provider);
    this.#addresses.set(`${accountId}/${slug}`, details.base_url);
    this.#providers.delete(`${accountId}/${slug}`);
    if (!details.enable) return;
    const usable = createProvider(
      { slug: CUSTOM_PREFIX + slug, baseUrl: details.base_url, rule: ruleForBase(details.base_url) },
      {
        mayBePrivate: this.#parts.mayBePrivate,
        extraHeaders: headers.flatMap(({ name, value }) => [name, value?.reveal() ?? ""]),
      },
    );
    this.#providers.set(`${accountId}/${slug}`, isReadable(provider) ? usable : refusing(usable));
  }

  #check(details: CustomProviderDetails): void {
    const url = URL.canParse(details.base_url) ? new URL(details.base_url) : null;
    const { mayBePrivate } = this.#parts;
    if (url === null || !(url.protocol === "https:" || (mayBePrivate && url.protocol === "http:"))) {
      throw invalidRequest("base_url must be an https:// address");
    }
    if (url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "") {
      throw invalidRequest("base_url must not hold a query, fragment or credentials");
    }
    // Other names are checked when a connection resolves them.
    if (!mayBePrivate && isPrivateHost(url.hostname))
      throw invalidRequest("base_url must be a public address");
  }
}

function readRows(database: Queryable): Promise<CustomProviderRow[]> {
  return database.all<CustomProviderRow>(sql`SELECT * FROM custom_provider`);
}

/** False when the account already has a provider with this slug. */
async function insert(database: Queryable, provider: CustomProvider): Promise<boolean> {
  const { id, accountId, slug, createdAt, modifiedAt } = provider;
  const { changes } = await database.run(
    sql`INSERT INTO custom_provider (id, account_id, slug, details, created_at, modified_at)
        VALUES (${id}, ${accountId}, ${slug}, ${toStoredText(provider)}, ${createdAt}, ${modifiedAt})
        ON CONFLICT (account_id, slug) DO NOTHING`,
  );
  return changes > 0;
}

function isReadable(provider: CustomProvider): boolean {
  return provider.headers.every(({ value }) => value !== null);
}

/** Without its headers the provider would answer with an error that hides the cause. */
function refusing(provider: Provider): Provider {
  return {
    ...provider,
    locate() {
      throw new SignalboxError("gateway_provider_unreachable", {
        message: `The stored headers of ${provider.slug} cannot be read with the service's encryption key`,
      });
    },
  };
}

function missing(): SignalboxError {
  return new SignalboxError("not_found", { message: "Custom provider not found" });
}

interface CustomProviderRow {
  readonly id: string;
  readonly account_id: string;
  readonly slug: string;
  readonly details: string;
  readonly created_at: number;
  readonly modified_at: number;
}

interface StoredDetails extends CustomProviderDetails {
  readonly sealed_headers?: Readonly<Record<string, string>>;
  /** Serialised plain headers, as versions before sealing stored them. */
  readonly headers?: string;
}

function toStoredText({ details, headers }: CustomProvider): string {
  const stored: StoredDetails = {
    ...details,
    sealed_headers: Object.fromEntries(headers.map(({ name, sealed }) => [name, sealed])),
  };
  return JSON.stringify(stored);
}
