/**
 * What every scheme must do. Each scheme's test runs this list: the vendor's package accepts what the scheme signs, and no change of a single
 * byte of the body or of a header that carries the signature is accepted.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Scheme } from "./index.ts";

export const NOW = 1_800_000_000_000;
export const ADDRESS = "https://hooks.example.com/webhooks/twilio";
export const SECRET = "It's a Secret to Everybody";
export const STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
export const BODY = Buffer.from(
  JSON.stringify({ id: "evt_1", type: "invoice.paid", text: "Zürich ✓", n: 1.5 }),
);

export interface SentRequest {
  readonly headers: Record<string, string>;
  readonly body: Buffer;
  readonly secrets?: readonly string[];
  readonly now?: number;
  readonly url?: string;
}

export function verdict(scheme: Scheme, attempt: SentRequest, secret: string) {
  const keys = (attempt.secrets ?? [secret]).map((text) => scheme.toKey(text));
  const windowMs = (scheme.windowSeconds ?? 0) * 1000;
  const delivery = { headers: attempt.headers, body: attempt.body, urls: () => [attempt.url ?? ADDRESS] };
  return scheme.verify(delivery, keys, attempt.now ?? NOW, windowMs);
}

export interface SchemeCase {
  readonly title: string;
  readonly scheme: Scheme;
  readonly secret: string;
  /** Another valid secret. */
  readonly otherSecret?: string;
  /** The secret to sign with, if it differs. */
  readonly signingSecret?: string;
  readonly body?: Buffer;
  readonly extraHeaders?: Record<string, string>;
  /** What the signature covers: the bytes of the body (default), the decoded fields of a form, or nothing of the body. */
  readonly covers?: "bytes" | "fields" | "nothing";
  /** True when the header may hold several signatures. */
  readonly isList?: boolean;
  /** True when the scheme ignores spaces around the header's value. */
  readonly ignoresSpaces?: boolean;
  /** The vendor's package on the parts signed here; rejects or returns false when it refuses them. */
  vendor?(headers: Record<string, string>, body: Buffer, url: string): unknown;
}

function sign({ scheme, secret, signingSecret, body = BODY, extraHeaders = {} }: SchemeCase) {
  const parts = scheme.sign({
    secret: signingSecret ?? secret,
    body,
    now: NOW,
    deliveryId: "msg_1",
    url: ADDRESS,
  });
  return {
    proof: parts.headers,
    headers: { ...extraHeaders, ...parts.headers },
    body,
    url: parts.query === undefined ? ADDRESS : `${ADDRESS}?${parts.query}`,
  };
}

export function describeScheme(schemeCase: SchemeCase): void {
  const { scheme, secret, covers = "bytes", otherSecret = "another secret" } = schemeCase;
  const isAccepted = (attempt: SentRequest) => verdict(scheme, attempt, secret) === null;

  describe.each([schemeCase])("$title", () => {
    it("accepts what it signed, and so does the vendor's package", async () => {
      const attempt = sign(schemeCase);
      expect(verdict(scheme, attempt, secret)).toBeNull();
      if (schemeCase.vendor !== undefined) {
        expect(await schemeCase.vendor(attempt.headers, attempt.body, attempt.url)).not.toBe(false);
      }
    });

    if (covers !== "nothing") {
      it("refuses every change of a single byte of the body", () => {
        const attempt = sign(schemeCase);
        for (let at = 0; at < attempt.body.length; at++) {
          for (const bit of [0x01, 0x20, 0x80]) {
            const body = Buffer.from(attempt.body);
            body[at] = (body[at] ?? 0) ^ bit;
            if (covers === "fields" && hasSameFields(body, attempt.body)) continue;
            expect(isAccepted({ ...attempt, body }), `byte ${at}`).toBe(false);
          }
        }
      });
    }

    it("refuses every change of a single byte of a signed header", () => {
      const attempt = sign(schemeCase);
      for (const [name, value] of Object.entries(attempt.proof)) {
        for (let at = 0; at < value.length; at++) {
          for (const bit of [0x01, 0x02, 0x20]) {
            const changed =
              value.slice(0, at) + String.fromCharCode(value.charCodeAt(at) ^ bit) + value.slice(at + 1);
            const headers = { ...attempt.headers, [name]: changed };
            expect(isAccepted({ ...attempt, headers }), `${name}: ${changed}`).toBe(false);
          }
        }
      }
    });

    it("refuses a signed header that is missing, empty, cut or repeated", () => {
      const attempt = sign(schemeCase);
      for (const [name, value] of Object.entries(attempt.proof)) {
        const { [name]: _removed, ...others } = attempt.headers;
        expect(isAccepted({ ...attempt, headers: others }), `without ${name}`).toBe(false);
        const changes = ["", value.slice(0, -1)];
        if (schemeCase.isList !== true) {
          changes.push(`${value}, ${value}x`);
          if (schemeCase.ignoresSpaces !== true) changes.push(`${value} `, ` ${value}`);
        }
        for (const changed of changes) {
          const headers = { ...attempt.headers, [name]: changed };
          expect(isAccepted({ ...attempt, headers }), `${name}: ${changed}`).toBe(false);
        }
      }
    });

    it("accepts any of several active secrets and no other", () => {
      const attempt = sign(schemeCase);
      expect(isAccepted({ ...attempt, secrets: [otherSecret, secret] })).toBe(true);
      expect(isAccepted({ ...attempt, secrets: [otherSecret] })).toBe(false);
      expect(isAccepted({ ...attempt, secrets: [] })).toBe(false);
    });

    if (scheme.windowSeconds !== null && covers !== "nothing") {
      it("enforces its replay window in both directions", () => {
        const attempt = sign(schemeCase);
        const windowMs = (scheme.windowSeconds ?? 0) * 1000;
        const at = (now: number) => verdict(scheme, { ...attempt, now }, secret);
        expect([at(NOW + windowMs), at(NOW - windowMs)]).toEqual([null, null]);
        expect(at(NOW + windowMs + 1)).toBe("timestamp_outside_window");
        expect(at(NOW - windowMs - 1)).toBe("timestamp_outside_window");
      });
    }

    if (covers === "bytes") {
      it("signs and accepts any bytes, and refuses any other bytes", () => {
        fc.assert(
          fc.property(
            fc.uint8Array({ minLength: 1, maxLength: 64 }),
            fc.uint8Array({ maxLength: 64 }),
            (bytes, others) => {
              const body = Buffer.concat([Buffer.from("{"), bytes]);
              const attempt = sign({ ...schemeCase, body });
              expect(verdict(scheme, attempt, secret)).toBeNull();
              const changed = Buffer.concat([Buffer.from("{"), others]);
              if (!changed.equals(body)) expect(isAccepted({ ...attempt, body: changed })).toBe(false);
            },
          ),
          { numRuns: 50 },
        );
      });
    }
  });
}

/** True when two forms decode to the same fields (`%C3` and `%c3`). */
function hasSameFields(changed: Buffer, form: Buffer): boolean {
  try {
    const decode = (body: Buffer) => decodeURIComponent(body.toString().replaceAll("+", " "));
    return decode(changed) === decode(form);
  } catch {
    return false;
  }
}
