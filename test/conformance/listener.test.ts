/** The HTTP listener with hostile and unusual requests: each gets the right response, and the server continues. */
import { connect } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
/** With limits of time, which a pause of the machine would make other requests exceed. */
let impatient: TestServer;
beforeAll(async () => {
  server = await startTestServer({ file: { listener: { maxHeaderBytes: 8192, maxBodyBytes: 1024 } } });
  impatient = await startTestServer({ file: { listener: { headerTimeoutMs: 300, bodyTimeoutMs: 600 } } });
});
afterAll(async () => {
  await server.stop();
  await impatient.stop();
});
afterEach(async () => {
  const { status } = await server.api("GET", "/healthz");
  expect(status, "the server must have survived").toBe(200);
});

/** Sends raw bytes and resolves with everything received until the connection ends or `until` matches. */
function exchange(bytes: string | Buffer, until?: RegExp, at = server): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(at.url).port), "127.0.0.1");
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (until?.test(text) === true) socket.destroy();
    });
    socket.once("close", () => resolve(text));
    socket.once("error", reject);
    socket.write(bytes);
  });
}

const get = (target: string, headers = "") =>
  `GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${headers}\r\n`;
const statusOf = (answer: string) => Number(answer.slice(9, 12));
const jsonOf = (answer: string) =>
  JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4)) as { errors: { code: number }[] };

describe("responses", () => {
  it("every response has x-request-id, which repeats a valid id of the caller", async () => {
    expect(await exchange(get("/healthz"))).toMatch(/\r\nx-request-id: \S+\r\n/);
    expect(await exchange(get("/healthz", "x-request-id: trace-42\r\n"))).toContain(
      "\r\nx-request-id: trace-42\r\n",
    );
    expect(await exchange(get("/healthz", `x-request-id: ${"a".repeat(200)}\r\n`))).not.toContain(
      "a".repeat(20),
    );
    expect(await exchange(get("/healthz", "x-request-id: <script>\r\n"))).not.toContain("script");
  });

  it("an unknown path is 404 with code 7003, below every first segment", async () => {
    for (const path of [
      "/",
      "/nowhere",
      "/accounts/default/nowhere",
      "/client",
      "/client/v4",
      "/client/v5/accounts",
      "/healthz/x",
    ]) {
      const { status, body } = await server.api("GET", path);
      expect([path, status, body.errors[0].code]).toEqual([path, 404, 7003]);
    }
  });

  it("another method on a known path is 405 with code 7001 and Allow", async () => {
    for (const [method, path, allow] of [
      ["DELETE", "/accounts", "POST, GET, HEAD"],
      ["POST", "/healthz", "GET, HEAD"],
      ["PATCH", "/client/v4/accounts/default/tokens", "POST, GET, HEAD"],
    ] as const) {
      const { status, body, headers } = await server.api(method, path);
      expect([status, body.errors[0].code, headers.get("allow")]).toEqual([405, 7001, allow]);
    }
  });

  it("HEAD is answered like GET without the body", async () => {
    const response = await fetch(`${server.url}/accounts`, {
      method: "HEAD",
      headers: { authorization: `Bearer ${ROOT_TOKEN}` },
    });
    expect(response.status).toBe(200);
    expect(Number(response.headers.get("content-length"))).toBeGreaterThan(50);
    expect(await response.text()).toBe("");
  });
});

describe("operations endpoints", () => {
  it("health and readiness are reported", async () => {
    expect((await server.api("GET", "/healthz", undefined, null)).body).toEqual({ status: "ok" });
    expect((await server.api("GET", "/readyz", undefined, null)).status).toBe(200);
  });

  it("Prometheus metrics count requests by area, method and status", async () => {
    await server.api("GET", "/accounts");
    const text = await (await fetch(`${server.url}/metrics`)).text();
    expect(text).toMatch(/signalbox_http_requests_total\{area="management",method="GET",status="200"\} \d+/);
    expect(text).toMatch(
      /signalbox_http_request_duration_seconds_bucket\{le="0.001",area="management"\} \d+/,
    );
    expect(text).toMatch(/process_resident_memory_bytes \d+/);
    expect(text).not.toContain("default");
  });

  it("OpenAPI describes every management route", async () => {
    const { body } = await server.api("GET", "/openapi.json", undefined, null);
    expect(body.openapi).toBe("3.1.0");
    expect(Object.keys(body.paths)).toEqual(
      expect.arrayContaining(["/accounts", "/accounts/{account_id}", "/accounts/{account_id}/tokens"]),
    );
    const create = body.paths["/accounts/{account_id}/tokens"].post;
    expect(create.requestBody.content["application/json"].schema.required).toEqual(["name", "permissions"]);
    expect(create.parameters).toContainEqual({
      name: "account_id",
      in: "path",
      required: true,
      schema: { type: "string" },
      example: "default",
    });
  });
});

