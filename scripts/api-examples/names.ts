/** Replaces what differs between two records of the examples: ids, secrets, times and durations. Equal ones stay equal. */
import { join } from "node:path";

const ULID = /\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b/gi;
const UUID = /\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\b/g;
const TIME = /\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;
const DAY = /\b20\d\d-\d\d-\d\d(?!T|\d)/g;
const SECRET = /\b(sbx|sbl|whsec)_[\w+/-]{16,}=*/g;
const LOGIN_CODE = /(?<=\?code=)[\w-]{40,}/g;
/** In JSON inside of a text. */
const DURATION = /(?<="(?:duration|time_to_first_byte)":)[\d.]+/g;
/** Of a request: the process, and a number. */
/** Of a call that began late, in a text (see `isLateAttempt`). */
const LATE_ATTEMPT = /"attempts":"\[\{[^\]]*\}\]",/g;
const REQUEST_ID = /\b[\da-f]{12}(?=-[\da-z]{1,4}\b)/g;
/** The end of a token, in JSON inside of a text. */
const LAST_FOUR = /(?<="?"last_four"?":"?")[\w-]{4}/g;
const HEX = /\b[\da-f]{40,}\b/g;
/** Hashes and etags in base64url. */
const HASH = /(?<=^|")[\w-]{22,43}(?="|$)/g;
/** The checkout, in stacks. */
const ROOT = join(import.meta.dirname, "../..");
const ADDRESS = /\b127\.0\.0\.1:\d+/g;

const IS_DURATION = /duration|^ms$|_ms$|^time_to|_avg$|_p\d\d$|^uptime|^age|last_active/;
const LAST = "k3xp";
const FIXED_TIME = "2026-11-18T12:00:00.000Z";
/** Crockford's alphabet, as in ids. */
const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

export class Names {
  readonly #ids = new Map<string, string>();

  in(value: unknown, key = ""): unknown {
    if (key === "last_four" && value !== null) return LAST;
    // Turns are recorded some time after they have ended.
    if (key === "turns") return [];
    if (key === "turn_p95_ms") return null;
    if (key === "durations" && Array.isArray(value)) return [inOneBucket(value as Bucket[])];
    if (typeof value === "string") return this.inText(value);
    if (typeof value === "number") return IS_DURATION.test(key) ? 12 : value;
    if (Array.isArray(value)) return value.map((one) => this.in(one, key));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .filter(([name, one]) => !isLateAttempt(name, one))
        .map(([name, one]) => [this.inText(name), this.in(one, name)]),
    );
  }

  inText(text: string): string {
    return text
      .replaceAll(ROOT, "/srv/signalbox")
      .replaceAll(ADDRESS, "127.0.0.1:8787")
      .replaceAll(TIME, FIXED_TIME)
      .replaceAll(DAY, FIXED_TIME.slice(0, 10))
      .replaceAll(SECRET, (_, prefix: string) => `${prefix}_…`)
      .replaceAll(LOGIN_CODE, "0LVQkZdqtHJW23bLUOI9lQIMJmCCZ1eZtstxVIxKtVE")
      .replaceAll(DURATION, "12")
      .replaceAll(LATE_ATTEMPT, "")
      .replaceAll(UUID, (id) =>
        this.#numbered(id, (n) => `5f0c7a1e-0000-4000-8000-${n.toString(16).padStart(12, "0")}`),
      )
      .replaceAll(ULID, (id) => {
        const name = this.#numbered(id, (n) => `01KB9QWZ6D0000000000000${toBase32(n)}`);
        return id === id.toLowerCase() ? name.toLowerCase() : name;
      })
      .replaceAll(REQUEST_ID, "5f0c7a1e0000")
      .replaceAll(LAST_FOUR, LAST)
      .replaceAll(HEX, (hex) => "0123456789abcdef".repeat(8).slice(0, hex.length))
      .replaceAll(HASH, (hash) =>
        /[A-Z]/.test(hash) && /\d/.test(hash) && !/^01KB9QWZ6D/i.test(hash) ? "Zm9yIGFuIGV4YW1wbGU" : hash,
      );
  }

  #numbered(id: string, toName: (n: number) => string): string {
    const known = this.#ids.get(id) ?? toName(this.#ids.size + 1);
    this.#ids.set(id, known);
    return known;
  }
}

/** The only attempt of a call has an entry only if it began late. */
function isLateAttempt(name: string, value: unknown): boolean {
  return name === "attempts" && typeof value === "string" && (JSON.parse(value) as unknown[]).length === 1;
}

function toBase32(n: number): string {
  return [1024, 32, 1].map((place) => DIGITS[Math.floor(n / place) % 32] ?? "0").join("");
}

interface Bucket {
  readonly calls: number;
}

/** The calls of a histogram, as if all took the same time. */
function inOneBucket(buckets: readonly Bucket[]): object {
  return { le: 25, calls: buckets.reduce((sum, { calls }) => sum + calls, 0) };
}
