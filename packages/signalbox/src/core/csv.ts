/** Comma-separated values (RFC 4180) that spreadsheets open without running them. */

export type CsvValue = string | number | boolean | null | undefined;

/** A text that begins like this is a formula for spreadsheets. A number is written as it is. */
const FORMULA = /^[=+\-@\t\r]/;
const NEEDS_QUOTES = /[",\r\n]/;

/** Returns one line with its end. */
export function csvLine(values: readonly CsvValue[]): string {
  return `${values.map(csvField).join(",")}\r\n`;
}

/** The head is sent with the first lines: if these cannot be read, nothing has been sent yet, and the client can be told. */
export async function* csvWithHead(head: string, lines: AsyncIterable<string>): AsyncGenerator<string> {
  let before = head;
  for await (const line of lines) {
    yield before + line;
    before = "";
  }
  if (before !== "") yield before;
}

function csvField(value: CsvValue): string {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
