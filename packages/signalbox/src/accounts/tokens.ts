/**
 * Creates, lists and revokes tokens.
 *
 * Invariants:
 * 1. A revoked token is refused from the next request on: it is removed from the index before the database is written.
 * 2. A new token is valid when its text is returned, and is durable: the database is written before the index.
 */
import {
  generateToken,
  isTokenShaped,
  type Permission,
  PERMISSIONS,
  SignalboxError,
  tokenSuffix,
} from "@signalbox/protocol";
import type { Clock } from "../core/clock.ts";
import { repeat, type Repetition } from "../core/repeat.ts";
import { Secret } from "../core/secret.ts";
import { ulid } from "../core/ulid.ts";
import type { Database } from "../database/database.ts";
import type { ResourceEvents } from "../contracts/resource-events.ts";
import { sql, sqlList } from "../core/sql.ts";
import { CredentialEnds } from "./credential-ends.ts";
import type { Principal } from "./principal.ts";
import type { Token } from "./token.ts";
import { requireWithinBounds } from "./token-bounds.ts";
import { hash, timingSafeEqual } from "node:crypto";

/** Interval of writes of the times of last use, which are informative and do not justify a write per request. */
const LAST_USE_FLUSH_MS = 60_000;
const PAGE_SIZE = 100;

export interface NewToken {
  readonly name: string;
  readonly permissions: readonly Permission[];
  readonly gatewayId?: string | null;
  readonly expiresAt?: number | null;
}

export type GatewayExists = (accountId: string, gatewayId: string) => boolean;

export class Tokens {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #events: ResourceEvents;
  readonly #index = new TokenIndex();
  /** Notifies connections and streams when their token or session ends. */
  readonly ends: CredentialEnds;
  readonly #gatewayExists: GatewayExists;
  #flushing: Repetition | undefined;

  /** If `gatewayExists` is omitted, no token can be bound to a gateway. */
  constructor(
    database: Database,
    clock: Clock,
    events: ResourceEvents,
    gatewayExists: GatewayExists = () => false,
  ) {
    this.#database = database;
    this.#clock = clock;
    this.#events = events;
    this.#gatewayExists = gatewayExists;
    this.ends = new CredentialEnds(clock);
  }

  async load(): Promise<void> {
    this.#index.clear();
    for (const row of await this.#database.all<TokenRow>(sql`SELECT * FROM token`))
      this.#index.add(fromRow(row));
  }

  /** Starts the writes of last uses. `onError` receives the error of a failed write; the next one includes its times. */
  start(onError: (error: unknown) => void): void {
    this.#flushing = repeat(LAST_USE_FLUSH_MS, () => this.flushLastUse(), onError);
  }

  async stop(): Promise<void> {
    await this.#flushing?.stop();
    this.ends.close();
    await this.flushLastUse();
  }

  /** Creates a token on behalf of `creator`, within its limits. The text of the token is returned and not stored. */
  async create(
    creator: Principal,
    accountId: string,
    wanted: NewToken,
  ): Promise<{ token: Token; text: Secret }> {
    const now = this.#clock.now();
    const gatewayId = wanted.gatewayId ?? null;
    const expiresAt = wanted.expiresAt ?? null;
    requireWithinBounds(creator, { accountId, permissions: wanted.permissions, gatewayId, expiresAt });
    if (gatewayId !== null && !this.#gatewayExists(accountId, gatewayId)) throw gatewayUnknown(gatewayId);
    if (expiresAt !== null && expiresAt <= now) {
      throw new SignalboxError("invalid_request", { message: "expires_at must be in the future" });
    }
    const text = generateToken();
    const token: Token = {
      id: ulid(now).toLowerCase(),
      accountId,
      name: wanted.name,
      hash: hashToken(text),
      suffix: tokenSuffix(text),
      permissions: new Set(wanted.permissions),
      gatewayId,
      createdAt: now,
      expiresAt,
    };
    await this.#database.run(
      sql`INSERT INTO token (id, account_id, name, hash, suffix, permissions, gateway_id, created_at, expires_at)
          VALUES (${token.id}, ${accountId}, ${token.name}, ${token.hash}, ${token.suffix},
                  ${[...token.permissions].join(" ")}, ${token.gatewayId}, ${now}, ${token.expiresAt})`,
    );
    this.#index.add(token);
    // The gateway or the creator's token may have been deleted during the write; nothing else would revoke the new token.
    if (gatewayId !== null && !this.#gatewayExists(accountId, gatewayId)) {
      await this.revoke(accountId, token.id);
      throw gatewayUnknown(gatewayId);
    }
    if (creator.kind === "token" && !this.isLive(creator.token)) {
      await this.revoke(accountId, token.id);
      throw new SignalboxError("unauthenticated");
    }
    return { token, text: new Secret(text) };
  }

  /** Returns false after the token was revoked or has expired. */
  isLive(token: Token): boolean {
    if (token.expiresAt !== null && token.expiresAt <= this.#clock.now()) return false;
    return this.#index.findById(token.id) !== undefined;
  }

  /** Revokes a token immediately. Returns false if the account has no such token. */
  async revoke(accountId: string, id: string): Promise<boolean> {
    const isKnown = this.find(accountId, id) !== undefined;
    // The index first: if the write fails, the token is refused.
    if (isKnown) this.#remove(id);
    // Also for a token that is not in the index: if an earlier attempt failed here, the token would be valid again after a restart.
    const { changes } = await this.#database.run(
      sql`DELETE FROM token WHERE id = ${id} AND account_id = ${accountId}`,
    );
    if (!isKnown && changes === 0) return false;
    await this.#events.deleted({ accountId, type: "api_token", id });
    return true;
  }

  /** Revokes all tokens of a deleted gateway. */
  async revokeOfGateway(accountId: string, gatewayId: string): Promise<void> {
    const rows = await this.#database.all<{ id: string }>(
      sql`SELECT id FROM token WHERE account_id = ${accountId} AND gateway_id = ${gatewayId}`,
    );
    for (const { id } of rows) await this.revoke(accountId, id);
  }

