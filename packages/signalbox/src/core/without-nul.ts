/** PostgreSQL's text has no NUL character: one row with it would fail the whole statement, again and again. */
export function withoutNul(text: string): string {
  return text.includes("\0") ? text.replaceAll("\0", "\uFFFD") : text;
}
