/** Personal data: the form of each kind, and the checks that tell a number from any other number. */
import { isIpAddress } from "../../engines/ip-address/index.ts";
import type { MatchCheck } from "../../engines/text-scan/index.ts";
import type { PII_KINDS } from "../../accounts/index.ts";

export interface KnownText {
  readonly source: string;
  readonly ignoresCase?: true;
  readonly check?: MatchCheck;
}

type PiiKind = (typeof PII_KINDS)[number];

const digitsOf = (text: string) => text.replaceAll(/\D/g, "");
const whole = (isValid: (text: string) => boolean): MatchCheck => {
  return (text) => (isValid(text) ? [0, text.length] : null);
};

function hasLuhn(digits: string): boolean {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i]);
    sum += i % 2 === 0 ? digit : digit * 2 - (digit > 4 ? 9 : 0);
  }
  return digits.length > 0 && sum % 10 === 0;
}

/** Numbers of the large issuers have 13 to 19 digits and begin with 2 to 6. Finds one among other groups of digits. */
const findCard: MatchCheck = (text) => {
  const groups = [...text.matchAll(/\d+/g)];
  for (let first = 0; first < groups.length; first++) {
    let digits = "";
    for (let last = first; last < groups.length && digits.length < 20; last++) {
      digits += groups[last]?.[0] ?? "";
      if (digits.length < 13 || digits.length > 19 || !/^[2-6]/.test(digits) || !hasLuhn(digits)) continue;
      const end = groups[last];
      return [groups[first]?.index ?? 0, (end?.index ?? 0) + (end?.[0].length ?? 0)];
    }
  }
  return null;
};

/** Country → length of its IBAN. */
const IBAN_LENGTHS: Readonly<Record<string, number>> = Object.fromEntries(
  "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 SM27 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20"
    .split(" ")
    .map((entry) => [entry.slice(0, 2), Number(entry.slice(2))]),
);

const findIban: MatchCheck = (text) => {
  const length = IBAN_LENGTHS[text.slice(0, 2).toUpperCase()];
  if (length === undefined) return null;
  let taken = "";
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? "";
    if (character !== " ") taken += character.toUpperCase();
    if (taken.length < length) continue;
    return isIban(taken) ? [0, at + 1] : null;
  }
  return null;
};

