/**
 * Characters that people read as another one. Patterns that see through tricks match every spelling of a letter or digit, and pass over
 * characters that have no width.
 */

/** ASCII letter → letters of other scripts with the same shape in common fonts. */
const SHAPES: Readonly<Record<string, string>> = {
  a: "аɑα",
  b: "ЬƅᏏ",
  c: "сϲᴄ",
  d: "ԁɗ",
  e: "еҽɛ",
  f: "ғ",
  g: "ɡց",
  h: "һհ",
  i: "іıɩι",
  j: "јϳ",
  k: "κк",
  l: "ӏⅼ",
  m: "м",
  n: "ոп",
  o: "оοօ",
  p: "рρ",
  q: "ԛգ",
  r: "гᴦ",
  s: "ѕꜱ",
  t: "тτ",
  u: "υսᴜ",
  v: "ѵνᴠ",
  w: "ԝѡᴡ",
  x: "хχ",
  y: "уүγ",
  z: "ᴢ",
  A: "АΑᎪ",
  B: "ВΒᏴ",
  C: "СϹᏟ",
  D: "Ꭰ",
  E: "ЕΕᎬ",
  G: "ԌᏀ",
  H: "НΗᎻ",
  I: "ІΙӀ",
  J: "ЈᎫ",
  K: "КΚᏦ",
  L: "Ꮮ",
  M: "МΜᎷ",
  N: "Ν",
  O: "ОΟՕ",
  P: "РΡᏢ",
  Q: "Ԛ",
  R: "Ꭱ",
  S: "ЅᏚ",
  T: "ТΤᎢ",
  V: "Ѵ",
  W: "ԜᎳ",
  X: "ХΧ",
  Y: "ҮΥ",
  Z: "ΖᏃ",
  "-": "‐‑‒–—−",
  ".": "․。",
  "@": "＠",
};

/** Blocks with styled letters and digits: superscripts, letter-like, enclosed, full width, mathematical. */
const STYLED: readonly (readonly [number, number])[] = [
  [0x2070, 0x209c],
  [0x2100, 0x214f],
  [0x2460, 0x24ff],
  [0xff01, 0xff5e],
  [0x1d400, 0x1d7ff],
];

/** Other code point → the ASCII code that it stands for. */
const PLAIN = new Map<number, number>();
/** ASCII code → code points that stand for it. */
const OTHERS = new Map<number, number[]>();

function add(other: number, ascii: number): void {
  if (other === ascii || PLAIN.has(other)) return;
  PLAIN.set(other, ascii);
  const others = OTHERS.get(ascii);
  if (others === undefined) OTHERS.set(ascii, [other]);
  else others.push(other);
}

function fill(): void {
  for (const [ascii, others] of Object.entries(SHAPES)) {
    for (const other of others) add(other.codePointAt(0) ?? 0, ascii.charCodeAt(0));
  }
  for (const [first, last] of STYLED) {
    for (let code = first; code <= last; code++) {
      const plain = String.fromCodePoint(code).normalize("NFKC");
      if (plain.length === 1 && plain.charCodeAt(0) < 128) add(code, plain.charCodeAt(0));
    }
  }
  const digit = /\p{Nd}/u;
  // The digits of every script stand in a row, from 0 to 9.
  for (let code = 0x660, run = 0; code < 0x1fc00; code++) {
    run = digit.test(String.fromCodePoint(code)) ? run + 1 : 0;
    if (run > 0) add(code, 0x30 + ((run - 1) % 10));
  }
}

/** The code points that stand for an ASCII character. Filled with the first question: most installations have no rule. */
export function lookAlikesOf(ascii: number): readonly number[] {
  if (PLAIN.size === 0) fill();
  return OTHERS.get(ascii) ?? [];
}

/** Between two strings of a document, so that a text that is split over them is found. It is no character. */
export const SOFT_BREAK = "\u{10fffe}";
export const SOFT_BREAK_CODE = 0x10fffe;

/** Without width: soft hyphen, joiners, marks of direction, variation selectors, tags. First and last code points. */
export const INVISIBLE: readonly (readonly [number, number])[] = [
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180e],
  [0x200b, 0x200f],
  [0x202a, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0x1bca0, 0x1bca3],
  [0xe0000, 0xe0fff],
];

const HIDDEN = new RegExp(
  `[${INVISIBLE.map(([first, last]) => `\\u{${first.toString(16)}}-\\u{${last.toString(16)}}`).join("")}${SOFT_BREAK}]`,
  "gu",
);
const PLAIN_ASCII = /^[\x20-\x7e]*$/;

/** The text as a person reads it, in ASCII where it can be. */
export function toPlainText(text: string): string {
  if (PLAIN_ASCII.test(text)) return text;
  if (PLAIN.size === 0) fill();
  let plain = "";
  for (const character of text.replaceAll(HIDDEN, "")) {
    const ascii = PLAIN.get(character.codePointAt(0) ?? 0);
    plain += ascii === undefined ? character : String.fromCharCode(ascii);
  }
  return plain;
}
