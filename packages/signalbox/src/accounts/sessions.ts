/**
 * Sessions of the dashboard: what a browser's cookie stands for, and the one-time codes of login links.
 *
 * Invariants:
 * 1. A session never outlives its credential: it holds the token's id, not its permissions, and the token is looked up on every
 *    request, so a revoked or expired token ends its sessions with the next request. What a session opened and is still open, ends with
 *    the session or its token, whichever ends first.
 *    A session of the root token is stored under a hash that the root token is part of: with another root token it is not found any more.
 * 2. Only the SHA-256 of a cookie is kept, in memory and in the database, so a stolen database opens no session.
 * 3. A login code works once, within ten minutes of its making, and lives in memory only.
 * 4. Sessions (of one credential, and in all) and codes are bounded in number; the oldest gives way. However many tokens an account makes and logs
 *    in with, no session of the root token gives way to them.
 *
 * Sessions are stored because a restart must not log people out of a page that is watching an agent; they are few, so all of them are
 * in memory and a request costs no I/O.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Clock } from "../core/clock.ts";
import type { Secret } from "../core/secret.ts";
import type { Database } from "../database/database.ts";
import { sql } from "../core/sql.ts";
import type { Principal, SessionRef } from "./principal.ts";
import type { Tokens } from "./tokens.ts";

/** A week: long enough not to annoy, short enough that a forgotten browser closes by itself. */
export const SESSION_LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;
/** Long enough to find the terminal's link and open it. */
export const LOGIN_CODE_LIFETIME_MS = 10 * 60 * 1000;
/** Of one credential, so that nobody can push out other people's sessions by logging in again and again. */
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
  /** Hash of the code → when it stops working. */
  readonly #codes = new Map<string, number>();

  /** Hash of the root token, part of its sessions' hashes and kept nowhere else. */
  readonly #rootMark: string;

  constructor(database: Database, clock: Clock, tokens: Tokens, rootToken: Secret) {
    this.#database = database;
    this.#clock = clock;
    this.#tokens = tokens;
    this.#rootMark = hash(rootToken.reveal());
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

  /** Opens a session for whoever proved to be `principal`; the result is the cookie's value, kept nowhere else. */
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

  /** The live session with this cookie value. Called on every request: no I/O. */
  find(secret: string): LiveSession | null {
    const session = this.#byHash.get(this.#keyOf(secret));
    if (session === undefined || session.expiresAt <= this.#clock.now()) return null;
    const { expiresAt } = session;
    const reference = { hash: session.hash, expiresAt };
    if (session.token === null) {
      // Under its plain hash it would be one that an older version stored, for whichever root token there was.
      if (session.hash !== this.#rootHash(secret)) return null;
      return { principal: { kind: "root", session: reference }, expiresAt };
    }
    const token = this.#tokens.find(session.token.accountId, session.token.id);
    if (token === undefined || !this.#tokens.isLive(token)) return null;
    return { principal: { kind: "token", token, session: reference }, expiresAt };
  }

  /** False once the session has ended or expired; its token is another matter. */
  isLive({ hash: key }: SessionRef): boolean {
    return (this.#byHash.get(key)?.expiresAt ?? 0) > this.#clock.now();
  }

  /** Ends a session at once; an unknown one is already ended. */
  async close(secret: string): Promise<void> {
    await this.#remove(this.#keyOf(secret));
  }

  #keyOf(secret: string): string {
    const key = hash(secret);
    return this.#byHash.has(key) ? key : this.#rootHash(secret);
  }

  #rootHash(secret: string): string {
    return hash(`${this.#rootMark} ${secret}`);
  }

  /** A code that opens one session of the root token. */
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

  /** True once for each live code. */
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
    // Memory goes first: a failure between the two leaves a session refused, never one accepted.
    if (session === undefined || !this.#byHash.delete(key)) return;
    this.#tokens.ends.end(sessionKey(key));
    try {
      await this.#database.run(sql`DELETE FROM dashboard_session WHERE hash = ${key}`);
    } catch (error) {
      // Kept as an expired one, so that the next attempt removes it from the database; otherwise it would be back after a restart.
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

/** Under which its connections and streams are watched. */
export function sessionKey(hashOfCookie: string): string {
  return `session:${hashOfCookie}`;
}

/** 256 random bits: not to be guessed, so a look-up by hash needs no constant-time comparison. */
function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

function hash(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}
