/**
 * Creates, lists, changes, rotates and revokes tokens.
 *
 * Invariants:
 * 1. A revoked token is refused from the next request on: it is removed from the index before the database is written. On other nodes it is
 *    refused before the revocation is answered.
 * 2. A new token is valid when its text is returned, and is durable: the database is written before the index. The same holds for a change and
 *    for a rotation: until it is durable, the token is as it was.
 * 3. A change is made to the row of the token in one transaction, so two of them do not overwrite each other.
 * 4. The index is written from rows only (`reload`), whichever node changed them: there the connections of an ended token are closed.
 */
import { generateToken, type Permission, SignalboxError, tokenSuffix } from "@signalbox/protocol";
import type { Clock } from "../core/clock.ts";
import { invalidRequest } from "../core/invalid-request.ts";
import { repeat, type Repetition } from "../core/repeat.ts";
import { RowsStatement } from "../core/rows-statement.ts";
import { Secret } from "../core/secret.ts";
import { ulid } from "../core/ulid.ts";
import type { Database } from "../database/database.ts";
import { LocalSettings, type SettingsStore, type SharedSettings } from "../database/shared-settings.ts";
import type { ResourceEvents } from "../contracts/resource-events.ts";
import { sql, sqlList } from "../core/sql.ts";
import { CredentialEnds, type WatchedCredential } from "./credential-ends.ts";
import type { Principal } from "./principal.ts";
import type { Token } from "./token.ts";
import { requireWithinBounds } from "./token-bounds.ts";
import { hashToken, TokenIndex } from "./token-index.ts";
import { policyToText, type TokenPolicy } from "./token-policy.ts";
import { fromRow, insertToken, type TokenRow, updateToken } from "./token-rows.ts";

/** Interval of writes of the times of last use, which are informative and do not justify a write per request. */
const LAST_USE_FLUSH_MS = 60_000;
const PAGE_SIZE = 100;
/** Every process keeps the tokens of all accounts in memory, about a kilobyte each. Nodes that create tokens at the same moment may pass it by a few. */
const MAX_TOKENS_OF_ACCOUNT = 100_000;
const SET_LAST_USE = new RowsStatement(
  "UPDATE token SET last_used_at = CAST(v.column2 AS BIGINT) FROM (VALUES ",
  2,
  ") AS v WHERE id = v.column1 AND (last_used_at IS NULL OR last_used_at < CAST(v.column2 AS BIGINT))",
);

export interface NewToken {
  readonly name: string;
  readonly permissions: readonly Permission[];
  readonly gatewayId?: string | null;
  readonly expiresAt?: number | null;
  readonly policy?: TokenPolicy | null;
  readonly isDisabled?: boolean;
}

/** What a change sets; omitted members keep their values. */
export interface TokenChange {
  readonly name?: string | undefined;
  readonly expiresAt?: number | null | undefined;
  readonly policy?: TokenPolicy | undefined;
  readonly isDisabled?: boolean | undefined;
}

/** Selects tokens of a list. */
export interface TokenFilter {
  readonly gatewayId?: string | null;
  readonly owner?: string | undefined;
}

export type GatewayExists = (accountId: string, gatewayId: string) => boolean;

export class Tokens implements SettingsStore {
  readonly #database: Database;
  readonly clock: Clock;
  readonly #events: ResourceEvents;
  readonly index = new TokenIndex();
  /** Notifies connections and streams when their token or session ends. */
  readonly ends: CredentialEnds;
  readonly #gatewayExists: GatewayExists;
  readonly #settings: SharedSettings;
  /** Revoked here; the row may still exist if the write failed. */
  readonly #revoked = new Set<string>();
  #flushing: Repetition | undefined;

  /** If `gatewayExists` is omitted, no token can be bound to a gateway. */
  constructor(
    database: Database,
    clock: Clock,
    events: ResourceEvents,
    gatewayExists: GatewayExists = () => false,
    settings: SharedSettings = new LocalSettings(database),
  ) {
    this.#database = database;
    this.clock = clock;
    this.#events = events;
    this.#gatewayExists = gatewayExists;
    this.ends = new CredentialEnds(clock);
    this.#settings = settings;
    settings.register("token", this);
  }

  load(): Promise<void> {
    return this.#settings.load("token");
  }

  async reload(ids: readonly string[] | null): Promise<void> {
    const selected = ids === null ? sql`` : sql`WHERE id IN (${sqlList(ids)})`;
    const rows = await this.#database.all<TokenRow>(sql`SELECT * FROM token ${selected}`);
    const found = new Set(rows.map(({ id }) => id));
    for (const id of ids ?? this.index.ids()) if (!found.has(id)) this.#remove(id);
    for (const row of rows) this.#put(fromRow(row));
  }

