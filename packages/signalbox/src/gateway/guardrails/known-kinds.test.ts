/**
 * How well the known kinds tell what they look for from what looks like it, on texts that are made here with fixed seeds: half of them contain the kind, in the spellings that
 * people use, also unusual ones; the other half contain something similar. The guide states the figures, and this test that they are these.
 */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { PII_KINDS, SECRET_KINDS } from "../../accounts/index.ts";
import { Findings } from "./findings.ts";
import { at, parse, setOf } from "./guarded-streams-fixture.ts";
import { searchText } from "./request-body.ts";
import { inOnePiece } from "./slices.ts";

const TEXTS = 200;
const GUIDE = new URL("../../../../../docs/guides/guardrails.md", import.meta.url);

class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  }

  of<Value>(list: readonly [Value, ...Value[]]): Value {
    return list[this.below(list.length)] ?? list[0];
  }

  text(characters: string, length: number): string {
    return Array.from({ length }, () => characters[this.below(characters.length)]).join("");
  }

  digits(length: number): string {
    return this.text("0123456789", length);
  }
}

const LOWER = "abcdefghijklmnopqrstuvwxyz";
const MIXED = `${LOWER}ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789`;
const HEX = "0123456789abcdef";
const NAMES = ["ada", "grace.hopper", "j_doe", "li-wei", "o.brien"] as const;

/** The digit that makes the sum of Luhn right. */
function luhnDigit(digits: string): number {
  const sum = Array.from(digits)
    .toReversed()
    .reduce((total, digit, i) => {
      const value = Number(digit) * (i % 2 === 0 ? 2 : 1);
      return total + (value > 9 ? value - 9 : value);
    }, 0);
  return (10 - (sum % 10)) % 10;
}

function grouped(text: string, separator: string, length = 4): string {
  return text.match(new RegExp(`.{1,${length}}`, "g"))?.join(separator) ?? text;
}

function iban(dice: Dice): string {
  const [country, length] = dice.of<readonly [string, number]>([
    ["DE", 18],
    ["NL", 14],
    ["FR", 23],
    ["GB", 18],
  ]);
  const account = dice.digits(length);
  const number = BigInt(
    Array.from(`${account}${country}00`, (one) => String(Number.parseInt(one, 36))).join(""),
  );
  return `${country}${String(98n - (number % 97n)).padStart(2, "0")}${account}`;
}

const weighed = (digits: string, weights: readonly number[]) =>
  weights.reduce((sum, weight, i) => sum + weight * Number(digits[i]), 0);

