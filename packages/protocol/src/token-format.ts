/**
 * The format of a token: `sbx_`, 40 random base62 characters, and their checksum in 6 characters.
 *
 * With prefix and checksum, secret scanners detect tokens without false positives, and the service rejects a mistyped token without a
 * look-up. The checksum detects typing errors only; it is not a secret.
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

/** True if the text has the format of a token. The token need not exist. */
export function isTokenShaped(text: string): boolean {
  const match = TOKEN.exec(text);
  return match !== null && checksum(match[1] ?? "") === match[2];
}

/** The last four characters, which lists show to distinguish tokens. */
export function tokenSuffix(token: string): string {
  return token.slice(-4);
}

function randomBase62(length: number): string {
  let text = "";
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length))) {
      // 248 is the largest multiple of 62 below 256. Larger bytes are skipped, so that all characters are equally likely.
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

/** CRC-32 (IEEE 802.3) of ASCII text. Written here because browsers have no node:zlib; with a table because every request computes it. */
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
