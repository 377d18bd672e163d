/**
 * The shape of a token: `sbx_`, 40 random base62 characters, and a 6-character checksum of them.
 *
 * The fixed prefix and the checksum let leak scanners find tokens without false alarms, and let the service turn away a
 * mistyped one without looking it up. The checksum protects against typing errors only; the randomness is the secret.
 */

const PREFIX = "sbx_";
const RANDOM_LENGTH = 40;
const CHECKSUM_LENGTH = 6;
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const TOKEN = new RegExp(`^${PREFIX}([0-9A-Za-z]{${RANDOM_LENGTH}})([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`);

export function generateToken(): string {
  const random = randomBase62(RANDOM_LENGTH);
  return PREFIX + random + checksum(random);
}

/** True for text that this format could have produced; says nothing about whether the token exists. */
export function isTokenShaped(text: string): boolean {
  const match = TOKEN.exec(text);
  return match !== null && checksum(match[1] ?? "") === match[2];
}

/** The part of a token that listings show, enough to tell two apart and far too little to guess the rest. */
export function tokenSuffix(token: string): string {
  return token.slice(-4);
}

function randomBase62(length: number): string {
  let text = "";
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length))) {
      // 248 is the largest multiple of 62 below 256: dropping the rest keeps every character equally likely.
      if (byte < 248 && text.length < length) text += BASE62.charAt(byte % 62);
    }
  }
  return text;
}

function checksum(text: string): string {
  let rest = crc32(text);
  let digits = "";
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    digits = BASE62.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

/** CRC-32 (IEEE 802.3) of ASCII text; by hand because this package may not depend on node:zlib, by table because every request pays. */
function crc32(text: string): number {
  let crc = 0xffffffff;
  for (let i = 0; i < text.length; i++)
    crc = (CRC_TABLE[(crc ^ text.charCodeAt(i)) & 0xff] ?? 0) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});