/** Japan. */
function myNumber(dice: Dice): string {
  const digits = dice.digits(11);
  const rest = weighed(digits, [6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
  return `${digits}${rest < 2 ? 0 : 11 - rest}`;
}

/** Mexico. */
function curp(dice: Dice): string {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const start = `${dice.text(letters, 1)}${dice.text("AEIOU", 1)}${dice.text(letters, 2)}${70 + dice.below(30)}0${1 + dice.below(9)}${10 + dice.below(19)}${dice.of(["H", "M"])}DF${dice.text("BCDFGHJKLM", 3)}0`;
  const sum = Array.from(start).reduce(
    (total, character, i) => total + "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ".indexOf(character) * (18 - i),
    0,
  );
  return `${start}${(10 - (sum % 10)) % 10}`;
}

/** South Korea. */
function residentNumber(dice: Dice): string {
  const digits = `${60 + dice.below(40)}0${1 + dice.below(9)}${10 + dice.below(19)}${1 + dice.below(2)}${dice.digits(5)}`;
  return `${digits}${(11 - (weighed(digits, [2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5]) % 11)) % 10}`;
}

/** Russia. */
function snils(dice: Dice): string {
  const digits = `1${dice.digits(8)}`;
  const check = weighed(digits, [9, 8, 7, 6, 5, 4, 3, 2, 1]) % 101;
  return `${digits}${String(check === 100 ? 0 : check).padStart(2, "0")}`;
}

function inn(dice: Dice): string {
  const digits = `5${dice.digits(9)}`;
  const first = `${digits}${(weighed(digits, [7, 2, 4, 10, 3, 5, 9, 4, 6, 8]) % 11) % 10}`;
  return `${first}${(weighed(first, [3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8]) % 11) % 10}`;
}

/** Australia. */
function taxFileNumber(dice: Dice): string {
  for (;;) {
    const digits = `1${dice.digits(8)}`;
    if (weighed(digits, [1, 4, 3, 7, 5, 8, 6, 9, 10]) % 11 === 0) return digits;
  }
}

type Make = (dice: Dice) => string;

const UUID: Make = (dice) =>
  `${dice.text(HEX, 8)}-${dice.text(HEX, 4)}-4${dice.text(HEX, 3)}-a${dice.text(HEX, 3)}-${dice.text(HEX, 12)}`;
const VERSION: Make = (dice) => `version ${dice.below(40)}.${dice.below(40)}.${dice.below(400)}`;
const DATE: Make = (dice) =>
  `2026-${10 + dice.below(3)}-${10 + dice.below(18)}T${10 + dice.below(13)}:15:00Z`;
const PRICE: Make = (dice) => `${1 + dice.below(900)},${dice.digits(3)}.${dice.digits(2)} EUR`;
const ORDER: Make = (dice) => `order ${1 + dice.below(9)}${dice.digits(6)}`;

const KINDS: Readonly<
  Record<string, { readonly has: readonly [Make, ...Make[]]; readonly like: readonly [Make, ...Make[]] }>
> = {
  email: {
    has: [
      (dice) => `${dice.of(NAMES)}${dice.below(99)}@example.${dice.of(["com", "org", "co.uk"])}`,
      (dice) => `<${dice.of(NAMES)}+${dice.text(LOWER, 4)}@mail.example.net>`,
      (dice) => `${dice.of(NAMES)}\u200b@example.org`,
      (dice) => `${dice.of(NAMES)} (at) example (dot) org`,
    ],
    like: [
      (dice) => `@${dice.of(NAMES)} said so`,
      (dice) => `git@${dice.text(LOWER, 6)}`,
      (dice) => `${dice.text(LOWER, 5)}@${dice.below(9)}.${dice.below(9)}.${dice.below(9)}`,
      (dice) => `import "@${dice.text(LOWER, 5)}/${dice.text(LOWER, 6)}"`,
    ],
  },
  phone: {
    has: [
      (dice) => `+49 ${dice.of(["30", "89", "171"])} ${dice.digits(7)}`,
      (dice) => `+1 (${200 + dice.below(700)}) 555-${dice.digits(4)}`,
      (dice) => `${200 + dice.below(700)}-555-${dice.digits(4)}`,
      (dice) => `0171 ${dice.digits(7)}`,
      (dice) => `(${200 + dice.below(700)}) 555 ${dice.digits(4)}`,
    ],
    like: [PRICE, DATE, VERSION, ORDER, UUID, (dice) => `${dice.digits(4)}-${dice.digits(4)} pages`],
  },
  card: {
    has: ["", " ", "-"].map((separator): Make => (dice) => {
      const digits = `${dice.of(["4", "51", "37", "6011"])}${dice.digits(11)}`;
      return grouped(`${digits}${luhnDigit(digits)}`, separator);
    }) as unknown as [Make],
    like: [
      (dice) => {
        const digits = `4${dice.digits(14)}`;
        return `${digits}${(luhnDigit(digits) + 1 + dice.below(9)) % 10}`;
      },
      (dice) => `9${dice.digits(15)}`,
      UUID,
      (dice) => dice.digits(12),
      (dice) => `17${dice.digits(11)} milliseconds`,
    ],
  },
  iban: {
    has: [(dice) => iban(dice), (dice) => grouped(iban(dice), " "), (dice) => iban(dice).toLowerCase()],
    like: [
      (dice) => iban(dice).replace(/\d$/, (last) => String((Number(last) + 1) % 10)),
      (dice) => `XX${dice.digits(20)}`,
      (dice) => `DE${dice.digits(9)}`,
      UUID,
    ],
  },
  national_id: {
    has: [
      (dice) => `${100 + dice.below(500)}-${10 + dice.below(80)}-${1000 + dice.below(8000)}`,
      (dice) => `AB${dice.digits(6)}C`,
      (dice) => {
        const digits = dice.digits(8);
        return grouped(`${digits}${luhnDigit(digits)}`, " ", 3);
      },
      (dice) => {
        const digits = dice.digits(8);
        return `${digits}${"TRWAGMYFPDXBNJZSQVHLCKE"[Number(digits) % 23]}`;
      },
      (dice) => grouped(myNumber(dice), dice.of([" ", "-"])),
      (dice) => `${dice.of(["マイナンバー", "My Number:"])} ${myNumber(dice)}`,
      curp,
      (dice) => {
        const number = residentNumber(dice);
        return dice.of([number, `${number.slice(0, 6)}-${number.slice(6)}`]);
      },
      (dice) => {
        const number = snils(dice);
        return dice.of([number, `${grouped(number.slice(0, 9), "-", 3)} ${number.slice(9)}`]);
      },
      inn,
      (dice) => grouped(taxFileNumber(dice), " ", 3),
      (dice) => `${dice.of(["TFN", "tax file number"])} ${taxFileNumber(dice)}`,
    ],
    like: [
      DATE,
      PRICE,
      ORDER,
      (dice) => `000-${dice.digits(2)}-${dice.digits(4)}`,
      (dice) => `${dice.digits(3)}-${dice.digits(4)}-${dice.digits(2)}`,
      (dice) => `part ${grouped(dice.digits(9), "-", 3)}`,
      (dice) => `17${dice.digits(8)} seconds`,
      (dice) => `17${dice.digits(11)} milliseconds`,
      (dice) => `1${dice.digits(8)} bytes`,
      (dice) => `invoice 1${dice.digits(11)}`,
    ],
  },
  passport: {
    has: [
      (dice) => `passport no. ${dice.text("CFGHJKLMNPRTVWXYZ", 1)}${dice.digits(8)}`,
      (dice) => `Reisepass: C01X${dice.digits(5)}`,
      (dice) => `my passport number is ${dice.digits(9)}`,
      (dice) => `passeport, délivré à Paris: ${dice.digits(2)}AB${dice.digits(5)}`,
    ],
    like: [
      () => "my passport expires in 2031",
      (dice) => `passport photos cost ${dice.below(90)} EUR`,
      ORDER,
      (dice) => `the passport office, room ${dice.below(900)}`,
    ],
  },
  ip: {
    has: [
      (dice) => `${1 + dice.below(222)}.${dice.below(256)}.${dice.below(256)}.${1 + dice.below(254)}`,
      (dice) => `2001:db8:${dice.text(HEX, 4)}::${1 + dice.below(9)}`,
      (dice) => dice.text(HEX, 12).match(/../g)?.join(":") ?? "",
    ],
    like: [
      VERSION,
      DATE,
      UUID,
      (dice) => `${300 + dice.below(600)}.${dice.below(256)}.1.1`,
      (dice) => `std::${dice.text(LOWER, 6)}::${dice.text(LOWER, 4)}`,
    ],
  },
  key: {
    has: [
      (dice) => `sk-proj-${dice.text(MIXED, 40)}`,
      (dice) => `AKIA${dice.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)}`,
      (dice) => `ghp_${dice.text(MIXED, 36)}`,
      (dice) => `xoxb-${dice.digits(12)}-${dice.text(MIXED, 24)}`,
      (dice) => `AIza${dice.text(MIXED, 35)}`,
      (dice) => `postgres://app:${dice.text(MIXED, 12)}@db.example.com/main`,
    ],
    like: [
      UUID,
      (dice) => dice.text(HEX, 40),
      (dice) => `sk-${dice.text(LOWER, 8)}`,
      () => "https://example.com:8443/path",
      (dice) => `task-${dice.text(LOWER, 30)}`,
    ],
  },
  private_key: {
    has: [
      (dice) =>
        `-----BEGIN PRIVATE KEY-----\n${dice.text(MIXED, 64)}\n${dice.text(MIXED, 40)}\n-----END PRIVATE KEY-----`,
      (dice) => `-----BEGIN RSA PRIVATE KEY-----\\n${dice.text(MIXED, 64)}`,
      (dice) => `-----BEGIN OPENSSH PRIVATE KEY-----\n${dice.text(MIXED, 70)}`,
    ],
    like: [
      (dice) => `-----BEGIN PUBLIC KEY-----\n${dice.text(MIXED, 64)}\n-----END PUBLIC KEY-----`,
      (dice) => `-----BEGIN CERTIFICATE-----\n${dice.text(MIXED, 64)}`,
      () => "a PRIVATE KEY begins with a line of dashes",
    ],
  },
  entropy: {
    has: [
      (dice) => `password: ${dice.text(MIXED, 14)}7`,
      (dice) => `"api_key": "${dice.text(MIXED, 32)}4"`,
      (dice) => `TOKEN=${dice.text(HEX, 40)}`,
      (dice) => `the password is ${dice.text(LOWER, 12)}`,
    ],
    like: [
      () => "password: ${DATABASE_PASSWORD}",
      () => "the token is not valid any more",
      (dice) => `commit ${dice.text(HEX, 40)}`,
      (dice) => `max_tokens: ${dice.digits(4)}`,
      () => "secret=process.env.CLIENT_SECRET",
    ],
  },
};

const BEFORE = ["Please note: ", "I have ", "", "Here it is, ", "Danke! "] as const;
const BEHIND = [" for you.", "", ", as you asked", "\nRegards", " (see above)"] as const;

function figuresOf(kind: string, seed: number): string {
  const dice = new Dice(seed);
  const type = (SECRET_KINDS as readonly string[]).includes(kind) ? "secrets" : "pii";
  const rules = at(setOf(parse({ id: "kind", type, kinds: [kind], action: "flag" })), "prompt");
  const { has, like } = KINDS[kind] ?? { has: [UUID], like: [UUID] };
  const found = (makers: readonly [Make, ...Make[]]) => {
    let count = 0;
    for (let i = 0; i < TEXTS; i++) {
      const text = `${dice.of(BEFORE)}${makers[i % makers.length]?.(dice) ?? ""}${dice.of(BEHIND)}`;
      const findings = new Findings();
      inOnePiece(searchText(rules, findings, text, false));
      if (findings.action !== null) count += 1;
    }
    return count;
  };
  const right = found(has);
  const wrong = found(like);
  const percent = (part: number, all: number) => `${((100 * part) / all).toFixed(1)} %`;
  return `| \`${kind}\` | ${percent(right, right + wrong)} | ${percent(right, TEXTS)} |`;
}

it("find what the guide says that they find", () => {
  const kinds = [...PII_KINDS, ...SECRET_KINDS];
  const rows = kinds.map((kind, i) => figuresOf(kind, i + 1));
  const stated = readFileSync(GUIDE, "utf8")
    .split("\n")
    .filter((line) => /^\| `\w+`\s+\|\s+[\d.]+ %/.test(line))
    .map((line) => line.replaceAll(/\s+\|/g, " |"));
  expect(stated).toEqual(rows);
});
