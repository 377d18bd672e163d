/** Requests refused before an area sees them get the usual response, with no content that a browser would render. */
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TEST_AGENTS } from "../support/agents.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { type ReadResponse, readResponses } from "./support/read-responses.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ file: { agents: { modules: [TEST_AGENTS] } } });
});
afterAll(() => server.stop());

const PATHS = [
  "/healthz",
  "/accounts",
  "/v1/default/default/echo/models",
  "/agents/counter/x",
  "/dashboard",
  "/nope",
];
const UPGRADE = "connection: upgrade\nupgrade: websocket";
const KEY = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==";

/** All responses on a connection that is written once and closed by the server. */
async function answersTo(text: string, methods: readonly string[]): Promise<readonly ReadResponse[]> {
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  let received = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => (received += chunk));
  socket.write(text.replaceAll("\n", "\r\n"), "latin1");
  await once(socket, "close");
  return readResponses(received, methods).responses;
}

async function refusal(text: string): Promise<ReadResponse> {
  const [answer, ...others] = await answersTo(text, ["GET"]);
  if (answer === undefined || others.length > 0) throw new Error("not one answer");
  return answer;
}

function expectEnvelope({ headers, body }: ReadResponse, code: number): void {
  expect(JSON.parse(body)).toMatchObject({ success: false, errors: [{ code }], result: null });
  expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("x-request-id")).toMatch(/./);
  expect(headers.get("connection")).toBe("close");
}

it.each(PATHS)("an unknown expectation is refused with the usual response: %s", async (path) => {
  for (const value of ["nonsense", "200-ok", '""']) {
    const answer = await refusal(`POST ${path} HTTP/1.1\nHost: x\nExpect: ${value}\ncontent-length: 2\n\n{}`);
    expect(answer.status).toBe(417);
    expectEnvelope(answer, 7015);
  }
});

it.each(PATHS)("a request without a host is refused with the usual response: %s", async (path) => {
  expectEnvelope(await refusal(`GET ${path} HTTP/1.1\nAccept: *\n\n`), 7005);
});

it("HTTP/1.0 needs no host", async () => {
  expect((await refusal("GET /healthz HTTP/1.0\n\n")).status).toBe(200);
});

describe("a request line without a version", () => {
  it.each(["GET", "PRI", "POST"])("a request line without a version is refused: %s", async (method) => {
    expectEnvelope(await refusal(`${method} /healthz\nHost: x\n\n`), 7005);
  });

  it.each(["PRI /x\nHost: x\n\n", "PRI /x\n\n", "PRI /x HTTP/1.1\nHost: x\n\n", "PRI * HTTP/2.0\n\nSM\n\n"])(
    "a request line without a version, or the HTTP/2 preface, discards no earlier response: %j",
    async (last) => {
      const first = (id: string) =>
        `GET /accounts HTTP/1.1\nHost: x\nx-request-id: ${id}\nauthorization: Bearer ${ROOT_TOKEN}\n\n`;
      const answers = await answersTo(first("a") + first("b") + last, ["GET", "GET", "GET"]);
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 400]);
      expect(answers.slice(0, 2).map(({ headers }) => headers.get("x-request-id"))).toEqual(["a", "b"]);
    },
  );
});

describe("an invalid upgrade handshake", () => {
  const credential = `authorization: Bearer ${ROOT_TOKEN}`;
  it.each([
    ["without a key", `GET`, `${UPGRADE}\nsec-websocket-version: 13`, 400, 7005],
    ["with a malformed key", `GET`, `${UPGRADE}\nsec-websocket-version: 13\nsec-websocket-key: x`, 400, 7005],
    ["of another version", `GET`, `${UPGRADE}\nsec-websocket-version: 99\n${KEY}`, 400, 7005],
    ["without a version", `GET`, `${UPGRADE}\n${KEY}`, 400, 7005],
    ["by another method", `POST`, `${UPGRADE}\nsec-websocket-version: 13\n${KEY}`, 405, 7001],
    [
      "with malformed protocols",
      `GET`,
      `${UPGRADE}\nsec-websocket-version: 13\n${KEY}\nsec-websocket-protocol: ,`,
      400,
      7005,
    ],
  ])(
    "%s is refused with the usual response, with and without a token",
    async (_title, method, head, status, code) => {
      for (const more of ["", `\n${credential}`]) {
        const answer = await refusal(`${method} /agents/counter/x HTTP/1.1\nHost: x\n${head}${more}\n\n`);
        expect(answer.status).toBe(status);
        expectEnvelope(answer, code);
        expect(answer.headers.get("content-security-policy")).toBe("sandbox; default-src 'none'");
      }
    },
  );

  it("an unsupported WebSocket version is answered with the supported ones", async () => {
    const answer = await refusal(
      `GET /agents/counter/x HTTP/1.1\nHost: x\n${UPGRADE}\n${KEY}\nsec-websocket-version: 7\n\n`,
    );
    expect(answer.headers.get("sec-websocket-version")).toBe("13, 8");
  });
});
