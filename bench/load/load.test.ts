import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { runLoad } from "../support/load.ts";
import { runLoadInNode } from "../support/node-load.ts";
import { buildRequest, SEQUENCE_MARKER } from "../support/requests.ts";

const servers: { close(): void }[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listen(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

const options = (port: number, requests: readonly Buffer[]) => ({
  port,
  connections: 3,
  durationMs: 60_000,
  maxRequests: 60,
  requests,
});

/** Chunks of 1 to 300 bytes, so that sizes have one to three digits, in separate writes. */
const answerInChunks: RequestListener = (_request, response) => {
  const sizes = [1, 15, 16, 255, 256, 300];
  const next = () => {
    const size = sizes.shift();
    if (size === undefined) response.end();
    else response.write("\n".repeat(size), () => setImmediate(next));
  };
  next();
};

for (const [name, run] of [
  ["the chosen generator", runLoad],
  ["the generator in Node.js", runLoadInNode],
] as const) {
  test(`${name} sends the requests in turn and counts responses with a length`, async () => {
    const paths: string[] = [];
    const port = await listen((request, response) => {
      paths.push(request.url ?? "");
      response.end("x".repeat(100_000));
    });
    const requests = [buildRequest("GET", "/a"), buildRequest("POST", "/b", {}, "y".repeat(500_000))];
    const result = await run(options(port, requests));
    expect(result.requests).toBe(60);
    expect(result.p99Ms).toBeGreaterThanOrEqual(result.p50Ms);
    expect(paths.filter((path) => path === "/a")).toHaveLength(30);
    expect(paths.filter((path) => path === "/b")).toHaveLength(30);
  });

  test(`${name} finds the end of a response in chunks`, async () => {
    const port = await listen(answerInChunks);
    expect((await run(options(port, [buildRequest("GET", "/")]))).requests).toBe(60);
  });

  test(`${name} replaces the marker by a number that no other request has`, async () => {
    const seen = new Set<string | undefined>();
    const port = await listen((request, response) => {
      seen.add(request.url);
      response.writeHead(204).end();
    });
    await run(options(port, [buildRequest("GET", `/${SEQUENCE_MARKER}`)]));
    await run(options(port, [buildRequest("GET", `/${SEQUENCE_MARKER}`)]));
    expect(seen.size).toBe(120);
    expect([...seen].every((path) => /^\/\d{16}$/.test(path ?? ""))).toBe(true);
  });
}

test("a response with an unexpected status fails the run", async () => {
  const port = await listen((_request, response) => response.writeHead(401).end());
  const load = options(port, [buildRequest("GET", "/")]);
  await expect(runLoad(load)).rejects.toThrow("60 of 60 responses had an unexpected status, the first 401");
  expect((await runLoad({ ...load, status: 401 })).requests).toBe(60);
});

test("a connection that the server closes early fails the run", async () => {
  const port = await listen((request) => request.socket.destroy());
  await expect(runLoad(options(port, [buildRequest("GET", "/")]))).rejects.toThrow(
    /closed a connection|read|write/,
  );
});
