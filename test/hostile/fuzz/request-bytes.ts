/** Bytes of requests on one connection: plain ones, nearly plain ones, and others. */
import { pick, type Random } from "../../support/ledger/random.ts";
import { chance, mutateOnce, randomBytes, repeat, upTo } from "./bytes.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
const ODD_METHODS = [
  "get",
  "GETT",
  "TRACE",
  "CONNECT",
  "PRI",
  "SOURCE",
  "QUERY",
  "M-SEARCH",
  "",
  " GET",
  "\r\nGET",
];
const TARGETS = [
  "/",
  "/v1/a/b/c",
  "/webhooks/github?x=1&y=%20",
  "/a//b/../c?d?e",
  "/~!$&'()*+,;=:@[]^`{|}\\\"<>",
];
const ODD_TARGETS = [
  "*",
  "http://x/y",
  "/a#b",
  "/a b",
  "//x",
  "x",
  "/\xe9",
  "/\x7f",
  "/\t",
  "",
  "/a?b#c",
  "x:80",
];
const VERSIONS = ["HTTP/1.1"];
const ODD_VERSIONS = [
  "HTTP/1.0",
  "HTTP/2.0",
  "HTTP/0.9",
  "http/1.1",
  "HTTP/1.1 ",
  "HTTP/1.10",
  "HTTP/11",
  "",
];
const NAMES = [
  "Accept",
  "authorization",
  "X-Request-Id",
  "x-a",
  "Cookie",
  "cookie",
  "Set-Cookie",
  "Content-Type",
  "content-type",
  "TE",
  "Via",
  "User-Agent",
  "user-agent",
  "X-Forwarded-For",
  "Keep-Alive",
  "date",
  "Age",
  "ETag",
  "From",
  "Referer",
  "If-Modified-Since",
  "Max-Forwards",
  "Proxy-Authorization",
  "__proto__",
  "constructor",
  "!#$%&'*+-.^_`|~9",
  "Content-Lengt",
  "Content-Length2",
  "Transfer_Encoding",
];
const ODD_NAMES = [
  "",
  "a b",
  "a\tb",
  "a ",
  " a",
  "\xe9",
  "a\0",
  "a(b",
  "a/b",
  "a:b",
  "a\rb",
  "a\nb",
  "(",
  "\x7f",
];
const VALUES = [
  "",
  "x",
  "a, b",
  "a  b\tc",
  "gzip;q=0.5",
  '"q"',
  "trailers",
  "Bearer abc.def_ghi",
  "x".repeat(200),
  "a:b: c",
];
const ODD_VALUES = [
  "\xe9",
  "\0",
  "\x7f",
  "\x01",
  "a\rb",
  "a\nb",
  "a\r\n b",
  "a\x0bb",
  "a\x0cb",
  "\xff\xfe",
  "x".repeat(17_000),
];
const SPECIAL = [
  "Host: y",
  "host:",
  "HOST:\tz ",
  "Connection: keep-alive",
  "connection: Keep-Alive ",
  "Connection: close",
  "Connection: keep-alive, close",
  "Connection: upgrade",
  "Connection: x-a",
  "Connection:",
  "Content-Length: 0",
  "Content-Length: 5",
  "content-length:5",
  "Content-Length: 5 ",
  "Content-Length: 05",
  "Content-Length: +5",
  "Content-Length: 0x5",
  "Content-Length: 5, 5",
  "Content-Length: 5 5",
  "Content-Length: -1",
  "Content-Length:",
  "Content-Length: 99999999999999999999",
  "Content-Length: 999999999999999",
  "Content-Length : 5",
  "Content-Length\t: 5",
  "Transfer-Encoding: chunked",
  "transfer-encoding: identity",
  "Transfer-Encoding:",
  "Transfer-Encoding : chunked",
  "Transfer-Encoding: gzip, chunked",
  "TRANSFER-ENCODING: chunked ",
  "Expect: 100-continue",
  "Upgrade: websocket",
  "Upgrade: h2c",
  "Trailer: x",
  "Proxy-Connection: keep-alive",
  "Proxy-Connection: close",
  "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
  " folded: x",
  "\tfolded",
  "no-colon",
  ":",
];
const ENDS = ["\r\n"];
const ODD_ENDS = ["\n", "\r", "\r\r\n", "\n\r", "\r\n ", " \r\n", "\t\r\n", ""];

/** Several requests; the more of them are odd, the sooner a parser refuses them. */
export function requestBytes(random: Random): string {
  const oddity = pick(random, [0, 0, 0.02, 0.05, 0.2]);
  const count = 1 + upTo(random, 3);
  const bytes = Array.from({ length: count }, () => oneRequest(random, oddity)).join("");
  const changes = chance(random, 0.4) ? 1 + upTo(random, 2) : 0;
  return repeat(random, changes, () => 0).reduce((text) => mutateOnce(random, text), bytes);
}

function oneRequest(random: Random, oddity: number): string {
  const choose = (usual: readonly string[], odd: readonly string[]) =>
    pick(random, chance(random, oddity) ? odd : usual);
  const end = () => choose(ENDS, ODD_ENDS);
  const body = chance(random, 0.5) ? randomBytes(random, 40) : null;
  const lines = repeat(random, chance(random, 0.02) ? 140 : 6, () => {
    if (chance(random, oddity)) return pick(random, SPECIAL);
    const space = chance(random, 0.9) ? " " : pick(random, ["", "  ", "\t", " \t "]);
    const after = chance(random, 0.9) ? "" : pick(random, [" ", "\t", " \t "]);
    return `${choose(NAMES, ODD_NAMES)}:${space}${choose(VALUES, ODD_VALUES)}${after}`;
  });
  if (!chance(random, oddity)) lines.splice(upTo(random, lines.length + 1), 0, "Host: x");
  if (body !== null && !chance(random, oddity)) {
    const length = chance(random, oddity) ? upTo(random, 60) : body.length;
    lines.splice(
      upTo(random, lines.length + 1),
      0,
      `${pick(random, ["Content-Length", "content-length"])}: ${length}`,
    );
  }
  if (chance(random, 0.3)) lines.push("Connection: keep-alive");
  const line = `${choose(METHODS, ODD_METHODS)} ${choose(TARGETS, ODD_TARGETS)} ${choose(VERSIONS, ODD_VERSIONS)}`;
  return line + end() + lines.map((text) => text + end()).join("") + end() + (body ?? "");
}
