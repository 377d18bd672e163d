/**
 * Text from elsewhere made fit for a terminal. Whoever may send a webhook or make a call chooses what stands in a model's name or a title; printed
 * as it is, it could clear the screen, set the window's title, forge lines, or be shown in another order than it is stored in.
 */

/** C0 without tab and line feed, DEL, C1, and the characters that change the direction or the lines of what follows. */
// oxlint-disable-next-line no-control-regex -- control characters are what this is about
const UNFIT =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
const BREAKS = /[\t\n]+/g;

/** Without control characters but tab and line feed, and without overrides of the reading direction. */
export function plainText(text: string): string {
  return text.replace(UNFIT, "");
}

/** The same on one line. */
export function plainLine(text: string): string {
  return plainText(text).replace(BREAKS, " ");
}
