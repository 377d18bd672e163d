/** Reads a response whose lines are JSON objects, such as the file of a batch, without keeping it. */
import { type Fields, isFields } from "../../core/fields.ts";

/** A longer line is passed over: it is an answer with pictures or sound, of which no batch API is known. */
const MAX_LINE_BYTES = 32 * 1024 * 1024;
const LINE_FEED = 0x0a;

/** Calls `onLine` for every object. Lines that are none are passed over. Rejects when the response breaks off. */
export async function readLines(response: Response, onLine: (line: Fields) => void): Promise<void> {
  let rest: Buffer[] = [];
  let length = 0;
  const end = () => {
    if (length > 0 && length <= MAX_LINE_BYTES) readLine(Buffer.concat(rest), onLine);
    rest = [];
    length = 0;
  };
  const keep = (part: Buffer) => {
    length += part.length;
    if (length <= MAX_LINE_BYTES) rest.push(part);
    else rest = [];
  };
  for await (const value of response.body ?? []) {
    const chunk = Buffer.from(value as Uint8Array);
    let at = 0;
    for (let to = chunk.indexOf(LINE_FEED); to !== -1; to = chunk.indexOf(LINE_FEED, at)) {
      keep(chunk.subarray(at, to));
      end();
      at = to + 1;
    }
    keep(chunk.subarray(at));
  }
  end();
}

function readLine(bytes: Buffer, onLine: (line: Fields) => void): void {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString());
  } catch {
    return;
  }
  if (isFields(value)) onLine(value);
}
