import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Registry } from "prom-client";
import { afterEach, expect, it, onTestFinished, vi } from "vitest";
import { createOperations } from "./operations.ts";
import type { ProcessReadiness, Siblings } from "./siblings.ts";
import { HeldMemory, type HttpRequest } from "../engines/http-server/index.ts";
import { RequestContext } from "./request-context.ts";
import { splitTarget } from "./request-target.ts";

let server: Server;
afterEach(() => server.close());

interface ServeOptions {
  readonly registry?: Registry;
  readonly openApi?: () => object;
  readonly siblings?: Siblings;
}

async function serve(options: ServeOptions): Promise<string> {
  const area = createOperations({
    registry: options.registry ?? new Registry(),
    openApi: options.openApi ?? (() => ({})),
    problems: () => [],
    siblings: options.siblings ?? null,
    authorise: () => undefined,
  });
  server = createServer((request, response) => {
    const received = request as unknown as HttpRequest;
    Promise.resolve(
      area.handle(
        received,
        response,
        new RequestContext("id", splitTarget(received.url ?? "/"), received, new HeldMemory()),
      ),
    ).catch((error: unknown) => response.writeHead(503).end(String(error)));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it("builds the description once, with the first request", async () => {
  const openApi = vi.fn(() => ({ openapi: "3.1.0" }));
  const url = await serve({ openApi });
  await fetch(`${url}/healthz`);
  expect(openApi).not.toHaveBeenCalled();
  const answers = await Promise.all(Array.from({ length: 20 }, () => fetch(`${url}/openapi.json`)));
  expect(await answers[7]?.json()).toEqual({ openapi: "3.1.0" });
  expect(openApi).toHaveBeenCalledOnce();
});

it("collects the metrics once for concurrent requests, and not again until ten times the duration has passed", async () => {
  const registry = new Registry();
  let finish: () => void = () => undefined;
  const collect = vi
    .spyOn(registry, "metrics")
    .mockImplementation(() => new Promise((resolve) => (finish = () => resolve("figures"))));
  const url = await serve({ registry });
  const requests = Array.from({ length: 20 }, () => fetch(`${url}/metrics`));
  await expect.poll(() => collect.mock.calls.length).toBe(1);
  // The result is reused for ten times this duration: for longer than the machine may pause before the last request.
  const startedAt = performance.now();
  await expect.poll(() => performance.now() - startedAt).toBeGreaterThan(2000);
  finish();
  for (const answer of requests) expect(await (await answer).text()).toBe("figures");
  expect(await (await fetch(`${url}/metrics`)).text()).toBe("figures");
  expect(collect).toHaveBeenCalledOnce();
});

it("collects the metrics again after a failed collection", async () => {
  const registry = new Registry();
  const collect = vi.spyOn(registry, "metrics").mockRejectedValueOnce(new Error("no"));
  const area = createOperations({
    registry,
    openApi: () => ({}),
    problems: () => [],
    siblings: null,
    authorise: () => undefined,
  });
  server = createServer((request, response) => {
    const received = request as unknown as HttpRequest;
    Promise.resolve(
      area.handle(
        received,
        response,
        new RequestContext("id", splitTarget(received.url ?? "/"), received, new HeldMemory()),
      ),
    ).catch(() => response.writeHead(500).end());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`;
  expect((await fetch(url)).status).toBe(500);
  collect.mockResolvedValue("figures");
  await expect.poll(async () => (await fetch(url)).status).toBe(200);
});

it("with several processes, /readyz counts those that accept connections, lists all, and asks them four times a second at most", async () => {
  let processes: ProcessReadiness[] = [
    { process: 1, state: "serving", problems: [] },
    { process: 2, state: "leaving", problems: ["stopping"] },
  ];
  const readiness = vi.fn(async () => processes);
  const siblings: Siblings = { answerWith: () => undefined, metrics: async () => "", readiness };
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  onTestFinished(() => void vi.restoreAllMocks());
  const url = `${await serve({ siblings })}/readyz`;
  const ready = await fetch(url);
  expect([ready.status, await ready.json()]).toEqual([
    200,
    {
      status: "ok",
      processes: [
        { process: 1, state: "serving" },
        { process: 2, state: "leaving" },
      ],
    },
  ]);
  processes = [...processes, { process: 3, state: "serving", problems: ["database: gone"] }];
  now = 249;
  for (let i = 0; i < 20; i++) expect((await fetch(url)).status).toBe(200);
  expect(readiness).toHaveBeenCalledOnce();
  now = 250;
  const refused = await fetch(url);
  expect([refused.status, await refused.text()]).toEqual([
    503,
    expect.stringContaining("Not ready: process 3: database: gone"),
  ]);
  processes = [{ process: 1, state: "leaving", problems: [] }];
  expect((await fetch(url)).status).toBe(503);
  expect(readiness).toHaveBeenCalledTimes(2);
  now = 500;
  expect(await (await fetch(url)).text()).toContain("Not ready: no process accepts connections");
});
