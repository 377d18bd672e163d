/** HTTP requests as bytes. */

/** In a request: replaced, each time the request is sent, by a number of as many digits that no other request has had. */
export const SEQUENCE_MARKER = "<<<<sequence>>>>";

/** Also larger than the numbers of earlier runs. */
let sequence = Date.now() * 1000;

/** Returns the first unused number and reserves so many. */
export function nextSequence(count: number): number {
  sequence += count;
  return sequence - count;
}

export function withSequence(request: Buffer): Buffer {
  const at = request.indexOf(SEQUENCE_MARKER);
  if (at === -1) return request;
  const copy = Buffer.from(request);
  copy.write(String(nextSequence(1)).padStart(SEQUENCE_MARKER.length, "0"), at, "latin1");
  return copy;
}

export function buildRequest(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body: string | Buffer = "",
): Buffer {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const lines = Object.entries({
    host: "127.0.0.1",
    ...headers,
    ...(bytes.length === 0 && method === "GET" ? {} : { "content-length": String(bytes.length) }),
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`), bytes]);
}