  /** The row of the token is new or was changed. */
  #put(token: Token): void {
    const { id, hash, previous, isDisabled, expiresAt } = token;
    if (this.#revoked.has(id)) return;
    const before = this.index.findById(id);
    this.index.add(token);
    if (before === undefined) return;
    // A rotation without grace also ends what sessions of the token have opened.
    if (isDisabled || (before.hash !== hash && previous === null)) this.ends.end(tokenKey(id));
    else this.ends.reschedule(tokenKey(id), expiresAt);
    // One with grace ends what the old secret has opened when the grace is over. There may have been two since the row was read.
    for (const former of [before.hash, before.previous?.hash]) {
      if (former === undefined || former === hash) continue;
      if (former === previous?.hash) this.ends.reschedule(secretKey(former), previous.endsAt);
      else this.ends.end(secretKey(former));
    }
  }

  /** The secret that the caller has sent, for watching it; null if it is refused by now. */
  secretOf(token: Token): WatchedCredential | null {
    const sent = token.isByPrevious === true ? token.previous?.hash : token.hash;
    const present = this.index.findById(token.id);
    if (sent === undefined || present === undefined) return null;
    const { hash, previous } = present;
    if (sent === hash) return { key: secretKey(sent), expiresAt: null };
    if (sent !== previous?.hash || previous.endsAt <= this.clock.now()) return null;
    return { key: secretKey(sent), expiresAt: previous.endsAt };
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
    const now = this.clock.now();
    const gatewayId = wanted.gatewayId ?? null;
    const expiresAt = wanted.expiresAt ?? null;
    const policy = withoutEmpty(wanted.policy ?? null);
    requireWithinBounds(creator, {
      accountId,
      permissions: wanted.permissions,
      gatewayId,
      expiresAt,
      policy,
    });
    if (gatewayId !== null && !this.#gatewayExists(accountId, gatewayId)) throw gatewayUnknown(gatewayId);
    requireFuture(expiresAt, now);
    if (this.index.countOf(accountId) >= MAX_TOKENS_OF_ACCOUNT)
      throw invalidRequest(`An account has at most ${MAX_TOKENS_OF_ACCOUNT} tokens`);
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
      isDisabled: wanted.isDisabled ?? false,
      previous: null,
      policy,
    };
    await this.#settings.write("token", async (tx, changed) => {
      await tx.run(insertToken(token));
      changed(token.id);
    });
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

  /** Returns false after the token was revoked or disabled or has expired. */
  isLive({ id }: Token): boolean {
    const token = this.index.findById(id);
    if (token === undefined || token.isDisabled) return false;
    return token.expiresAt === null || token.expiresAt > this.clock.now();
  }

  /** Changes a token on behalf of `editor`, within its limits. A disabled token is refused, and its connections and streams end. */
  async update(
    editor: Principal,
    accountId: string,
    id: string,
    change: (token: Token) => TokenChange,
  ): Promise<Token> {
    return this.#change(accountId, id, (before) => {
      const wanted = change(before);
      const token: Token = {
        ...before,
        name: wanted.name ?? before.name,
        expiresAt: wanted.expiresAt === undefined ? before.expiresAt : wanted.expiresAt,
        isDisabled: wanted.isDisabled ?? before.isDisabled,
        policy: wanted.policy === undefined ? before.policy : withoutEmpty(wanted.policy),
      };
      // A name changes no limit, and a caller that may revoke a token may disable it.
      const isHarmless = isSameReach(before, token) && (token.isDisabled || !before.isDisabled);
      if (!isHarmless) requireWithinBounds(editor, token);
      if (token.expiresAt !== before.expiresAt) requireFuture(token.expiresAt, this.clock.now());
      return token;
    });
  }

  /** Gives the token a new secret. The old one is refused after `graceMs`, and connections and streams that it has opened end then. */
  async rotate(accountId: string, id: string, graceMs: number): Promise<{ token: Token; text: Secret }> {
    const text = generateToken();
    const token = await this.#change(accountId, id, (before) => ({
      ...before,
      hash: hashToken(text),
      suffix: tokenSuffix(text),
      previous: graceMs === 0 ? null : { hash: before.hash, endsAt: this.clock.now() + graceMs },
    }));
    return { token, text: new Secret(text) };
  }

  #change(accountId: string, id: string, change: (token: Token) => Token): Promise<Token> {
    return this.#settings.write("token", async (tx, changed) => {
      const row = await tx.get<TokenRow>(
        sql`SELECT * FROM token WHERE id = ${id} AND account_id = ${accountId}`,
      );
      if (row === undefined || this.#revoked.has(id)) throw tokenMissing();
      const token = change(fromRow(row));
      await tx.run(updateToken(token, this.clock.now()));
      changed(id);
      return token;
    });
  }

  /** Revokes a token immediately. Returns false if the account has no such token. */
  async revoke(accountId: string, id: string): Promise<boolean> {
    const isKnown = this.find(accountId, id) !== undefined;
    // The index first: if the write fails, the token is refused.
    if (isKnown) {
      this.#revoked.add(id);
      this.#remove(id);
    }
    // Also for a token that is not in the index: if an earlier attempt failed here, the token would be valid again after a restart.
    const changes = await this.#settings.write("token", async (tx, changed) => {
      const deleted = await tx.run(sql`DELETE FROM token WHERE id = ${id} AND account_id = ${accountId}`);
      if (deleted.changes > 0) changed(id);
      return deleted.changes;
    });
    this.#revoked.delete(id);
    if (!isKnown && changes === 0) return false;
    await this.#events.deleted({ accountId, type: "api_token", id });
    return true;
  }

  /** Revokes all tokens of a deleted gateway, in one write. Can be repeated if it was interrupted. */
  async revokeOfGateway(accountId: string, gatewayId: string): Promise<void> {
    const rows = await this.#database.all<{ id: string }>(
      sql`SELECT id FROM token WHERE account_id = ${accountId} AND gateway_id = ${gatewayId}`,
    );
    for (const { id } of rows) {
      this.#revoked.add(id);
      this.#remove(id);
      // Before the rows: without them a repetition would not find the tokens.
      await this.#events.deleted({ accountId, type: "api_token", id });
    }
    await this.#settings.write("token", async (tx, changed) => {
      const bound = sql`account_id = ${accountId} AND gateway_id = ${gatewayId}`;
      for (const { id } of await tx.all<{ id: string }>(sql`SELECT id FROM token WHERE ${bound}`))
        changed(id);
      await tx.run(sql`DELETE FROM token WHERE ${bound}`);
    });
    for (const { id } of rows) this.#revoked.delete(id);
  }

  #remove(id: string): void {
    this.index.remove(id);
    this.ends.end(tokenKey(id));
  }

  find(accountId: string, id: string): Token | undefined {
    const token = this.index.findById(id);
    return token?.accountId === accountId ? token : undefined;
  }

  /** The tokens of the account that have a policy, from memory. */
  *withPolicy(accountId: string): Generator<Token & { readonly policy: TokenPolicy }> {
    for (const token of this.index.tokens())
      if (token.accountId === accountId && token.policy !== null) yield { ...token, policy: token.policy };
  }

  /** Returns a page of tokens after the id `after`, in order of creation. */
  async list(
    accountId: string,
    after = "",
    { gatewayId = null, owner }: TokenFilter = {},
  ): Promise<{ tokens: Token[]; next: string | null }> {
    const bound = gatewayId === null ? sql`` : sql`AND gateway_id = ${gatewayId}`;
    const owned = owner === undefined ? sql`` : sql`AND owner = ${owner}`;
    const rows = await this.#database.all<TokenRow>(
      sql`SELECT * FROM token WHERE account_id = ${accountId} AND id > ${after} ${bound} ${owned} ORDER BY id LIMIT ${PAGE_SIZE + 1}`,
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
      const time = Math.max(this.index.lastUse(row.id) ?? 0, row.last_used_at ?? 0);
      if (time > 0) times.set(row.id, time);
    }
    return times;
  }

  /** Returns the live token with this text, received on this connection. Called for every request: no I/O. */
  authenticate(text: string, connection: object | null = null): Token | undefined {
    return this.index.findByText(text, this.clock.now(), connection);
  }

  async flushLastUse(): Promise<void> {
    const uses = this.index.takeUses();
    if (uses.length === 0) return;
    try {
      // In the same order on all nodes, so that no two transactions wait for each other.
      const inOrder = uses.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      const values = inOrder.flatMap(({ id, time }) => [id, time]);
      await this.#database.transaction((tx) => SET_LAST_USE.run(tx, values), {
        scope: "token uses",
        isConcurrent: true,
      });
    } catch (error) {
      this.index.putBackUses(uses);
      throw error;
    }
  }
}

/** Returns the key under which connections and streams of a token are watched. */
export function tokenKey(id: string): string {
  return `token:${id}`;
}

/** The same, of those that one secret of a token has opened. */
function secretKey(hash: string): string {
  return `secret:${hash}`;
}

export function tokenMissing(): SignalboxError {
  return new SignalboxError("not_found", { message: "Token not found" });
}

function requireFuture(expiresAt: number | null, now: number): void {
  if (expiresAt !== null && expiresAt <= now) {
    throw new SignalboxError("invalid_request", { message: "expires_at must be in the future" });
  }
}

/** Null for a policy that says nothing, as a reload of the token would give. */
function withoutEmpty(policy: TokenPolicy | null): TokenPolicy | null {
  return policy === null || policyToText(policy) === null ? null : policy;
}

function isSameReach(one: Token, other: Token): boolean {
  return (
    one.expiresAt === other.expiresAt &&
    (one.policy === other.policy ||
      (one.policy !== null &&
        other.policy !== null &&
        policyToText(one.policy) === policyToText(other.policy)))
  );
}

function gatewayUnknown(id: string): SignalboxError {
  return new SignalboxError("invalid_request", {
    message: `gateway_id: the account has no gateway ${JSON.stringify(id)}`,
  });
}
