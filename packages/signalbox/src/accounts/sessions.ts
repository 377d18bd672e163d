/**
 * Stores the sessions of the dashboard. `login-codes.ts` stores the one-time codes of login links.
 *
 * Invariants:
 * 1. A session does not outlive its credential. It contains the id of the token, and the token is looked up for every request. Connections
 *    that a session opened end with the session or its token, whichever ends first. The hash of a root session includes the root token:
 *    after the root token is changed, the session is not found.
 * 2. Memory and database contain only the SHA-256 of a cookie, so that a copy of the database gives access to no session.
 * 3. The numbers of sessions per credential and of all sessions are bounded; the oldest is removed. Sessions of account tokens never replace a
 *    session of the root token.
 *
 * Sessions are stored in the database so that they survive a restart. All of them are also in memory: a request needs no I/O.
 * See docs/decisions/0045.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Clock } from "../core/clock.ts";
import type { Secret } from "../core/secret.ts";
import type { Database } from "../database/database.ts";
import { LocalSettings, type SettingsStore, type SharedSettings } from "../database/shared-settings.ts";
import { sql, sqlList } from "../core/sql.ts";
import type { Principal, SessionRef } from "./principal.ts";
import type { Tokens } from "./tokens.ts";

/** A week: users log in rarely, and a forgotten browser is logged out. */
export const SESSION_LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;
/** Per credential, so that repeated logins with one token do not remove the sessions of others. */
const MAX_SESSIONS_EACH = 50;
const MAX_SESSIONS = 5000;

interface Session {
  readonly hash: string;
  /** Null for the root token. */
  readonly token: { readonly id: string; readonly accountId: string } | null;
  readonly createdAt: number;
  readonly expiresAt: number;
}

export interface LiveSession {
  readonly principal: Principal;
  readonly expiresAt: number;
}

export class Sessions implements SettingsStore {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #tokens: Tokens;
  /** In order of creation, which is the order of expiry. */
  readonly #byHash = new Map<string, Session>();
  readonly #settings: SharedSettings;
  /** Closed here; the row may still exist if the write failed. */
  readonly #closed = new Set<string>();
  /** Part of the hashes of root sessions; never stored. */
  readonly #rootTokenHash: string;

  constructor(
    database: Database,
    clock: Clock,
    tokens: Tokens,
    rootToken: Secret,
    settings: SharedSettings = new LocalSettings(database),
  ) {
    this.#database = database;
    this.#settings = settings;
    settings.register("session", this);
    this.#clock = clock;
    this.#tokens = tokens;
    this.#rootTokenHash = hash(rootToken.reveal());
  }

  async load(): Promise<void> {
    // Other nodes may keep an expired session in memory: it is refused by its time.
    await this.#database.run(sql`DELETE FROM dashboard_session WHERE expires_at <= ${this.#clock.now()}`);
    await this.#settings.load("session");
  }

  async reload(hashes: readonly string[] | null): Promise<void> {
    const selected = hashes === null ? sql`` : sql`WHERE hash IN (${sqlList(hashes)})`;
    const rows = await this.#database.all<SessionRow>(
      sql`SELECT * FROM dashboard_session ${selected} ORDER BY created_at, hash`,
    );
    const found = new Set(rows.map((row) => row.hash));
    for (const key of hashes ?? [...this.#byHash.keys()]) if (!found.has(key)) this.#forget(key);
    for (const row of rows) if (!this.#closed.has(row.hash)) this.#byHash.set(row.hash, fromRow(row));
  }

  /** Opens a session for an authenticated principal. `secret` is the value of the cookie and is not stored. */
  async open(principal: Principal): Promise<{ secret: string; expiresAt: number }> {
    const secret = newSecret();
    const now = this.#clock.now();
    const session: Session = {
      hash: principal.kind === "root" ? this.#rootHash(secret) : hash(secret),
      token:
        principal.kind === "root" ? null : { id: principal.token.id, accountId: principal.token.accountId },
      createdAt: now,
      expiresAt: Math.min(now + SESSION_LIFETIME_MS, secretEnd(principal)),
    };
    await this.#makeRoom(session.token?.id ?? null);
    await this.#settings.write("session", async (tx, changed) => {
      await tx.run(
        sql`INSERT INTO dashboard_session (hash, token_id, account_id, created_at, expires_at)
            VALUES (${session.hash}, ${session.token?.id ?? null}, ${session.token?.accountId ?? null},
                    ${session.createdAt}, ${session.expiresAt})`,
      );
      changed(session.hash);
    });
    return { secret, expiresAt: session.expiresAt };
  }

