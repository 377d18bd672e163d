/**
 * Access tokens of a Google service account: a signed assertion is exchanged for a token, which is kept until shortly before it expires.
 *
 * Invariants:
 * 1. The assertion goes to the configured address only. The `token_uri` in a key file is ignored: a caller who stores a key could name any host.
 * 2. Concurrent calls with one key share one exchange. A failed exchange is not kept.
 */
import { createHash, createSign } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../core/clock.ts";

/** Sends a form and resolves with the response; rejects when the server cannot be reached. */
export type PostForm = (
  url: string,
  form: string,
) => Promise<{ readonly status: number; readonly body: string }>;

interface ServiceAccount {
  readonly email: string;
  readonly privateKey: string;
  readonly keyId: string | null;
}

interface KeptToken {
  readonly token: string;
  readonly expiresAt: number;
}

export const GOOGLE_TOKEN_URL = "https://oauth2.googleapis.com/token";
const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
const GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const LIFETIME_S = 3600;
/** A token is replaced this long before it expires, so that it outlives the call it is used for. */
const MARGIN_MS = 5 * 60_000;
const MAX_KEPT = 1000;

export class GoogleAccessTokens {
  readonly #post: PostForm;
  readonly #clock: Clock;
  readonly #url: string;
  /** By hash of the key file. */
  readonly #kept = new LRUCache<string, KeptToken>({ max: MAX_KEPT });
  readonly #running = new Map<string, Promise<string>>();

  constructor(post: PostForm, clock: Clock, url: string = GOOGLE_TOKEN_URL) {
    this.#post = post;
    this.#clock = clock;
    this.#url = url;
  }

  /** Rejects when the key file is not one, or Google refuses it. */
  async tokenFor(keyFile: string): Promise<string> {
    const id = createHash("sha256").update(keyFile).digest("base64");
    const kept = this.#kept.get(id);
    if (kept !== undefined && this.#clock.now() < kept.expiresAt - MARGIN_MS) return kept.token;
    const running = this.#running.get(id) ?? this.#exchange(id, parseServiceAccount(keyFile));
    this.#running.set(id, running);
    try {
      return await running;
    } finally {
      this.#running.delete(id);
    }
  }

  async #exchange(id: string, account: ServiceAccount): Promise<string> {
    const now = this.#clock.now();
    const form = new URLSearchParams({ grant_type: GRANT, assertion: this.#assertion(account, now) });
    const { status, body } = await this.#post(this.#url, form.toString());
    const answer = parseAnswer(body);
    if (status !== 200 || answer.token === null) {
      throw new Error(`Google refused the service account: ${answer.error ?? `HTTP ${status}`}`);
    }
    this.#kept.set(id, { token: answer.token, expiresAt: now + answer.lifetimeS * 1000 });
    return answer.token;
  }

  #assertion({ email, privateKey, keyId }: ServiceAccount, now: number): string {
    const issuedAt = Math.floor(now / 1000);
    const header = { alg: "RS256", typ: "JWT", ...(keyId === null ? {} : { kid: keyId }) };
    const claims = {
      iss: email,
      scope: SCOPE,
      aud: this.#url,
      iat: issuedAt,
      exp: issuedAt + LIFETIME_S,
    };
    const text = `${toPart(header)}.${toPart(claims)}`;
    return `${text}.${createSign("RSA-SHA256").update(text).sign(privateKey).toString("base64url")}`;
  }
}

/** Throws for a text that is not the key file of a service account. */
function parseServiceAccount(text: string): ServiceAccount {
  const value = JSON.parse(text) as Record<string, unknown>;
  const { client_email: email, private_key: privateKey, private_key_id: keyId } = value;
  if (typeof email !== "string" || typeof privateKey !== "string") {
    throw new Error("the key is not the key file of a service account");
  }
  return { email, privateKey, keyId: typeof keyId === "string" ? keyId : null };
}

function parseAnswer(body: string): { token: string | null; lifetimeS: number; error: string | null } {
  let value: Record<string, unknown> = {};
  try {
    value = JSON.parse(body) as Record<string, unknown>;
  } catch {
    // A proxy's page.
  }
  const { access_token: token, expires_in: lifetime, error } = value;
  return {
    // It becomes part of a header.
    token: typeof token === "string" && /^[\x21-\x7e]+$/.test(token) ? token : null,
    lifetimeS: typeof lifetime === "number" && lifetime > 0 ? lifetime : LIFETIME_S,
    error: typeof error === "string" ? error.slice(0, 200) : null,
  };
}

function toPart(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
