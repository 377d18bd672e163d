import fc from "fast-check";
import { expect, it } from "vitest";
import { ResponseParser } from "./response-parser.ts";
import type { ResponseHead } from "./upstream.ts";

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

it("reads a response with a length and can reuse the connection", () => {
  const result = parse([FIXED]);
  expect(result.heads[0]).toMatchObject({ status: 200, statusText: "OK" });
  expect(result.heads[0]?.rawHeaders).toEqual(["content-length", "5", "X-Odd", "spaced"]);
  expect(result.bodies).toEqual(["hello"]);
  expect(result).toMatchObject({ ends: 1, isDone: true, canReuse: true });
});

it("removes chunk framing and reports one body chunk per read", () => {
  const result = parse([CHUNKED]);
  expect(result.bodies).toEqual(["abc0123456789"]);
  expect(result).toMatchObject({ ends: 1, isDone: true, canReuse: true });
});

it("reports the same bytes and one end however the response is split", () => {
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

it("never reports framing bytes, for any chunk sizes", () => {
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

it("refuses informational responses without end, however they arrive", () => {
  const early = "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n";
  expect(parse([early.repeat(100), FIXED]).heads).toHaveLength(1);
  expect(() => parse([early.repeat(101)])).toThrow(/more than 100 informational responses/);
  expect(() => parse(Array.from({ length: 101 }, () => early))).toThrow(/informational/);
});

it("skips informational responses", () => {
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

it("recognises an incomplete response", () => {
  expect(parse(["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab"]).finish()).toBe(false);
  expect(parse(["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab"]).finish()).toBe(false);
  expect(parse(["HTTP/1.1 200"]).finish()).toBe(false);
});

it.each([
  ["the server closes", "HTTP/1.1 200 OK\r\nconnection: Close\r\ncontent-length: 0\r\n\r\n"],
  ["it is HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n"],
  ["bytes follow the response", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nxHTTP/1.1 200 OK"],
  ["a 204 announces a body", "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n"],
  ["a 204 announces chunks", "HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n"],
])("does not reuse a connection when %s", (_, wire) => {
  expect(parse([wire])).toMatchObject({ isDone: true, canReuse: false });
});

it.each([
  ["no HTTP at all", "SSH-2.0-OpenSSH\r\n\r\n"],
  ["two different lengths", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\n"],
  ["a negative length", "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"],
  ["an unknown transfer coding", "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n"],
  ["a folded header", "HTTP/1.1 200 OK\r\na: b\r\n c: d\r\n\r\n"],
  ["a header without colon", "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n"],
  ["an upgrade that was not requested", "HTTP/1.1 101 Switching Protocols\r\n\r\n"],
  ["a chunk size that is no number", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n"],
  ["a chunk longer than announced", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n"],
  ["a bare line feed in framing", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\na\r\n"],
  ["headers over the limit", `HTTP/1.1 200 OK\r\na: ${"x".repeat(3000)}\r\n\r\n`],
  ["headers over the limit that never end", `HTTP/1.1 200 OK\r\na: ${"x".repeat(3000)}`],
])("refuses %s", (_, wire) => {
  expect(() => parse([wire])).toThrowError(expect.objectContaining({ kind: "broken" }));
});

const OK = "HTTP/1.1 200 OK\r\n";
const CHUNKS = `${OK}transfer-encoding: chunked\r\n\r\n`;

/** Input that llhttp refuses, or reads differently from its appearance. */
it.each([
  ["one length twice", `${OK}content-length: 2\r\ncontent-length: 2\r\n\r\nab`],
  ["a list of lengths", `${OK}content-length: 2, 2\r\n\r\nab`],
  ["an empty length", `${OK}content-length:\r\n\r\nab`],
  ["a length behind a no-break space", `${OK}content-length: \xa02\r\n\r\nab`],
  ["a length behind a vertical tab", `${OK}content-length: \x0b2\r\n\r\nab`],
  ["a length before a form feed", `${OK}content-length: 2\x0c\r\n\r\nab`],
  ["a length before a bare CR", `${OK}content-length: 3\r\r\n\r\nabc`],
  ["a length with a sign", `${OK}content-length: +2\r\n\r\nab`],
  ["a length and chunks", `${OK}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
  ["chunks and a length", `${OK}transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n`],
  ["a coding behind a vertical tab", `${OK}transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n`],
  ["a coding behind a no-break space", `${OK}transfer-encoding: \xa0chunked\r\n\r\n0\r\n\r\n`],
  ["a coding before a tab", `${OK}transfer-encoding: chunked\t\r\n\r\n0\r\n\r\n`],
  ["a coding and a comma", `${OK}transfer-encoding: chunked,\r\n\r\n0\r\n\r\n`],
  ["an empty coding", `${OK}transfer-encoding:\r\n\r\n`],
  ["a NUL in a value", `${OK}a: b\0c\r\n\r\n`],
  ["a control character in a value", `${OK}a: b\x01c\r\n\r\n`],
  ["DEL in a value", `${OK}a: b\x7f\r\n\r\n`],
  ["a bare CR in a value", `${OK}a: b\rc: d\r\n\r\n`],
  ["a bare LF in a value", `${OK}a: b\nc: d\r\n\r\n`],
  ["a blank before the colon", `${OK}content-length : 2\r\n\r\nab`],
  ["a control character in a name", `${OK}a\x01b: c\r\n\r\n`],
  ["a letter beyond ASCII in a name", `${OK}\xe9: c\r\n\r\n`],
  ["an empty name", `${OK}: c\r\n\r\n`],
  ["a blank before the first header", `${OK} a: b\r\n\r\n`],
  ["a bare CR in the status line", "HTTP/1.1 200 O\rK\r\n\r\n"],
  ["a tab before the reason", "HTTP/1.1 200\tOK\r\n\r\n"],
  ["an unknown version", "HTTP/1.2 200 OK\r\n\r\n"],
  ["a blank behind a chunk's size", `${CHUNKS}2 \r\nab\r\n0\r\n\r\n`],
  ["a tab behind a chunk's size", `${CHUNKS}2\t\r\nab\r\n0\r\n\r\n`],
  ["an empty chunk size", `${CHUNKS}\r\nab\r\n0\r\n\r\n`],
  ["a signed chunk size", `${CHUNKS}+2\r\nab\r\n0\r\n\r\n`],
  ["a prefixed chunk size", `${CHUNKS}0x2\r\nab\r\n0\r\n\r\n`],
  ["an extension without a name", `${CHUNKS}2;\r\nab\r\n0\r\n\r\n`],
  ["an extension behind a blank", `${CHUNKS}2; a=b\r\nab\r\n0\r\n\r\n`],
  ["a NUL in an extension", `${CHUNKS}2;a=\0b\r\nab\r\n0\r\n\r\n`],
  ["a bare CR in an extension", `${CHUNKS}2;a=b\rc\r\nab\r\n0\r\n\r\n`],
  ["a quote that does not end", `${CHUNKS}2;a="b\r\nab\r\n0\r\n\r\n`],
  ["something behind a quote", `${CHUNKS}2;a="b"c\r\nab\r\n0\r\n\r\n`],
  ["a control character in a quote", `${CHUNKS}2;a="\x01"\r\nab\r\n0\r\n\r\n`],
  ["a trailer without colon", `${CHUNKS}0\r\nabc\r\n\r\n`],
  ["a NUL in a trailer", `${CHUNKS}0\r\na: b\0\r\n\r\n`],
  ["a blank in a trailer's name", `${CHUNKS}0\r\na b: c\r\n\r\n`],
  ["a folded trailer", `${CHUNKS}0\r\na: b\r\n c\r\n\r\n`],
  ["a bare CR in a trailer", `${CHUNKS}0\r\na: b\rc\r\n\r\n`],
  ["a length in a trailer", `${CHUNKS}0\r\ncontent-length: 5\r\n\r\n`],
])("refuses %s, however the response is split", (_, wire) => {
  expect(() => parse([wire])).toThrowError(expect.objectContaining({ kind: "broken" }));
  expect(() => parse(wire.split(""))).toThrowError(expect.objectContaining({ kind: "broken" }));
});

it.each([
  ["blanks and tabs around a value", `${OK}content-length:\t 2 \r\n\r\nab`],
  ["a coding followed by a blank", `${OK}transfer-encoding: chunked \r\n\r\n2\r\nab\r\n0\r\n\r\n`],
  ["extensions with and without values", `${CHUNKS}2;a;b=c;d="e f\\"\xff"\r\nab\r\n0;x=y\r\n\r\n`],
  ["Latin-1 in a value", `${OK}a: \xe9\r\ncontent-length: 2\r\n\r\nab`],
  ["a line without reason", "HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nab"],
])("accepts %s", (_, wire) => {
  expect(parse([wire]).bodies.join("")).toBe("ab");
  expect(parse(wire.split(""))).toMatchObject({ ends: 1, isDone: true, canReuse: true });
});

it.each([" 2\t", "\t2 \t ", "2"])("ignores blanks around a length: %j", (length) => {
  for (const reads of [
    [`${OK}content-length:${length}\r\n\r\nab`],
    `${OK}content-length:${length}\r\n\r\nab`.split(""),
  ])
    expect(parse(reads)).toMatchObject({ isDone: true, heads: [{ rawHeaders: ["content-length", "2"] }] });
});
