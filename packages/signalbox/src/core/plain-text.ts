/**
 * Text from elsewhere made fit for a terminal. Whoever may send a webhook or make a call chooses what stands in a model's name or a title; printed
 * as it is, it could clear the screen, set the window's title, forge lines, or be shown in another order than it is stored in.
 */

/** Control characters (C0, DEL, C1) without tab and line feed, and what changes the direction or the lines of the text that follows. */
const UNFIT = /(?![\t\n])[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;
const BREAKS = /[\t\n]+/g;

/** Without control characters but tab and line feed, and without overrides of the reading direction. */
export function plainText(text: string): string {
  return text.replace(UNFIT, "");
}

/** The same on one line. */
export function plainLine(text: string): string {
  return plainText(text).replace(BREAKS, " ");
}
