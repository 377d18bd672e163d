/**
 * Stores the sessions of the dashboard and the one-time codes of login links.
 *
 * Invariants:
 * 1. A session does not outlive its credential. It contains the id of the token, and the token is looked up for every request. Connections
 *    that a session opened end with the session or its token, whichever ends first. The hash of a root session includes the root token:
 *    after the root token is changed, the session is not found.
 * 2. Memory and database contain only the SHA-256 of a cookie, so that a copy of the database gives access to no session.
 * 3. A login code is valid once, for ten minutes, and is kept in memory only.
 * 4. The numbers of sessions per credential, of all sessions and of codes are bounded; the oldest is removed. Sessions of account tokens never
 *    replace a session of the root token.
 *
 * Sessions are stored in the database so that they survive a restart. All of them are also in memory: a request needs no I/O.
 * See docs/decisions/0045.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Clock } from "../core/clock.ts";
import type { Secret } from "../core/secret.ts";
import type { Database } from "../database/database.ts";
import { sql } from "../core/sql.ts";
import type { Principal, SessionRef } from "./principal.ts";
import type { Tokens } from "./tokens.ts";

/** A week: users log in rarely, and a forgotten browser is logged out. */
export const SESSION_LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;
/** Enough time to copy the link from the terminal and open it. */
export const LOGIN_CODE_LIFETIME_MS = 10 * 60 * 1000;
/** Per credential, so that repeated logins with one token do not remove the sessions of others. */
const MAX_SESSIONS_EACH = 50;
const MAX_SESSIONS = 5000;
const MAX_LOGIN_CODES = 32;

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

export class Sessions {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #tokens: Tokens;
  /** In order of creation, which is the order of expiry. */
  readonly #byHash = new Map<string, Session>();
  /** Expiry time by hash of the code. */
  readonly #codes = new Map<string, number>();
  /** Part of the hashes of root sessions; never stored. */
  readonly #rootTokenHash: string;

  constructor(database: Database, clock: Clock, tokens: Tokens, rootToken: Secret) {
    this.#database = database;
    this.#clock = clock;
    this.#tokens = tokens;
    this.#rootTokenHash = hash(rootToken.reveal());
  }

  async load(): Promise<void> {
    const now = this.#clock.now();
    await this.#database.run(sql`DELETE FROM dashboard_session WHERE expires_at <= ${now}`);
    this.#byHash.clear();
    const rows = await this.#database.all<SessionRow>(
      sql`SELECT * FROM dashboard_session ORDER BY created_at, hash`,
    );
    for (const row of rows) this.#byHash.set(row.hash, fromRow(row));
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
      expiresAt: now + SESSION_LIFETIME_MS,
    };
    await this.#makeRoom(session.token?.id ?? null);
    await this.#database.run(
      sql`INSERT INTO dashboard_session (hash, token_id, account_id, created_at, expires_at)
          VALUES (${session.hash}, ${session.token?.id ?? null}, ${session.token?.accountId ?? null},
                  ${session.createdAt}, ${session.expiresAt})`,
    );
    this.#byHash.set(session.hash, session);
    return { secret, expiresAt: session.expiresAt };
  }

  /** Returns the live session with this cookie value. Called for every request: no I/O. */
  find(secret: string): LiveSession | null {
    const session = this.#byHash.get(this.#keyOf(secret));
    if (session === undefined || session.expiresAt <= this.#clock.now()) return null;
    const { expiresAt } = session;
    const reference = { hash: session.hash, expiresAt };
    if (session.token === null) {
      // Earlier versions stored root sessions under a hash without the root token; these are not accepted.
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
    return this.#byHash.has(key) ? key : this.#rootHash(secret);
  }

  #rootHash(secret: string): string {
    return hash(`${this.#rootTokenHash} ${secret}`);
  }

  /** Creates a code that opens one session of the root token. */
  createLoginCode(): { code: string; expiresAt: number } {
    const code = newSecret();
    const expiresAt = this.#clock.now() + LOGIN_CODE_LIFETIME_MS;
    for (const oldest of this.#codes.keys()) {
      if (this.#codes.size < MAX_LOGIN_CODES) break;
      this.#codes.delete(oldest);
    }
    this.#codes.set(hash(code), expiresAt);
    return { code, expiresAt };
  }

  /** Returns true once for each valid code. */
  takeLoginCode(code: string): boolean {
    const key = hash(code);
    const expiresAt = this.#codes.get(key);
    this.#codes.delete(key);
    return expiresAt !== undefined && expiresAt > this.#clock.now();
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
    const session = this.#byHash.get(key);
    // Memory first: if the database write fails, the session is refused.
    if (session === undefined || !this.#byHash.delete(key)) return;
    this.#tokens.ends.end(sessionKey(key));
    try {
      await this.#database.run(sql`DELETE FROM dashboard_session WHERE hash = ${key}`);
    } catch (error) {
      // Kept as expired, so that the next attempt deletes the row; otherwise the session would be valid again after a restart.
      this.#byHash.set(key, { ...session, expiresAt: 0 });
      throw error;
    }
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
