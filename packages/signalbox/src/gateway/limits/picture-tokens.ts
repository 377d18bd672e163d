/** Tokens that OpenAI's models write for a picture, by quality. */
const TOKENS: ReadonlyMap<string, number> = new Map([
  ["low", 272],
  ["medium", 1056],
  ["high", 4160],
]);
/** Of another quality, which may be the best. */
const LARGEST = 6240;

/** A picture that is not square has half as many again. */
export function pictureTokens(quality: string, size: string): number {
  const tokens = TOKENS.get(quality);
  const isSquare = /^(\d+)x\1$/.test(size);
  return tokens === undefined ? LARGEST : Math.ceil(tokens * (isSquare ? 1 : 1.5));
}