describe("request targets", () => {
  it("absolute form is accepted", async () => {
    expect(statusOf(await exchange(get("http://example.test/healthz")))).toBe(200);
    expect(statusOf(await exchange(get("http://example.test")))).toBe(404);
  });

  it("ordinary characters may be percent-encoded", async () => {
    expect(statusOf(await exchange(get("/%61ccounts", `authorization: Bearer ${ROOT_TOKEN}\r\n`)))).toBe(200);
  });

  it("dot segments and encoded slashes are plain names", async () => {
    const auth = `authorization: Bearer ${ROOT_TOKEN}\r\n`;
    for (const target of [
      "/accounts/%2e%2e/healthz",
      "/../healthz",
      "/accounts/..%2f..%2fhealthz",
      "/accounts%2Fdefault",
      "/accounts/default%2Ftokens",
      "//healthz",
    ]) {
      expect([target, statusOf(await exchange(get(target, auth)))]).toEqual([target, 404]);
    }
  });

  it("a target that is not UTF-8 after decoding or contains NUL is refused with 400", async () => {
    const auth = `authorization: Bearer ${ROOT_TOKEN}\r\n`;
    for (const target of [
      "/accounts/%00",
      "/accounts/%",
      "/accounts/%zz",
      "/accounts/%c0%af",
      "/accounts/%ed%a0%80",
      "/%ff",
    ]) {
      const answer = await exchange(get(target, auth));
      expect([target, statusOf(answer), jsonOf(answer).errors[0]?.code]).toEqual([target, 400, 7002]);
    }
  });

  it("authority form (CONNECT) and asterisk form are refused", async () => {
    expect(statusOf(await exchange("CONNECT example.test:443 HTTP/1.1\r\nhost: x\r\n\r\n"))).toBe(405);
    expect(statusOf(await exchange("OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))).toBe(400);
  });
});

describe("malformed HTTP", () => {
  it("malformed HTTP is answered 400 in the envelope, and the connection is closed", async () => {
    for (const bytes of [
      "nonsense\r\n\r\n",
      "GET /healthz HTTP/9.9\r\nhost: x\r\n\r\n",
      "GET /healthz HTTP/1.1\r\nbad header\r\n\r\n",
      "GET /healthz HTTP/1.1\r\nhost: x\r\nx: a\u0000b\r\n\r\n",
      "POST /accounts HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST /accounts HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
      Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]),
    ]) {
      const answer = await exchange(bytes);
      expect(statusOf(answer)).toBe(400);
      expect(jsonOf(answer).errors[0]?.code).toBe(7005);
    }
  });

  it("a request without a Host header is refused", async () => {
    expect(statusOf(await exchange("GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n"))).toBe(400);
  });

  it("oversized headers are answered 431", async () => {
    const answer = await exchange(get("/healthz", `x-big: ${"a".repeat(10_000)}\r\n`));
    expect(statusOf(answer)).toBe(431);
    expect(jsonOf(answer).errors[0]?.code).toBe(7006);
  });
});

describe("slow and large requests", () => {
  /** A pause of the machine may refuse single requests. */
  const impatientServes = async () => {
    await expect.poll(async () => statusOf(await exchange(get("/healthz"), undefined, impatient))).toBe(200);
  };

  it("headers that do not arrive in time are answered 408", async () => {
    const answer = await exchange("GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: ", undefined, impatient);
    expect(statusOf(answer)).toBe(408);
    await impatientServes();
  });

  it("a body that does not arrive in time is answered 408", async () => {
    const answer = await exchange(
      `POST /accounts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${ROOT_TOKEN}\r\ncontent-length: 100\r\n\r\n{`,
      undefined,
      impatient,
    );
    expect(statusOf(answer)).toBe(408);
    await impatientServes();
  });

  it("a declared length over the limit is answered 413 before the body is sent", async () => {
    const answer = await exchange(
      `POST /accounts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${ROOT_TOKEN}\r\ncontent-length: 999999\r\n\r\n`,
    );
    expect(statusOf(answer)).toBe(413);
    expect(jsonOf(answer).errors[0]?.code).toBe(7010);
  });

  it("a body without a length is answered 413 when it exceeds the limit", async () => {
    const chunk = `400\r\n${"a".repeat(1024)}\r\n`;
    const answer = await exchange(
      `POST /accounts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${ROOT_TOKEN}\r\ntransfer-encoding: chunked\r\n\r\n${chunk}${chunk}`,
      /\r\n\r\n.+/s,
    );
    expect(statusOf(answer)).toBe(413);
  });
});

describe("connections", () => {
  it("connections are kept alive, and pipelined requests are answered in order", async () => {
    const one = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    const last = "GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    const answer = await exchange(one + "GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n" + last);
    expect([...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))).toEqual([
      200, 404, 200,
    ]);
  });

  it("an upgrade that no route offers is 404", async () => {
    const answer = await exchange(
      "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    expect(statusOf(answer)).toBe(404);
  });

  it("connections over the limit are refused, and accepted again when one closes", async () => {
    const small = await startTestServer({ file: { listener: { maxConnections: 1 } } });
    const port = Number(new URL(small.url).port);
    const first = connect(port, "127.0.0.1");
    await new Promise((resolve) => first.once("connect", resolve));
    const second = connect(port, "127.0.0.1");
    second.on("error", () => undefined);
    await new Promise((resolve) => second.once("close", resolve));
    first.destroy();
    await expect
      .poll(() =>
        small.api("GET", "/healthz").then(
          (answer) => answer.status,
          () => 0,
        ),
      )
      .toBe(200);
    await small.stop();
  });
});
