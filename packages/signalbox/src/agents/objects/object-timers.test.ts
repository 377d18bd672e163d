/** Objects whose code waits for timers that no event awaits: with a client they stay in memory beyond the idle time. */
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import nodeTimers from "node:timers";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { waitUntil } from "../../../../../test/support/wait-until.ts";
import type { ObjectContext } from "./object-context.ts";
import { openHost, type TestHost } from "./object-host-fixture.ts";
import { WebSocketPair, type WorkerWebSocket } from "./web-socket.ts";
import { DurableObject } from "./workers-module.ts";

const IDLE_TIMEOUT_MS = 100;
/** Idle objects are looked for several times in it. */
const SWEEPS_MS = 3 * IDLE_TIMEOUT_MS;
const LONG_MS = 3_600_000;
const until = (check: () => boolean) => waitUntil(check, (isTrue) => isTrue);

/** What a test lets an object do, and what ends it. */
const WAYS: Record<string, () => () => void> = {
  "a timeout": () => {
    const timer = setTimeout(() => undefined, LONG_MS);
    return () => clearTimeout(timer);
  },
  "an interval": () => {
    const timer = setInterval(() => undefined, LONG_MS);
    return () => timer.close();
  },
  "a timer that is cleared by its number": () => {
    const timer = Number(setTimeout(() => undefined, LONG_MS));
    return () => clearTimeout(timer);
  },
  "a timer that is disposed": () => {
    const timer = setTimeout(() => undefined, LONG_MS);
    return () => timer[Symbol.dispose]();
  },
  "a timer of node:timers": () => {
    const timer = nodeTimers.setTimeout(() => undefined, LONG_MS);
    return () => clearInterval(timer);
  },
  "a promise of node:timers/promises": () => {
    const giveUp = new AbortController();
    wait(LONG_MS, undefined, giveUp).catch(() => undefined);
    return () => giveUp.abort();
  },
  "a promisified timeout": () => {
    const giveUp = new AbortController();
    promisify(setTimeout)(LONG_MS, undefined, giveUp).catch(() => undefined);
    return () => giveUp.abort();
  },
  "a timeout after hundreds that are over": () => {
    for (let i = 0; i < 300; i++) clearTimeout(setTimeout(() => undefined, LONG_MS));
    const timer = setTimeout(() => undefined, LONG_MS);
    for (let i = 0; i < 300; i++) clearTimeout(setTimeout(() => undefined, LONG_MS));
    return () => clearTimeout(timer);
  },
};
const IDLE_WAYS: Record<string, () => () => void> = {
  "a timer that has fired": () => {
    setTimeout(() => undefined, 1);
    return () => undefined;
  },
  "a timer that was cleared": () => {
    clearTimeout(setTimeout(() => undefined, LONG_MS));
    return () => undefined;
  },
  "a timer that is unref'ed": () => {
    const timer = setTimeout(() => undefined, LONG_MS).unref();
    return () => clearTimeout(timer);
  },
};

let end: (() => void) | null = null;

class Poller extends DurableObject {
  declare readonly ctx: ObjectContext;

  fetch(): Response {
    const { 0: client, 1: server } = new WebSocketPair();
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client } as ResponseInit);
  }

  begin(way: string): void {
    end = (WAYS[way] ?? IDLE_WAYS[way])?.() ?? null;
  }

  /** A child that waits. */
  async beginBelow(): Promise<void> {
    const child = this.ctx.facets.get("child", () => ({ class: Poller })) as unknown as PollerStub;
    await child.begin("a timeout");
  }

  webSocketMessage(webSocket: WorkerWebSocket, message: string): void {
    const [way, url = ""] = message.split(" ");
    if (way === "poll") void this.#poll(webSocket, url);
    if (way === "read") void this.#read(webSocket, url);
    if (way === "cancel") void fetch(url).then(({ body }) => body?.cancel());
  }

  async #read(webSocket: WorkerWebSocket, url: string): Promise<void> {
    webSocket.send(await (await fetch(url)).text());
  }

  /** Reads a body that comes late, sleeps, and reads again. */
  async #poll(webSocket: WorkerWebSocket, url: string): Promise<void> {
    const first = await (await fetch(url)).text();
    const sleep = new Promise((resolve) => setTimeout(resolve, SWEEPS_MS));
    now += 10 * IDLE_TIMEOUT_MS;
    await sleep;
    const second = await (await fetch(url)).text();
    webSocket.send(`${first}, ${second}`);
  }
}

interface PollerStub {
  begin(way: string): Promise<void>;
  beginBelow(): Promise<void>;
  fetch: typeof fetch;
}

let folder: string;
let test: TestHost;
let now = Date.now();
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-timers-"));
  test = await openHost(
    folder,
    { Poller },
    { idleTimeoutMs: IDLE_TIMEOUT_MS, clock: { now: () => now }, maxActiveInstances: 3 },
  );
});
afterEach(async () => {
  end?.();
  end = null;
  await test.close();
  await rm(folder, { recursive: true, force: true });
});

