import { expect, it } from "vitest";
import { fuzz } from "../../../../../test/hostile/fuzz/run-fuzz.ts";
import { accepted, plainRequestsTarget } from "../../../../../test/hostile/fuzz/plain-requests.ts";
import { INCOMPLETE, OTHER, readPlainHead } from "./plain-head.ts";

const read = (text: string, maxBytes = 16_384) => readPlainHead(Buffer.from(text, "latin1"), 0, maxBytes);
const withHeaders = (...lines: string[]) =>
  `POST /a HTTP/1.1\r\nHost: x\r\n${lines.map((line) => `${line}\r\n`).join("")}\r\n`;

it("whatever is accepted, llhttp accepts with the same meaning", async () => {
  const before = { ...accepted };
  const { find } = await fuzz(plainRequestsTarget, 20_261_118, (tried) => tried >= 10_000);
  expect(find).toBeNull();
  expect(accepted.requests - before.requests).toBeGreaterThan(5000);
  expect(accepted.withBody - before.withBody).toBeGreaterThan(1000);
});

it("reads method, target, headers as they were sent, and the length of the body", () => {
  const text = "POST /v1/x?y HTTP/1.1\r\nHost: a\r\nX-A:  b c \t\r\nx-a:\r\ncontent-length: 12\r\n\r\n";
  expect(read(`${text}body`)).toEqual({
    method: "POST",
    target: "/v1/x?y",
    rawHeaders: ["Host", "a", "X-A", "b c", "x-a", "", "content-length", "12"],
    length: 12,
    isLast: false,
    end: text.length,
  });
  expect(read(withHeaders("connection: Close"))).toMatchObject({ isLast: true });
  expect(read("GET / HTTP/1.1\r\nhOsT:\r\nConnection: Keep-Alive\r\n\r\n")).toMatchObject({
    method: "GET",
    length: 0,
  });
});

it.each([
  ["another version", "GET / HTTP/1.0\r\nHost: x\r\n\r\n"],
  ["no version", "GET /\r\nHost: x\r\n\r\n"],
  ["an unknown method", "BREW / HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["CONNECT", "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["an absolute target", "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["a target that is not ASCII", "GET /\xe9 HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["a fragment", "GET /#a HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["no host", "GET / HTTP/1.1\r\nAccept: x\r\n\r\n"],
  ["two hosts", withHeaders("host: y")],
  ["a line break without CR", "GET / HTTP/1.1\nHost: x\n\n"],
  ["an empty line before the request", "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["a folded line", withHeaders("a: b", " c")],
  ["a space before the colon", withHeaders("a : b")],
  ["a control character", withHeaders("a: \x01")],
  ["a NUL", withHeaders("a: b\0c")],
  ["a value that is not ASCII", withHeaders("a: \xe9")],
  ["Transfer-Encoding", withHeaders("TRANSFER-ENCODING: chunked")],
  ["Expect", withHeaders("expect: 100-continue")],
  ["Upgrade", withHeaders("upgrade: websocket")],
  ["Trailer", withHeaders("trailer: x")],
  ["Proxy-Connection", withHeaders("proxy-connection: close")],
  ["another Connection", withHeaders("connection: keep-alive, close")],
  ["two Connection headers", withHeaders("connection: keep-alive", "connection: keep-alive")],
  ["two lengths", withHeaders("content-length: 5", "Content-Length: 5")],
  ["a list of lengths", withHeaders("content-length: 5, 5")],
  ["a sign", withHeaders("content-length: +5")],
  ["a zero in front", withHeaders("content-length: 05")],
  ["a space behind the length", withHeaders("content-length: 5 ")],
  ["an empty length", withHeaders("content-length:")],
  ["a length that no number holds", withHeaders("content-length: 9999999999999999")],
  ["more than a hundred headers", withHeaders(...Array.from({ length: 100 }, (_, i) => `a${i}: b`))],
  ["a large head", withHeaders(`a: ${"b".repeat(16_384)}`)],
])("leaves a request with %s to node:http", (_, text) => {
  expect(read(text)).toBe(OTHER);
});

it("waits for the rest of a head that is plain so far, within its limit", () => {
  const text = withHeaders("content-length: 5");
  for (let size = 9; size < text.length; size++) expect(read(text.slice(0, size))).toBe(INCOMPLETE);
  expect(read(text.slice(0, 40), 40)).toBe(OTHER);
  expect(read("GET / HTTP/1.1\r\nHost: x\r\na\nb")).toBe(OTHER);
  expect(read("GET / HTP")).toBe(OTHER);
});
