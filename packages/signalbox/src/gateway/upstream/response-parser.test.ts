import fc from "fast-check";
import { expect, it } from "vitest";
import { type ResponseHead, ResponseParser } from "./response-parser.ts";

interface Parsed {
  readonly heads: ResponseHead[];
  readonly bodies: string[];
  readonly ends: number;
  readonly isDone: boolean;
  readonly canReuse: boolean;
  readonly finish: () => boolean;
}

function parse(pieces: readonly (string | Buffer)[], isHeadRequest = false): Parsed {
  const heads: ResponseHead[] = [];
  const bodies: string[] = [];
  let ends = 0;
  const parser = new ResponseParser(2048);
  parser.begin(
    {
      onHead: (head) => heads.push(head),
      onBody(chunk, isLast) {
        if (chunk.length > 0) bodies.push(chunk.toString("latin1"));
        if (isLast) ends += 1;
      },
    },
    isHeadRequest,
  );
  for (const piece of pieces) parser.push(Buffer.from(piece as string, "latin1"));
  return {
    heads,
    bodies,
    get ends() {
      return ends;
    },
    isDone: parser.isDone,
    canReuse: parser.canReuse,
    finish: () => parser.finish(),
  };
}

function split(text: string, cuts: readonly number[]): string[] {
  const at = [...new Set(cuts.map((cut) => cut % text.length))].sort((a, b) => a - b);
  return [0, ...at].map((from, i) => text.slice(from, at[i])).filter((piece) => piece !== "");
}

const FIXED = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nX-Odd:  spaced \r\n\r\nhello";
const CHUNKED =
  "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0A;ext=1\r\n0123456789\r\n0\r\ntrailer: x\r\n\r\n";

it("reads a response with a length and keeps the connection", () => {
  const result = parse([FIXED]);
  expect(result.heads[0]).toMatchObject({ status: 200, statusText: "OK" });
  expect(result.heads[0]?.rawHeaders).toEqual(["content-length", "5", "X-Odd", "spaced"]);
  expect(result.bodies).toEqual(["hello"]);
  expect(result).toMatchObject({ ends: 1, isDone: true, canReuse: true });
});

it("squeezes chunked framing out into one body piece a read", () => {
  const result = parse([CHUNKED]);
  expect(result.bodies).toEqual(["abc0123456789"]);
  expect(result).toMatchObject({ ends: 1, isDone: true, canReuse: true });
});

it("gives the same bytes and one end wherever the reads are cut", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(FIXED, CHUNKED),
      fc.array(fc.nat({ max: 200 }), { maxLength: 12 }),
      (text, cuts) => {
        const result = parse(split(text, cuts));
        expect(result.bodies.join("")).toBe(text === FIXED ? "hello" : "abc0123456789");
        expect(result).toMatchObject({ ends: 1, isDone: true, canReuse: true });
      },
    ),
  );
});

it("never delivers framing for any chunk sizes", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ minLength: 1, maxLength: 40 }), { maxLength: 6 }),
      fc.array(fc.nat({ max: 300 }), { maxLength: 8 }),
      (texts, cuts) => {
        const bytes = texts.map((text) => Buffer.from(text, "utf8").toString("latin1"));
        const wire = `HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n${bytes.map((text) => `${text.length.toString(16)}\r\n${text}\r\n`).join("")}0\r\n\r\n`;
        expect(parse(split(wire, cuts)).bodies.join("")).toBe(bytes.join(""));
      },
    ),
  );
});

it("passes over informational responses", () => {
  const result = parse([`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${FIXED}`]);
  expect(result.heads.map((head) => head.status)).toEqual([200]);
  expect(result.bodies).toEqual(["hello"]);
});

it.each([
  ["a response to HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n", true],
  ["204", "HTTP/1.1 204 No Content\r\n\r\n", false],
  ["304 with a length", "HTTP/1.1 304 Not Modified\r\ncontent-length: 99\r\n\r\n", false],
  ["a length of zero", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", false],
])("ends %s without a body", (_, wire, isHead) => {
  const result = parse([wire], isHead);
  expect(result.bodies).toEqual([]);
  expect(result).toMatchObject({ ends: 1, isDone: true, canReuse: true });
});

it("reads a body without length until the connection closes", () => {
  const result = parse(["HTTP/1.1 200 OK\r\n\r\nab", "cd"]);
  expect(result.isDone).toBe(false);
  expect(result.finish()).toBe(true);
  expect(result.bodies.join("")).toBe("abcd");
  expect(result).toMatchObject({ ends: 1, canReuse: false });
});

it("knows a response that was cut short", () => {
  expect(parse(["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab"]).finish()).toBe(false);
  expect(parse(["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab"]).finish()).toBe(false);
  expect(parse(["HTTP/1.1 200"]).finish()).toBe(false);
});

it.each([
  ["the server closes", "HTTP/1.1 200 OK\r\nconnection: Close\r\ncontent-length: 0\r\n\r\n"],
  ["it is HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n"],
  ["bytes follow the response", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nxHTTP/1.1 200 OK"],
  [
    "both framings were announced",
    "HTTP/1.1 200 OK\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
  ],
])("does not use a connection again when %s", (_, wire) => {
  expect(parse([wire])).toMatchObject({ isDone: true, canReuse: false });
});

it("does not pass on a length that chunked framing overrides", () => {
  const result = parse([
    "HTTP/1.1 200 OK\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
  ]);
  expect(result.heads[0]?.rawHeaders).toEqual(["transfer-encoding", "chunked"]);
});

it.each([
  ["no HTTP at all", "SSH-2.0-OpenSSH\r\n\r\n"],
  ["two different lengths", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\n"],
  ["a negative length", "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"],
  ["an unknown transfer coding", "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n"],
  ["a folded header", "HTTP/1.1 200 OK\r\na: b\r\n c: d\r\n\r\n"],
  ["a header without colon", "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n"],
  ["an upgrade nobody asked for", "HTTP/1.1 101 Switching Protocols\r\n\r\n"],
  ["a chunk size that is no number", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n"],
  ["a chunk longer than announced", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n"],
  ["a bare line feed in framing", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\na\r\n"],
  ["headers over the limit", `HTTP/1.1 200 OK\r\na: ${"x".repeat(3000)}\r\n\r\n`],
  ["headers over the limit that never end", `HTTP/1.1 200 OK\r\na: ${"x".repeat(3000)}`],
])("refuses %s", (_, wire) => {
  expect(() => parse([wire])).toThrowError(expect.objectContaining({ kind: "broken" }));
});
