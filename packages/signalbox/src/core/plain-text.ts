/**
 * Makes untrusted text safe for a terminal. Senders of webhooks and calls choose titles and model names; control characters in them could
 * clear the screen, set the window title, forge lines or reverse the text.
 */

/** Control characters (C0, DEL, C1) except tab and line feed, line and paragraph separators, and characters that set the text direction. */
const UNSAFE = /(?![\t\n])[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;
const BREAKS = /[\t\n]+/g;

/** Removes unsafe characters. Tab and line feed are kept. */
export function plainText(text: string): string {
  return text.replace(UNSAFE, "");
}

/** Removes unsafe characters and replaces line breaks and tabs with spaces. */
export function plainLine(text: string): string {
  return plainText(text).replace(BREAKS, " ");
}