const poller = (name: string) => test.env["Poller"]?.getByName(name) as unknown as PollerStub;
const namesInMemory = () => [...test.instances()].map(({ ref }) => ref.name);
const idOf = (name: string) => String(test.env["Poller"]?.idFromName(name));
const isInMemory = (name: string) => namesInMemory().includes(idOf(name));

async function connect(name: string): Promise<WorkerWebSocket> {
  const response = await poller(name).fetch("http://x/", { headers: { upgrade: "websocket" } });
  const { webSocket } = response as Response & { webSocket: WorkerWebSocket };
  webSocket.accept();
  return webSocket;
}

/** Lets the idle time pass, until an object that was used last and waits for nothing has left memory. */
async function passIdleTime(): Promise<void> {
  await poller("witness")
    .begin("a timer that was cleared")
    .catch(() => undefined);
  await until(() => [...test.instances()].every(({ isIdle }) => isIdle));
  now += 10 * IDLE_TIMEOUT_MS;
  await until(() => !isInMemory("witness"));
}

describe("an object with a client", () => {
  it.each(Object.keys(WAYS))("stays in memory for %s, and leaves when it is over", async (way) => {
    await connect("a");
    await poller("a").begin(way);
    const stop = end;
    await passIdleTime();
    expect(isInMemory("a")).toBe(true);
    stop?.();
    await until(() => !isInMemory("a"));
  });

  it.each(Object.keys(IDLE_WAYS))("leaves memory in spite of %s", async (way) => {
    await connect("a");
    await poller("a").begin(way);
    const stop = end;
    await passIdleTime();
    await until(() => !isInMemory("a"));
    stop?.();
  });

  it("leaves memory when the client has gone", async () => {
    const client = await connect("a");
    await poller("a").begin("a timeout");
    client.close();
    await passIdleTime();
    await until(() => !isInMemory("a"));
  });

  it("leaves memory for others when there is no room", async () => {
    await connect("a");
    await poller("a").begin("a timeout");
    for (const name of ["b", "c", "d"]) await poller(name).begin("a timer that was cleared");
    expect(isInMemory("a")).toBe(false);
  });

  it("has its facets stay for their timers, too", async () => {
    await connect("a");
    await poller("a").beginBelow();
    await passIdleTime();
    await until(() => !isInMemory("a"));
    expect(namesInMemory()).toEqual([expect.stringMatching(new RegExp(`^${idOf("a")}\\.`)) as string]);
  });

  it("goes on with code that polls", async () => {
    const origin = await startSlowBodies();
    const client = await connect("a");
    const received = Promise.withResolvers<string>();
    client.addEventListener("message", (event) => received.resolve(String((event as MessageEvent).data)));
    client.send(`poll ${urlOf(origin)}`);
    expect(await received.promise).toBe("body, body");
    origin.close();
  });

  it("goes on with code that reads a body", async () => {
    const { origin, began, finish } = await startBody();
    const client = await connect("a");
    const received = Promise.withResolvers<string>();
    client.addEventListener("message", (event) => received.resolve(String((event as MessageEvent).data)));
    client.send(`read ${urlOf(origin)}`);
    await began;
    await passIdleTime();
    await passIdleTime();
    expect(isInMemory("a")).toBe(true);
    finish();
    expect(await received.promise).toBe("a body that came late");
    await passIdleTime();
    await until(() => !isInMemory("a"));
    origin.close();
  });

  it("leaves memory when its code has cancelled a body", async () => {
    const { origin, began } = await startBody();
    const client = await connect("a");
    client.send(`cancel ${urlOf(origin)}`);
    await began;
    await passIdleTime();
    await until(() => !isInMemory("a"));
    origin.closeAllConnections();
    origin.close();
  });
});

it("without a client, a timer keeps no object in memory", async () => {
  await poller("a").begin("a timeout");
  await passIdleTime();
  expect(isInMemory("a")).toBe(false);
});

const urlOf = (origin: Server) => `http://127.0.0.1:${(origin.address() as AddressInfo).port}`;

/** Answers with a part of a body, and with the rest when the test says so. */
async function startBody(): Promise<{ origin: Server; began: Promise<void>; finish(): void }> {
  const began = Promise.withResolvers<void>();
  let finish = () => undefined as unknown;
  const origin = createServer((_request, response) => {
    response.write("a body ");
    finish = () => response.end("that came late");
    began.resolve();
  });
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  return { origin, began: began.promise, finish: () => void finish() };
}

/** Answers when the idle time has passed, with a body that follows. */
async function startSlowBodies(): Promise<Server> {
  const server = createServer((_request, response) => {
    now += 10 * IDLE_TIMEOUT_MS;
    response.flushHeaders();
    setTimeout(() => response.end("body"), SWEEPS_MS);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}