  #remove(id: string): void {
    this.#index.remove(id);
    this.ends.end(tokenKey(id));
  }

  find(accountId: string, id: string): Token | undefined {
    const token = this.#index.findById(id);
    return token?.accountId === accountId ? token : undefined;
  }

  /** Returns a page of tokens after the id `after`, in order of creation; with `gatewayId` only tokens of that gateway. */
  async list(
    accountId: string,
    after = "",
    gatewayId: string | null = null,
  ): Promise<{ tokens: Token[]; next: string | null }> {
    const bound = gatewayId === null ? sql`` : sql`AND gateway_id = ${gatewayId}`;
    const rows = await this.#database.all<TokenRow>(
      sql`SELECT * FROM token WHERE account_id = ${accountId} AND id > ${after} ${bound} ORDER BY id LIMIT ${PAGE_SIZE + 1}`,
    );
    const tokens = rows.slice(0, PAGE_SIZE).map(fromRow);
    return { tokens, next: rows.length > PAGE_SIZE ? (tokens.at(-1)?.id ?? null) : null };
  }

  /** Returns the times of last use. After a crash, uses of the last flush interval are missing. */
  async readLastUse(ids: readonly string[]): Promise<Map<string, number>> {
    const times = new Map<string, number>();
    if (ids.length === 0) return times;
    const rows = await this.#database.all<{ id: string; last_used_at: number | null }>(
      sql`SELECT id, last_used_at FROM token WHERE id IN (${sqlList(ids)})`,
    );
    for (const row of rows) {
      const time = this.#index.lastUse(row.id) ?? row.last_used_at;
      if (time !== null) times.set(row.id, time);
    }
    return times;
  }

  /** Returns the live token with this text, received on this connection. Called for every request: no I/O. */
  authenticate(text: string, connection: object | null = null): Token | undefined {
    return this.#index.findByText(text, this.#clock.now(), connection);
  }

  async flushLastUse(): Promise<void> {
    const uses = this.#index.takeUses();
    if (uses.length === 0) return;
    try {
      await this.#database.transaction(async (tx) => {
        for (const { id, time } of uses)
          await tx.run(sql`UPDATE token SET last_used_at = ${time} WHERE id = ${id}`);
      });
    } catch (error) {
      this.#index.putBackUses(uses);
      throw error;
    }
  }
}

/** Returns the key under which connections and streams of a token are watched. */
export function tokenKey(id: string): string {
  return `token:${id}`;
}

function gatewayUnknown(id: string): SignalboxError {
  return new SignalboxError("invalid_request", {
    message: `gateway_id: the account has no gateway ${JSON.stringify(id)}`,
  });
}

interface TokenRow {
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  readonly hash: string;
  readonly suffix: string;
  readonly permissions: string;
  readonly gateway_id: string | null;
  readonly created_at: number;
  readonly expires_at: number | null;
}

const KNOWN: ReadonlySet<string> = new Set(PERMISSIONS);

