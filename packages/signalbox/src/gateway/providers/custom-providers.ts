/** Providers that an account defines for itself, reached as `custom-<slug>`: the database is the truth, memory is what calls look at. */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import { isPrivateHost } from "../../core/public-host.ts";
import { ulid } from "../../core/ulid.ts";
import type { Database } from "../../storage/ports/database.ts";
import { sql } from "../../storage/ports/sql.ts";
import { createProvider } from "./create-provider.ts";
import type { Provider } from "./provider.ts";
import { CUSTOM_PREFIX, ruleForBase } from "./provider-directory.ts";

export interface CustomProviderDetails {
  readonly name: string;
  readonly base_url: string;
  readonly description: string;
  readonly enable: boolean;
  /** JSON object of headers that go with every request, serialised. */
  readonly headers: string;
  readonly link: string;
  readonly logo: string;
  readonly position: number;
}

export interface CustomProvider {
  readonly id: string;
  readonly accountId: string;
  readonly slug: string;
  readonly details: CustomProviderDetails;
  readonly createdAt: number;
  readonly modifiedAt: number;
}

const SLUG = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const FORBIDDEN_HEADERS = new Set([
  "connection",
  "content-length",
  "host",
  "transfer-encoding",
  "upgrade",
  "te",
]);

export class CustomProviders {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #mayBePrivate: boolean;
  readonly #byId = new Map<string, CustomProvider>();
  readonly #providers = new Map<string, Provider>();

  constructor(database: Database, clock: Clock, mayBePrivate: boolean) {
    this.#database = database;
    this.#clock = clock;
    this.#mayBePrivate = mayBePrivate;
  }

  async load(): Promise<void> {
    const rows = await this.#database.all<CustomProviderRow>(sql`SELECT * FROM custom_provider`);
    for (const row of rows) this.#put(fromRow(row));
  }

  /** For calls: the enabled provider with this slug. */
  findProvider(accountId: string, slug: string): Provider | undefined {
    return this.#providers.get(`${accountId}/${slug}`);
  }

  /** By position, then by name. */
  list(accountId: string): CustomProvider[] {
    return [...this.#byId.values()]
      .filter((provider) => provider.accountId === accountId)
      .sort((a, b) => a.details.position - b.details.position || (a.details.name < b.details.name ? -1 : 1));
  }

  get(accountId: string, id: string): CustomProvider {
    const found = this.#byId.get(id);
    if (found?.accountId !== accountId) {
      throw new SignalboxError("not_found", { message: "Custom provider not found" });
    }
    return found;
  }

  async create(accountId: string, slug: string, details: CustomProviderDetails): Promise<CustomProvider> {
    if (!SLUG.test(slug)) throw invalid("slug must be 1 to 63 lower-case letters, digits and -");
    this.#check(details);
    const now = this.#clock.now();
    const provider: CustomProvider = {
      id: ulid(now).toLowerCase(),
      accountId,
      slug,
      details,
      createdAt: now,
      modifiedAt: now,
    };
    const { changes } = await this.#database.run(
      sql`INSERT INTO custom_provider (id, account_id, slug, details, created_at, modified_at)
          VALUES (${provider.id}, ${accountId}, ${slug}, ${JSON.stringify(details)}, ${now}, ${now})
          ON CONFLICT (account_id, slug) DO NOTHING`,
    );
    if (changes === 0)
      throw new SignalboxError("conflict", { message: `custom provider ${slug} already exists` });
    this.#put(provider);
    return provider;
  }

  async update(
    accountId: string,
    id: string,
    wanted: Partial<CustomProviderDetails>,
  ): Promise<CustomProvider> {
    const before = this.get(accountId, id);
    const details = { ...before.details, ...wanted };
    this.#check(details);
    const after = { ...before, details, modifiedAt: this.#clock.now() };
    await this.#database.run(
      sql`UPDATE custom_provider SET details = ${JSON.stringify(details)}, modified_at = ${after.modifiedAt} WHERE id = ${id}`,
    );
    this.#put(after);
    return after;
  }

  async delete(accountId: string, id: string): Promise<CustomProvider> {
    const provider = this.get(accountId, id);
    this.#byId.delete(id);
    this.#providers.delete(`${accountId}/${provider.slug}`);
    await this.#database.run(sql`DELETE FROM custom_provider WHERE id = ${id}`);
    return provider;
  }

  #put(provider: CustomProvider): void {
    const { accountId, slug, details } = provider;
    this.#byId.set(provider.id, provider);
    this.#providers.delete(`${accountId}/${slug}`);
    if (!details.enable) return;
    this.#providers.set(
      `${accountId}/${slug}`,
      createProvider(
        { slug: CUSTOM_PREFIX + slug, baseUrl: details.base_url, rule: ruleForBase(details.base_url) },
        {
          mayBePrivate: this.#mayBePrivate,
          extraHeaderLines: Object.entries(parseHeaders(details.headers))
            .map(([name, value]) => `${name}: ${value}\r\n`)
            .join(""),
        },
      ),
    );
  }

  #check(details: CustomProviderDetails): void {
    const url = URL.canParse(details.base_url) ? new URL(details.base_url) : null;
    if (url === null || !(url.protocol === "https:" || (this.#mayBePrivate && url.protocol === "http:"))) {
      throw invalid("base_url must be an https:// address");
    }
    if (url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "") {
      throw invalid("base_url must not hold a query, fragment or credentials");
    }
    // Names are judged when they are resolved; an address, or a name that is local by definition, can be judged now.
    if (!this.#mayBePrivate && isPrivateHost(url.hostname)) {
      throw invalid("base_url must be a public address");
    }
    parseHeaders(details.headers);
  }
}

function parseHeaders(text: string): Record<string, string> {
  if (text === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid("headers must be a JSON object, serialised");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalid("headers must be a JSON object, serialised");
  }
  for (const [name, header] of Object.entries(value)) {
    if (
      !HEADER_NAME.test(name) ||
      typeof header !== "string" ||
      !HEADER_VALUE.test(header) ||
      FORBIDDEN_HEADERS.has(name.toLowerCase())
    ) {
      throw invalid(`headers.${name.slice(0, 64)} is not a header that can be sent`);
    }
  }
  return value as Record<string, string>;
}

function invalid(message: string): SignalboxError {
  return new SignalboxError("invalid_request", { message });
}

interface CustomProviderRow {
  readonly id: string;
  readonly account_id: string;
  readonly slug: string;
  readonly details: string;
  readonly created_at: number;
  readonly modified_at: number;
}

function fromRow(row: CustomProviderRow): CustomProvider {
  return {
    id: row.id,
    accountId: row.account_id,
    slug: row.slug,
    details: JSON.parse(row.details) as CustomProviderDetails,
    createdAt: row.created_at,
    modifiedAt: row.modified_at,
  };
}