  /** Returns the live session with this cookie value. Called for every request: no I/O. */
  find(secret: string): LiveSession | null {
    const session = this.#byHash.get(this.#keyOf(secret));
    if (session === undefined || session.expiresAt <= this.#clock.now()) return null;
    const { expiresAt } = session;
    const reference = { hash: session.hash, expiresAt };
    if (session.token === null) {
      // With another root token, the hash differs.
      if (session.hash !== this.#rootHash(secret)) return null;
      return { principal: { kind: "root", session: reference }, expiresAt };
    }
    const token = this.#tokens.find(session.token.accountId, session.token.id);
    if (token === undefined || !this.#tokens.isLive(token)) return null;
    return { principal: { kind: "token", token, session: reference }, expiresAt };
  }

  /** Returns false after the session was closed or has expired. The token is not checked. */
  isLive({ hash: key }: SessionRef): boolean {
    return (this.#byHash.get(key)?.expiresAt ?? 0) > this.#clock.now();
  }

  /** Closes a session. Closing an unknown session has no effect. */
  async close(secret: string): Promise<void> {
    await this.#remove(this.#keyOf(secret));
  }

  #keyOf(secret: string): string {
    const key = hash(secret);
    return this.#byHash.has(key) || this.#closed.has(key) ? key : this.#rootHash(secret);
  }

  #rootHash(secret: string): string {
    return hash(`${this.#rootTokenHash} ${secret}`);
  }

  async #makeRoom(tokenId: string | null): Promise<void> {
    const now = this.#clock.now();
    const own = [...this.#byHash.values()].filter((session) => (session.token?.id ?? null) === tokenId);
    const [oldestOwn] = own;
    if (own.length >= MAX_SESSIONS_EACH && oldestOwn !== undefined) await this.#remove(oldestOwn.hash);
    for (const session of this.#byHash.values()) {
      if (session.expiresAt > now && this.#byHash.size < MAX_SESSIONS) break;
      if (session.expiresAt > now && session.token === null) continue;
      await this.#remove(session.hash);
    }
  }

  async #remove(key: string): Promise<void> {
    if (!this.#byHash.has(key) && !this.#closed.has(key)) return;
    // Memory first: if the database write fails, the session is refused, and the next attempt deletes the row.
    this.#closed.add(key);
    this.#forget(key);
    await this.#settings.write("session", async (tx, changed) => {
      await tx.run(sql`DELETE FROM dashboard_session WHERE hash = ${key}`);
      changed(key);
    });
    this.#closed.delete(key);
  }

  #forget(key: string): void {
    this.#byHash.delete(key);
    this.#tokens.ends.end(sessionKey(key));
  }
}

interface SessionRow {
  readonly hash: string;
  readonly token_id: string | null;
  readonly account_id: string | null;
  readonly created_at: number;
  readonly expires_at: number;
}

function fromRow(row: SessionRow): Session {
  return {
    hash: row.hash,
    token:
      row.token_id === null || row.account_id === null
        ? null
        : { id: row.token_id, accountId: row.account_id },
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
}

/** Returns the key under which connections and streams of a session are watched. */
export function sessionKey(hashOfCookie: string): string {
  return `session:${hashOfCookie}`;
}

/** 256 random bits cannot be guessed, so a look-up by hash needs no constant-time comparison. */
function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

function hash(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** A session does not outlive a secret that will be refused: one before a rotation. */
function secretEnd(principal: Principal): number {
  if (principal.kind === "root" || principal.token.isByPrevious === undefined) return Infinity;
  return principal.token.previous?.endsAt ?? 0;
}