function fromRow(row: TokenRow): Token {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    hash: row.hash,
    suffix: row.suffix,
    permissions: new Set(row.permissions.split(" ").filter((name): name is Permission => KNOWN.has(name))),
    gatewayId: row.gateway_id,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
}

/*
 * All tokens of the installation in memory, by hash. Authentication of a request costs one SHA-256 and one map look-up, without I/O.
 *
 * The key of the map is the SHA-256 of the received text, so the duration of a look-up reveals nothing about stored tokens; the final comparison
 * takes constant time. Text without the form of a token is refused before hashing.
 *
 * If a connection repeats the token it sent last, hashing and look-up are skipped: the text is compared in constant time with the previous one (a
 * proxy may send the requests of many callers over one connection). Revocation and expiry are checked every time. Hashing every
 * time costs 2 % of the CPU time of a JSON call on 32 connections and 4 % on one (gateway benchmark, alternating rounds).
 */

interface Entry {
  readonly token: Token;
  readonly digest: Buffer;
  /** Time of the last use since `takeUses`; 0 if there was none. */
  usedAt: number;
  isRemoved: boolean;
}

export class TokenIndex {
  /** By the bytes of the digest as latin1 text. */
  readonly #byDigest = new Map<string, Entry>();
  readonly #byId = new Map<string, Entry>();
  /** The token that a connection sent last. */
  readonly #lastOf = new WeakMap<object, { readonly text: string; readonly entry: Entry }>();
  #used: Entry[] = [];

  get size(): number {
    return this.#byId.size;
  }

  add(token: Token): void {
    const digest = Buffer.from(token.hash, "hex");
    const entry: Entry = { token, digest, usedAt: 0, isRemoved: false };
    this.#byDigest.set(digest.toString("latin1"), entry);
    this.#byId.set(token.id, entry);
  }

  remove(id: string): void {
    const entry = this.#byId.get(id);
    if (entry === undefined) return;
    entry.isRemoved = true;
    this.#byId.delete(id);
    this.#byDigest.delete(entry.digest.toString("latin1"));
  }

  findById(id: string): Token | undefined {
    return this.#byId.get(id)?.token;
  }

  /** Returns the live token with this text; undefined if it is unknown, revoked, or expired at `now`. */
  findByText(text: string, now: number, connection: object | null = null): Token | undefined {
    const entry = this.#findEntry(text, connection);
    if (entry === undefined) return undefined;
    const { token } = entry;
    if (token.expiresAt !== null && token.expiresAt <= now) return undefined;
    // Only the first use adds the entry to the list; further uses only set the time.
    if (entry.usedAt === 0) this.#used.push(entry);
    entry.usedAt = now;
    return token;
  }

  #findEntry(text: string, connection: object | null): Entry | undefined {
    const last = connection === null ? undefined : this.#lastOf.get(connection);
    if (last !== undefined && !last.entry.isRemoved && isSameText(last.text, text)) return last.entry;
    if (!isTokenShaped(text)) return undefined;
    const digest = hash("sha256", text, "buffer");
    const entry = this.#byDigest.get(digest.toString("latin1"));
    if (entry === undefined || !timingSafeEqual(digest, entry.digest)) return undefined;
    if (connection !== null) this.#lastOf.set(connection, { text, entry });
    return entry;
  }

  /** Returns the time of the last use since `takeUses`, if any. */
  lastUse(id: string): number | undefined {
    return this.#byId.get(id)?.usedAt || undefined;
  }

  /** Returns and clears the last use of each token that was used since the previous call. */
  takeUses(): { id: string; time: number }[] {
    const uses = this.#used.map(({ token, usedAt }) => ({ id: token.id, time: usedAt }));
    for (const entry of this.#used) entry.usedAt = 0;
    this.#used = [];
    return uses;
  }

  /** Restores uses that could not be stored. A later use of a token takes precedence; revoked tokens are ignored. */
  putBackUses(uses: readonly { readonly id: string; readonly time: number }[]): void {
    for (const { id, time } of uses) {
      const entry = this.#byId.get(id);
      if (entry === undefined || entry.usedAt !== 0) continue;
      entry.usedAt = time;
      this.#used.push(entry);
    }
  }

  clear(): void {
    for (const entry of this.#byId.values()) entry.isRemoved = true;
    this.#byDigest.clear();
    this.#byId.clear();
    this.#used = [];
  }
}

/** The duration depends only on the lengths. */
function isSameText(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0;
}

export function hashToken(text: string): string {
  return hash("sha256", text, "hex");
}
