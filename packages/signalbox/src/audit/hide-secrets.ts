/**
 * Removes secrets from values that are stored in the audit log.
 *
 * Invariants:
 * 1. A text below a member with the name of a secret is replaced, whatever it contains.
 * 2. A text that was replaced once is replaced everywhere in the same entry, e.g. in an error message that repeats it.
 * 3. Texts with the form of a credential are replaced wherever they appear.
 * 4. The result is bounded: long texts are cut, and a large value is replaced by its size.
 * 5. The work is bounded by the size of the values: each text is searched for a limited number of secrets, and a value with very many members or
 *    secrets is not searched but replaced by its size.
 */

/** Stands for a secret. */
export const HIDDEN = "[hidden]";

const MAX_TEXT = 2048;
/** Secrets are searched for in this much of a text; the rest is not stored. */
const MAX_SEARCHED = 16 * 1024;
/** Longest word that the end of a searched text is cut back to: the word may be the start of a secret. */
const MAX_WORD = 512;
/** Members of the values of an entry. The JSON text of more would be longer than `MAX_JSON`. */
const MAX_MEMBERS = 4000;
/** Secrets of an entry. Settings have a few. */
const MAX_SECRETS = 50;
const MAX_DEPTH = 12;
/** Maximum JSON text of one value. A gateway with all its settings has about 2 KiB. */
const MAX_JSON = 16 * 1024;
/** Shorter texts are not searched for in other texts: they would match by accident. */
const MIN_REMEMBERED = 6;

const SECRET_NAME =
  /secret|passw(?:or)?d|passphrase|credential|authorization|cookie|private|api-?_?key|access-?_?key|(?:^|[_-])key$|signature|(?:^|[_-])token$|^headers$|[a-z]Token$|[a-z]Key$/i;
/** Names of references to a secret, not of the secret itself. */
const REFERENCE_NAME = /(?:_id|_ids|_preview|_at|_name|_four|_type|_slug|_count|_limit)$/i;
/** A path of a fact, a name of a variable: the key of a dynamic route's limit, not a credential. */
const PLAIN_KEY = /^key$/i;