function isIban(text: string): boolean {
  let rest = 0;
  for (const character of text.slice(4) + text.slice(0, 4)) {
    const value = Number.parseInt(character, 36);
    if (Number.isNaN(value)) return false;
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  return rest === 1;
}

function isSocialSecurityNumber(text: string): boolean {
  const digits = digitsOf(text);
  return !/^(?:000|666|9)/.test(digits) && !/^...00|0000$/.test(digits);
}

/** France: 13 digits and a key; Corsica has letters. */
function isNir(text: string): boolean {
  const plain = text.replaceAll(" ", "").toUpperCase().replace("2A", "19").replace("2B", "18");
  if (!/^\d{15}$/.test(plain)) return false;
  return Number(97n - (BigInt(plain.slice(0, 13)) % 97n)) === Number(plain.slice(13));
}

/** Germany: ISO 7064, mod 11, 10. */
function isTaxId(text: string): boolean {
  const digits = digitsOf(text);
  let product = 10;
  for (const digit of digits.slice(0, 10)) {
    const sum = (Number(digit) + product) % 10 || 10;
    product = (sum * 2) % 11;
  }
  return (11 - product) % 10 === Number(digits[10]) && /(\d).*\1/.test(digits.slice(0, 10));
}

const DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE";
function isDni(text: string): boolean {
  const plain = text.replaceAll("-", "").toUpperCase();
  const digits = plain.slice(0, -1).replace(/^[XYZ]/, (letter) => String("XYZ".indexOf(letter)));
  return DNI_LETTERS[Number(digits) % 23] === plain.at(-1);
}

function isCpf(text: string): boolean {
  const digits = Array.from(digitsOf(text), Number);
  if (new Set(digits).size === 1) return false;
  const checkOf = (count: number) => {
    const sum = digits.slice(0, count).reduce((total, digit, i) => total + digit * (count + 1 - i), 0);
    return ((sum * 10) % 11) % 10;
  };
  return checkOf(9) === digits[9] && checkOf(10) === digits[10];
}

/** China: ISO 7064, mod 11, 2. */
function isResidentId(text: string): boolean {
  const weights = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
  const sum = weights.reduce((total, weight, i) => total + weight * Number(text[i]), 0);
  return "10X98765432"[sum % 11] === text.at(-1)?.toUpperCase();
}

const VERHOEFF = [
  "0123456789",
  "1234067895",
  "2340178956",
  "3401289567",
  "4012395678",
  "5987604321",
  "6598710432",
  "7659821043",
  "8765932104",
  "9876543210",
];
const VERHOEFF_TURN = [
  "0123456789",
  "1576283094",
  "5803796142",
  "8916043527",
  "9453126870",
  "4286573901",
  "2793806415",
  "7046913258",
];
/** India. */
function isAadhaar(text: string): boolean {
  let check = 0;
  Array.from(digitsOf(text))
    .toReversed()
    .forEach((digit, i) => {
      check = Number(VERHOEFF[check]?.[Number(VERHOEFF_TURN[i % 8]?.[Number(digit)])]);
    });
  return check === 0;
}

/** Σ digit × weight. */
const weighed = (digits: string, weights: readonly number[]) =>
  weights.reduce((sum, weight, i) => sum + weight * Number(digits[i]), 0);

/** Japan: My Number. */
function isMyNumber(text: string): boolean {
  const digits = digitsOf(text);
  // More groups are another number, such as a card.
  if (digits.length !== 12) return false;
  const rest = weighed(digits, [6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
  return Number(digits[11]) === (rest < 2 ? 0 : 11 - rest);
}

const CURP_CHARACTERS = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ";
/** Mexico. */
function isCurp(text: string): boolean {
  const values = Array.from(text.toUpperCase(), (character) => CURP_CHARACTERS.indexOf(character));
  const sum = values.slice(0, 17).reduce((total, value, i) => total + value * (18 - i), 0);
  return (10 - (sum % 10)) % 10 === values[17];
}

/** Six digits: year, month and day. */
function isBirthday(digits: string): boolean {
  const [month, day] = [Number(digits.slice(2, 4)), Number(digits.slice(4, 6))];
  return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

/** South Korea. Numbers that were given since October 2020 have no check digit: the form with its hyphen has to do. */
function isResidentNumber(text: string): boolean {
  const digits = digitsOf(text);
  if (!isBirthday(digits)) return false;
  const sum = weighed(digits, [2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5]);
  return text.includes("-") || (11 - (sum % 11)) % 10 === Number(digits[12]);
}

/** Russia: the number of the pension insurance. */
function isSnils(text: string): boolean {
  const digits = digitsOf(text);
  const check = weighed(digits, [9, 8, 7, 6, 5, 4, 3, 2, 1]) % 101;
  return (check === 100 ? 0 : check) === Number(digits.slice(9)) && !digits.startsWith("000");
}

/** Russia: the tax number of a person. */
function isInn(digits: string): boolean {
  const first = (weighed(digits, [7, 2, 4, 10, 3, 5, 9, 4, 6, 8]) % 11) % 10;
  const second = (weighed(digits, [3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8]) % 11) % 10;
  return first === Number(digits[10]) && second === Number(digits[11]) && !digits.startsWith("00");
}

/** Australia. */
function isTaxFileNumber(text: string): boolean {
  return weighed(digitsOf(text), [1, 4, 3, 7, 5, 8, 6, 9, 10]) % 11 === 0;
}

/** A number that is nothing by its form alone counts beside the words for it. */
function beside(words: string, number: string, isValid: (text: string) => boolean): KnownText {
  const end = new RegExp(`${number}$`);
  return {
    source: String.raw`(?:${words})[ :#.=]{0,3}(?:(?:is|no|number)[ :#.=]{1,3})?${number}\b`,
    ignoresCase: true,
    check: (text) => {
      const found = end.exec(text);
      return found !== null && isValid(found[0]) ? [found.index, text.length] : null;
    },
  };
}

function isIpv4(text: string): boolean {
  return text.split(".").every((part) => Number(part) < 256 && (part === "0" || !part.startsWith("0")));
}

/** Fewer groups are more often code than an address. */
function isIpv6(text: string): boolean {
  return isIpAddress(text) && text.split(":").filter((group) => group !== "").length > 2;
}

const hasPhoneDigits = (text: string) => {
  const { length } = digitsOf(text);
  return length >= 8 && length <= 15;
};

const PASSPORT_WORDS = "passport|passeport|reisepass|pasaporte|passaporto";
const lastPart: MatchCheck = (text) => {
  const part = /[A-Z]{0,3}\d[A-Z0-9]{5,8}$/i.exec(text);
  return part === null ? null : [part.index, text.length];
};

export const PII: Readonly<
  Record<PiiKind, { readonly label: string; readonly texts: readonly KnownText[] }>
> = {
  email: {
    label: "EMAIL",
    texts: [{ source: String.raw`[a-zA-Z0-9][a-zA-Z0-9._%+\-]*@(?:[a-zA-Z0-9\-]+\.)+[a-zA-Z]{2,24}\b` }],
  },
  phone: {
    label: "PHONE",
    texts: [
      {
        source: String.raw`(?:\+|\b00)[1-9]\d{0,2}[ ().\-/]{0,2}(?:\d[ ().\-/]{0,2}){5,12}\d\b`,
        check: whole(hasPhoneDigits),
      },
      { source: String.raw`(?:\(\d{3}\) ?|\b\d{3}[ .\-])\d{3}[ .\-]\d{4}\b` },
      { source: String.raw`\b0\d{2,4}[ /\-]\d{3,8}(?:[ \-]\d{1,5})?\b`, check: whole(hasPhoneDigits) },
    ],
  },
  card: { label: "CARD", texts: [{ source: String.raw`\b\d(?:[ \-]?\d){12,36}\b`, check: findCard }] },
  iban: {
    label: "IBAN",
    texts: [{ source: String.raw`\b[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]){11,30}\b`, check: findIban }],
  },
  national_id: {
    label: "ID",
    texts: [
      { source: String.raw`\b\d{3}[ \-]\d{2}[ \-]\d{4}\b`, check: whole(isSocialSecurityNumber) },
      { source: String.raw`\b[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]\b` },
      { source: String.raw`\b\d{3}[ \-]\d{3}[ \-]\d{3}\b`, check: whole((text) => hasLuhn(digitsOf(text))) },
      {
        source: String.raw`\b[12] ?\d{2} ?\d{2} ?(?:\d{2}|2[ABab]) ?\d{3} ?\d{3} ?\d{2}\b`,
        check: whole(isNir),
      },
      { source: String.raw`\b[1-9]\d ?\d{3} ?\d{3} ?\d{3}\b`, check: whole(isTaxId) },
      { source: String.raw`\b(?:\d{8}|[XYZxyz]-?\d{7})-?[A-Za-z]\b`, check: whole(isDni) },
      { source: String.raw`\b[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]\b`, ignoresCase: true },
      { source: String.raw`\b[2-9]\d{3}[ \-]?\d{4}[ \-]?\d{4}\b`, check: whole(isAadhaar) },
      { source: String.raw`\b\d{3}\.\d{3}\.\d{3}-\d{2}\b`, check: whole(isCpf) },
      { source: String.raw`\b[1-9]\d{5}(?:19|20)\d{2}[01]\d[0-3]\d{4}[\dXx]\b`, check: whole(isResidentId) },
      { source: String.raw`\b\d{4}(?:(?: \d{4}){2,4}|(?:-\d{4}){2,4})\b`, check: whole(isMyNumber) },
      beside("マイナンバー|個人番号|my ?number", String.raw`\d{12}`, isMyNumber),
      {
        source: String.raw`\b[A-Z][AEIOUX][A-Z]{2}\d{2}[01]\d[0-3]\d[HMX][A-Z]{5}[A-Z\d]\d\b`,
        ignoresCase: true,
        check: whole(isCurp),
      },
      { source: String.raw`\b\d{2}[01]\d[0-3]\d-?[1-8]\d{6}\b`, check: whole(isResidentNumber) },
      { source: String.raw`\b\d{3}-?\d{3}-?\d{3}[ \-]?\d{2}\b`, check: whole(isSnils) },
      { source: String.raw`\b\d{12}\b`, check: whole(isInn) },
      { source: String.raw`\b\d{3} \d{3} \d{3}\b`, check: whole(isTaxFileNumber) },
      beside("tfn|tax file", String.raw`\d{9}`, isTaxFileNumber),
    ],
  },
  passport: {
    label: "PASSPORT",
    texts: [
      {
        source: String.raw`\b(?:${PASSPORT_WORDS})[a-zé°#:. ]{0,24}[ :#][A-Z]{0,3}\d[A-Z0-9]{5,8}\b`,
        ignoresCase: true,
        check: lastPart,
      },
      { source: String.raw`\bP<[A-Z]{3}[A-Z<]{20,39}` },
    ],
  },
  ip: {
    label: "IP",
    texts: [
      { source: String.raw`\b(?:\d{1,3}\.){3}\d{1,3}\b`, check: whole(isIpv4) },
      {
        source: String.raw`(?:[0-9A-Fa-f]{1,4}:|::)(?:[0-9A-Fa-f]{0,4}:){1,7}[0-9A-Fa-f]{0,4}`,
        check: whole(isIpv6),
      },
      { source: String.raw`\b(?:[0-9A-Fa-f]{2}[:\-]){5}[0-9A-Fa-f]{2}\b` },
    ],
  },
};
