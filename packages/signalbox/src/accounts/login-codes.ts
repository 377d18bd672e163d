/**
 * One-time codes of login links: each opens one session of the root token.
 *
 * Invariants:
 * 1. A code is valid once, for ten minutes, at every node: taking it deletes its row.
 * 2. The database has only the SHA-256 of a code.
 * 3. The number of codes is bounded; the oldest is removed.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Clock } from "../core/clock.ts";
import { sql } from "../core/sql.ts";
import type { Database } from "../database/database.ts";

/** Enough time to copy the link from the terminal and open it. */
const LIFETIME_MS = 10 * 60 * 1000;
const MAX_CODES = 32;

export interface LoginCode {
  readonly code: string;
  readonly expiresAt: number;
}

export class LoginCodes {
  readonly #database: Database;
  readonly #clock: Clock;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  async create(): Promise<LoginCode> {
    // 256 random bits cannot be guessed, so a look-up by hash needs no constant-time comparison.
    const code = randomBytes(32).toString("base64url");
    const expiresAt = this.#clock.now() + LIFETIME_MS;
    await this.#database.transaction(async (tx) => {
      await tx.run(
        sql`DELETE FROM login_code WHERE hash NOT IN
            (SELECT hash FROM login_code WHERE expires_at > ${this.#clock.now()} ORDER BY expires_at DESC LIMIT ${MAX_CODES - 1})`,
      );
      await tx.run(sql`INSERT INTO login_code (hash, expires_at) VALUES (${hash(code)}, ${expiresAt})`);
    });
    return { code, expiresAt };
  }

  /** Resolves to true once for each valid code. */
  async take(code: string): Promise<boolean> {
    const row = await this.#database.transaction((tx) =>
      tx.get<{ expires_at: number }>(
        sql`DELETE FROM login_code WHERE hash = ${hash(code)} RETURNING expires_at`,
      ),
    );
    return row !== undefined && row.expires_at > this.#clock.now();
  }
}

function hash(code: string): string {
  return createHash("sha256").update(code).digest("hex");
}
