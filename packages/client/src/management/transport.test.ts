import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SignalboxApiError } from "./api-error.ts";
import { errorName } from "./error-name.ts";
import { parseRetryAfter } from "./retry-after.ts";
import { pathOf } from "./path.ts";
import { Transport, type TransportOptions } from "./transport.ts";

type Respond = (request: IncomingMessage, response: ServerResponse) => void;

let server: Server;
let requests: IncomingMessage[];
let responses: Respond[];

beforeEach(async () => {
  requests = [];
  responses = [];
  server = createServer((request, response) => {
    requests.push(request);
    const respond = responses.length > 1 ? responses.shift() : responses[0];
    request.resume().on("end", () => respond?.(request, response));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function transport(options: TransportOptions = {}): Transport {
  const { port } = server.address() as AddressInfo;
  return new Transport({ url: `http://127.0.0.1:${port}/`, ...options }, errorName);
}

const ok: Respond = (_request, response) =>
  response.end(JSON.stringify({ success: true, errors: [], messages: [], result: 7 }));

function refuse(status: number, headers: Record<string, string> = {}, code = 7008): Respond {
  return (_request, response) =>
    response.writeHead(status, { "x-request-id": "r-1", ...headers }).end(
      JSON.stringify({
        success: false,
        errors: [{ code, message: "Too busy" }],
        messages: [],
        result: null,
      }),
    );
}

describe("a request", () => {
  it("sends the token in a header, and query lists as repeated parameters", async () => {
    responses = [ok];
    const sent = transport({ token: async () => "sesame" }).request("GET", "/x", {
      query: { tag: ["a", "b=c,d"], limit: 2, absent: undefined, none: null },
    });
    expect(await sent).toEqual({ result: 7, info: {} });
    expect(requests[0]?.headers.authorization).toBe("Bearer sesame");
    expect(requests[0]?.url).toBe("/x?tag=a&tag=b%3Dc%2Cd&limit=2");
  });

  it("has no result if the response has no content", async () => {
    responses = [(_request, response) => response.writeHead(204).end()];
    expect(await transport().request("DELETE", "/x")).toEqual({ result: undefined, info: {} });
  });

  it("fails with code, error name, status and request id", async () => {
    responses = [refuse(401, {}, 10000)];
    const error = await transport({ token: "sesame" })
      .request("GET", "/x")
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SignalboxApiError);
    expect(error).toMatchObject({ status: 401, code: 10000, id: "unauthenticated", requestId: "r-1" });
    expect(JSON.stringify(error) + String(error)).not.toContain("sesame");
  });

  it("fails if the response is not from Signalbox, and if there is none", async () => {
    responses = [(_request, response) => response.writeHead(502).end("<html>Bad gateway</html>")];
    await expect(transport().request("GET", "/x")).rejects.toMatchObject({ status: 502, code: 0 });
    responses = [(_request, response) => response.end("<html>Hello</html>")];
    await expect(transport().request("GET", "/x")).rejects.toThrow("not a Signalbox response");
    const unreachable = transport();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await expect(unreachable.request("GET", "/x")).rejects.toMatchObject({
      name: "SignalboxApiError",
      status: 0,
    });
  });

  it("ends when the signal aborts, and after the timeout", async () => {
    responses = [() => {}];
    const controller = new AbortController();
    const aborted = transport().request("GET", "/x", { signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    await expect(transport({ timeoutMs: 20 }).request("GET", "/x")).rejects.toMatchObject({
      name: "TimeoutError",
    });
  });
});

describe("retries", () => {
  it.each(["GET", "PUT", "DELETE"] as const)("repeats %s after Retry-After", async (method) => {
    responses = [refuse(503, { "retry-after": "0" }), refuse(429, { "retry-after": "0" }), ok];
    expect(await transport().result(method, "/x")).toBe(7);
    expect(requests).toHaveLength(3);
  });

  it.each(["POST", "PATCH"] as const)("never repeats %s, which may have taken effect", async (method) => {
    responses = [refuse(503, { "retry-after": "0" })];
    await expect(transport().request(method, "/x", { body: {} })).rejects.toMatchObject({
      status: 503,
      retryAfterMs: 0,
    });
    expect(requests).toHaveLength(1);
  });

  it.each([
    ["there is no Retry-After", 503, {}],
    ["Retry-After is too long", 503, { "retry-after": "3600" }],
    ["the status is another one", 500, { "retry-after": "0" }],
  ])("does not repeat if %s", async (_why, status, headers) => {
    responses = [refuse(status, headers)];
    await expect(transport().request("GET", "/x")).rejects.toMatchObject({ status });
    expect(requests).toHaveLength(1);
  });

  it("fails after the given number of attempts", async () => {
    responses = [refuse(503, { "retry-after": "0" })];
    await expect(transport({ maxAttempts: 2 }).request("GET", "/x")).rejects.toMatchObject({ status: 503 });
    expect(requests).toHaveLength(2);
  });

  it("can be aborted during the delay", async () => {
    const controller = new AbortController();
    responses = [
      (request, response) => {
        refuse(503, { "retry-after": "20" })(request, response);
        response.on("finish", () => setTimeout(() => controller.abort(new Error("enough")), 10));
      },
    ];
    await expect(transport().request("GET", "/x", { signal: controller.signal })).rejects.toThrow("enough");
  });
});

describe("parseRetryAfter", () => {
  it("parses seconds and dates only", () => {
    const now = Date.parse("2026-01-01T00:00:00Z");
    expect(parseRetryAfter("2", now)).toBe(2000);
    expect(parseRetryAfter("Thu, 01 Jan 2026 00:00:05 GMT", now)).toBe(5000);
    expect(parseRetryAfter("Thu, 01 Jan 2025 00:00:05 GMT", now)).toBe(0);
    expect(parseRetryAfter("soon", now)).toBeNull();
    expect(parseRetryAfter(null, now)).toBeNull();
  });
});

describe("pathOf", () => {
  it("encodes names and refuses invalid ones", () => {
    expect(pathOf`/a/${"b/c d?"}`).toBe("/a/b%2Fc%20d%3F");
    for (const name of ["", ".", ".."]) expect(() => pathOf`/a/${name}`).toThrow(TypeError);
  });
});
