/** A strict reader of consecutive HTTP/1.1 responses on one connection. */

export interface ReadResponse {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export interface ReadResult {
  readonly responses: readonly ReadResponse[];
  /** Bytes after the last complete response. */
  readonly rest: string;
  /** True after a response that switches protocols (101) or has no length. */
  readonly isOpenEnded: boolean;
}

/**
 * `methods` are those of the requests, in order. Further responses may answer HEAD requests, which is inferred from
 * the bytes after the head. Throws for bytes that are not a response.
 */
export function readResponses(text: string, methods: readonly string[]): ReadResult {
  const responses: ReadResponse[] = [];
  let at = 0;
  while (at < text.length) {
    const headEnd = text.indexOf("\r\n\r\n", at);
    if (headEnd === -1) break;
    const [statusLine = "", ...lines] = text.slice(at, headEnd).split("\r\n");
    const status = Number(/^HTTP\/1\.1 (\d{3}) [\x20-\x7e]*$/.exec(statusLine)?.[1] ?? Number.NaN);
    if (Number.isNaN(status)) throw new Error(`no status line: ${JSON.stringify(statusLine.slice(0, 200))}`);
    const headers = new Map(lines.map(readField));
    const bodyStart = headEnd + 4;
    if (status === 101)
      return {
        responses: [...responses, { status, headers, body: "" }],
        rest: text.slice(bodyStart),
        isOpenEnded: true,
      };
    if (status < 200) {
      at = bodyStart;
      continue;
    }
    const method = methods[responses.length];
    const isBare =
      method === "HEAD" ||
      status === 204 ||
      status === 304 ||
      (method === undefined && (bodyStart === text.length || text.startsWith("HTTP/1.1 ", bodyStart)));
    const body = isBare ? { text: "", end: bodyStart } : readBody(text, bodyStart, headers);
    if (body === "until close")
      return {
        responses: [...responses, { status, headers, body: text.slice(bodyStart) }],
        rest: "",
        isOpenEnded: true,
      };
    if (body === null) break;
    responses.push({ status, headers, body: body.text });
    at = body.end;
  }
  return { responses, rest: text.slice(at), isOpenEnded: false };
}

function readField(line: string): [string, string] {
  const match = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\x80-\xff\t]*)$/.exec(line);
  if (match === null) throw new Error(`no header line: ${JSON.stringify(line.slice(0, 200))}`);
  return [(match[1] ?? "").toLowerCase(), (match[2] ?? "").trimEnd()];
}

/** Null if incomplete. */
function readBody(
  text: string,
  start: number,
  headers: ReadonlyMap<string, string>,
): { text: string; end: number } | "until close" | null {
  if (headers.get("transfer-encoding") === "chunked") return readChunked(text, start);
  const length = headers.get("content-length");
  if (length === undefined) return "until close";
  if (!/^\d+$/.test(length)) throw new Error(`content-length ${length}`);
  const end = start + Number(length);
  return end > text.length ? null : { text: text.slice(start, end), end };
}

function readChunked(text: string, start: number): { text: string; end: number } | null {
  let body = "";
  for (let at = start; ;) {
    const lineEnd = text.indexOf("\r\n", at);
    if (lineEnd === -1) return null;
    const size = text.slice(at, lineEnd);
    if (!/^[0-9a-f]+$/i.test(size)) throw new Error(`chunk size ${JSON.stringify(size.slice(0, 50))}`);
    const dataEnd = lineEnd + 2 + Number.parseInt(size, 16);
    if (dataEnd + 2 > text.length) return null;
    if (text.slice(dataEnd, dataEnd + 2) !== "\r\n") throw new Error("a chunk is longer than its size");
    if (size === "0") return { text: body, end: dataEnd + 2 };
    body += text.slice(lineEnd + 2, dataEnd);
    at = dataEnd + 2;
  }
}