const CREDENTIAL = new RegExp(
  [
    // Our own tokens.
    "sbx_[0-9A-Za-z]{8,}",
    // Keys of model providers, clouds, chat and code hosts, webhook senders.
    "\\b(?:sk|pk|rk|ak|gsk|xai|hf|r8|nvapi|pplx|fw|tgp|whsec|ghp|gho|ghu|ghs|github_pat|glpat|xox[abeoprs])[-_][\\w-]{10,}",
    "\\bAIza[\\w-]{20,}",
    "\\b(?:AKIA|ASIA)[0-9A-Z]{12,}",
    "\\bya29\\.[\\w.-]{10,}",
    // JSON web tokens, with the word that they end, so that each word is read once; and private keys.
    "(?<![\\w-])(?=[\\w-]*eyJ)[\\w-]{11,}\\.[\\w-]{8,}\\.[\\w-]*",
    "-----BEGIN [A-Z ]*PRIVATE KEY-----[\\s\\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
  ].join("|"),
  "g",
);
const BEARER = /\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi;
const URL_PASSWORD = /(\/\/)[^/\s@]{0,256}:[^/\s@]{0,512}@/g;
const SECRET_PARAMETER =
  /([?&;](?:code|key|token|secret|sig|signature|password|api_?key|access_token)=)[^&\s"']+/gi;
/**
 * Texts without any of these contain no credential. They may stand in the text of a JSON value, where a line break is the two characters `\n`:
 * so no word boundary, and no white space.
 */
const POSSIBLE_FORM =
  "sbx_|(?:sk|pk|rk|ak|gsk|xai|hf|r8|nvapi|pplx|fw|tgp|whsec|gh[opsu]|github_pat|glpat|xox[abeoprs])[-_][\\w-]{10}|" +
  "AIza|A[KS]IA|ya29|eyJ|PRIVATE|bearer|basic|\\/\\/[^/]*@|[?&;]\\w+=";
/** JSON texts without any of these have no member with the name of a secret. */
const POSSIBLE_NAME =
  'secret|passw|passphrase|credential|authorization|cookie|private|api-?_?key|access-?_?key|key"|signature|token"|headers"|"slack"';
const POSSIBLE_IN_TEXT = new RegExp(POSSIBLE_FORM, "i");
const POSSIBLE_IN_JSON = new RegExp(`${POSSIBLE_FORM}|${POSSIBLE_NAME}`, "i");

export class SecretHider {
  readonly #found = new Set<string>();
  #members = 0;

  /** Returns the JSON texts of the values without secrets, each at most `MAX_JSON` long. */
  hide(...values: readonly unknown[]): string[] {
    const texts = values.map(plainText);
    if (texts.every((text) => text !== null)) return texts;
    // All before any is copied: the state before the change may repeat a secret that only the state after it names as one.
    for (const value of values) this.#collect(value, false, 0);
    return values.map((value, i) => {
      if (this.#isTooMuch) return texts[i] === "null" ? "null" : sizeOf(value);
      const text = JSON.stringify(this.#copy(value ?? null, false, 0)) ?? "null";
      return text.length <= MAX_JSON ? text : sizeOf(value);
    });
  }

  /** Returns a message about the values without secrets. */
  hideMessage(text: string): string {
    return this.#isTooMuch ? HIDDEN : this.hideText(text);
  }

  /** Returns the text without secrets. */
  hideText(text: string): string {
    let clean = text.length <= MAX_SEARCHED ? text : cutAtWord(text);
    for (const secret of this.#found) clean = clean.replaceAll(secret, HIDDEN);
    if (POSSIBLE_IN_TEXT.test(clean)) {
      clean = clean
        .replace(CREDENTIAL, HIDDEN)
        .replace(BEARER, `$1 ${HIDDEN}`)
        .replace(URL_PASSWORD, `$1${HIDDEN}@`)
        .replace(SECRET_PARAMETER, `$1${HIDDEN}`);
    }
    return clean.length <= MAX_TEXT ? clean : `${clean.slice(0, MAX_TEXT)}… (${text.length} characters)`;
  }

  get #isTooMuch(): boolean {
    return this.#members > MAX_MEMBERS || this.#found.size > MAX_SECRETS;
  }

  /** Finds the texts with the name of a secret first: a member before them may repeat one. */
  #collect(value: unknown, isSecret: boolean, depth: number): void {
    this.#members += 1;
    if (this.#isTooMuch) return;
    if (typeof value === "string") {
      if (isSecret && value.length >= MIN_REMEMBERED) this.#found.add(value);
    } else if (typeof value === "object" && value !== null && depth < MAX_DEPTH) {
      for (const [name, member] of Object.entries(value)) {
        this.#collect(member, isSecret || isSecretMember(value, name), depth + 1);
      }
    }
  }

  #copy(value: unknown, isSecret: boolean, depth: number): unknown {
    if (typeof value === "string") return isSecret ? (value === "" ? "" : HIDDEN) : this.hideText(value);
    if (typeof value !== "object" || value === null) return value;
    if (depth === MAX_DEPTH) return HIDDEN;
    if (Array.isArray(value)) return value.map((item) => this.#copy(item, isSecret, depth + 1));
    const copy: Record<string, unknown> = {};
    for (const [name, member] of Object.entries(value)) {
      const safeName = this.hideText(name);
      // A member named __proto__ must stay a member.
      Object.defineProperty(copy, safeName, {
        value: this.#copy(member, isSecret || isSecretMember(value, name), depth + 1),
        enumerable: true,
        writable: true,
        configurable: true,
      });
    }
    return copy;
  }
}

/** Returns the JSON text of a small value in which nothing looks like a secret, which most are: one search instead of one for each member. */
function plainText(value: unknown): string | null {
  try {
    const text = JSON.stringify(value) ?? "null";
    return text.length <= MAX_TEXT && !POSSIBLE_IN_JSON.test(text) ? text : null;
  } catch {
    // Nested too deeply for the stack.
    return null;
  }
}

function sizeOf(value: unknown): string {
  let bytes: number | null = null;
  try {
    bytes = Buffer.byteLength(JSON.stringify(value) ?? "");
  } catch {
    // Nested too deeply for the stack.
  }
  return JSON.stringify({ truncated: true, bytes });
}

function cutAtWord(text: string): string {
  const end = text.slice(MAX_SEARCHED - MAX_WORD, MAX_SEARCHED);
  return text.slice(0, MAX_SEARCHED - MAX_WORD) + end.slice(0, end.search(/\S*$/));
}

function isSecretMember(value: object, name: string): boolean {
  if (Array.isArray(value)) return false;
  // The address of an incoming webhook of Slack is a credential.
  if (name === "url" && (value as { readonly type?: unknown }).type === "slack") return true;
  return SECRET_NAME.test(name) && !REFERENCE_NAME.test(name) && !PLAIN_KEY.test(name);
}
