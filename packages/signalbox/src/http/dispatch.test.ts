/** The application of a real listener: which area gets a request, and how its errors are sent. */
import { once } from "node:events";
import { connect } from "node:net";
import { SignalboxError } from "@signalbox/protocol";
import { Registry } from "prom-client";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { Listener } from "../engines/http-server/index.ts";
import { createLogger } from "../telemetry/logger.ts";
import { createHttpMetrics } from "../telemetry/metrics.ts";
import type { Area, FallbackArea } from "./area.ts";
import { type AdmitRequest, Dispatcher } from "./dispatch.ts";

const LIMITS = {
  maxHeaderBytes: 16_384,
  headerTimeoutMs: 600_000,
  bodyTimeoutMs: 600_000,
  idleTimeoutMs: 600_000,
  maxConnections: 10,
};

/** An area that answers with its name and the path. */
function area(name: string, segments: readonly string[], more: Partial<Area> = {}): Area {
  return {
    name,
    segments,
    dialect: "envelope",
    handle: (_request, response, { path }) => void response.end(`${name} ${path}`),
    ...more,
  };
}

let registry: Registry;
let logged: unknown[];
beforeEach(() => {
  registry = new Registry();
  logged = [];
});

interface Options {
  readonly fallback?: FallbackArea;
  readonly admit?: AdmitRequest;
}

async function open(areas: readonly Area[], { fallback, admit }: Options = {}) {
  const logger = createLogger({ level: "silent", isPretty: false });
  Object.assign(logger, { error: ({ err }: { err: unknown }) => logged.push(err) });
  const metrics = createHttpMetrics(registry);
  const listener = new Listener(
    new Dispatcher(areas, metrics, logger, fallback ?? null, admit ?? null),
    LIMITS,
  );
  const { port } = await listener.listen("127.0.0.1", 0);
  onTestFinished(async () => {
    listener.drain();
    await listener.close(0);
  });
  /** Sends a request as it is, and returns the response. */
  const send = async (head: string) => {
    const socket = connect(port, "127.0.0.1");
    let text = "";
    socket.setEncoding("latin1").on("data", (data: string) => (text += data));
    socket.write(head);
    await once(socket, "close");
    return text;
  };
  return {
    send,
    get: (path: string, headers = "") =>
      send(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${headers}\r\n`),
  };
}

const statusOf = (response: string) => Number(response.split(" ", 2)[1]);
const bodyOf = (response: string) => response.slice(response.indexOf("\r\n\r\n") + 4);

describe("a path", () => {
  it("belongs to the area of its first segment, which is decoded once", async () => {
    const { get } = await open([area("one", ["a b"]), area("two", ["x"])]);
    expect(bodyOf(await get("/a%20b/c"))).toContain("one /a%20b/c");
    expect(bodyOf(await get("/x"))).toContain("two /x");
    expect(statusOf(await get("/a%2520b"))).toBe(404);
    expect(statusOf(await get("/%ff"))).toBe(400);
  });

  it("below the segment of one area may belong to its guest", async () => {
    const guest = { segments: ["x"], path: /^\/x\/guest\// };
    const { get } = await open([area("host", ["x"]), area("guest", ["y"], { guest })]);
    expect(bodyOf(await get("/x/guest/1"))).toContain("guest /x/guest/1");
    expect(bodyOf(await get("/x/other"))).toContain("host /x/other");
  });

  it("that no area owns, and what the fallback takes of others, belongs to the fallback", async () => {
    const fallback = { ...area("worker", []), takes: (_segment: string, path: string) => path === "/x/y" };
    const { get } = await open([area("one", ["x"])], { fallback });
    expect(bodyOf(await get("/anything"))).toContain("worker /anything");
    expect(bodyOf(await get("/x/y"))).toContain("worker /x/y");
    expect(bodyOf(await get("/x/z"))).toContain("one /x/z");
  });

  it("cannot have two owners", () => {
    const areas = [area("one", ["x"]), area("two", ["x"])];
    const logger = createLogger({ level: "silent", isPretty: false });
    expect(() => new Dispatcher(areas, createHttpMetrics(registry), logger)).toThrow("/x");
  });
});

describe("an error of an area", () => {
  it("is sent in its format, whether it is thrown or rejected", async () => {
    const refuse = () => {
      throw new SignalboxError("forbidden");
    };
    const { get } = await open([
      area("thrown", ["t"], { handle: refuse }),
      area("rejected", ["r"], { handle: async () => refuse() }),
    ]);
    for (const path of ["/t", "/r"]) {
      const response = await get(path);
      expect(statusOf(response)).toBe(403);
      expect(bodyOf(response)).toContain('"success":false');
    }
    expect(logged).toEqual([]);
  });

  it("that is not one of the table is logged, and its text is not sent", async () => {
    const failure = new Error("the password is open-sesame");
    const { get } = await open([
      area("x", ["x"], {
        handle: () => {
          throw failure;
        },
      }),
    ]);
    const response = await get("/x");
    expect(statusOf(response)).toBe(500);
    expect(response).not.toContain("open-sesame");
    expect(logged).toEqual([failure]);
  });
});

describe("the id of a request", () => {
  it("is that of the caller if it is safe to repeat, and a new one otherwise", async () => {
    const { get } = await open([
      area("x", ["x"], { handle: (_, response, { id }) => void response.end(id) }),
    ]);
    expect(bodyOf(await get("/x", "x-request-id: abc-1.2\r\n"))).toContain("abc-1.2");
    const unsafe = await get("/x", "x-request-id: <script>\r\n");
    expect(unsafe).not.toContain("<script>");
    expect(unsafe).not.toBe(await get("/x"));
  });
});

describe("while requests are not admitted", () => {
  it("they wait, and only what is always served is answered", async () => {
    const fresh = Promise.withResolvers<void>();
    let asked = 0;
    const { get } = await open([area("x", ["x"], { isAlwaysServed: (path) => path === "/x/health" })], {
      admit: () => {
        asked += 1;
        return fresh.promise;
      },
    });
    let isAnswered = false;
    const waiting = get("/x/y").finally(() => (isAnswered = true));
    await expect.poll(() => asked).toBe(1);
    expect(bodyOf(await get("/x/health"))).toContain("x /x/health");
    expect(isAnswered).toBe(false);
    fresh.resolve();
    expect(bodyOf(await waiting)).toContain("x /x/y");
  });

  it("they are refused if the node stays out of date", async () => {
    const { get } = await open([area("x", ["x"])], {
      admit: () => Promise.reject(new SignalboxError("node_stale")),
    });
    expect(statusOf(await get("/x"))).toBe(503);
  });
});

it("a handshake for an area without WebSockets is refused", async () => {
  const { send } = await open([area("x", ["x"])]);
  const key = "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
  const handshake = `GET /x HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n${key}\r\n`;
  expect(statusOf(await send(handshake))).toBe(404);
});

it("a request without a host, or with two, is refused", async () => {
  const { send } = await open([area("x", ["x"])]);
  for (const hosts of ["", "host: a\r\nhost: b\r\n"])
    expect(statusOf(await send(`GET /x HTTP/1.1\r\n${hosts}connection: close\r\n\r\n`))).toBe(400);
});

it("each request is counted with its area, method and status", async () => {
  const { get } = await open([area("x", ["x"])]);
  await get("/x");
  await get("/nothing");
  const metrics = await registry.metrics();
  expect(metrics).toMatch(/signalbox_http_requests_total\{area="x",method="GET",status="200"\} 1/);
  expect(metrics).toMatch(/signalbox_http_requests_total\{[^}]*status="404"\} 1/);
});
