/** One connection, two parsers: what a client sees does not depend on the engine, nor on how its bytes arrive. */
import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { describe, expect, it, onTestFinished } from "vitest";
import type { HttpApplication, ListenerEngine, ListenerLimits } from "./application.ts";
import { readBody } from "./body-reader.ts";
import type { HttpRequest, ServedResponse } from "./http-exchange.ts";
import { Listener } from "./listener.ts";
import { PlainRequest } from "./plain-request.ts";
import { HeldMemory, MAX_UNANSWERED } from "./tracking.ts";

const LIMITS = {
  maxHeaderBytes: 16_384,
  headerTimeoutMs: 600_000,
  bodyTimeoutMs: 600_000,
  idleTimeoutMs: 600_000,
  maxConnections: 1000,
};

interface Options extends Partial<ListenerLimits> {
  /** Default: the echo. */
  readonly handle?: (request: HttpRequest, response: ServedResponse) => void;
}

/** Answers with what it received. */
function echo(request: HttpRequest, response: ServedResponse): void {
  const send = (body: string) => {
    const text = `[${request.method} ${request.url} ${request.rawHeaders.length} ${body}]`;
    response.writeHead(200, ["content-length", String(text.length)]).end(text);
  };
  readBody(
    request,
    new HeldMemory(),
    { maxBytes: 1e9 },
    {
      onBody: (body) => send(body.kind === "whole" ? body.bytes.toString("latin1") : ""),
      onFailure: (failure) => send(failure),
    },
  );
}

async function open(engine: ListenerEngine, { handle = echo, ...limits }: Options = {}) {
  const seen = { plain: 0, other: 0, ended: 0, malformed: 0, upgraded: "" };
  const application: HttpApplication = {
    requestId: () => "1",
    handle(request, response) {
      if (request instanceof PlainRequest) seen.plain += 1;
      else seen.other += 1;
      handle(request, response);
    },
    upgrade(request: HttpRequest, socket: Duplex, head: Buffer) {
      seen.upgraded = `${request.url} ${head.toString()}`;
      socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\n");
    },
    refuse: (refusal, response) => void response.writeHead(417).end(refusal),
    refusalText: (refusal) => `HTTP/1.1 400 ${refusal}\r\nconnection: close\r\n\r\n`,
    ended: () => void (seen.ended += 1),
    connection: () => undefined,
    malformed: () => void (seen.malformed += 1),
  };
  const listener = new Listener(application, { ...LIMITS, ...limits }, null, engine);
  const { port } = await listener.listen("127.0.0.1", 0);
  const clients: Client[] = [];
  onTestFinished(async () => {
    for (const { socket } of clients) socket.destroy();
    listener.drain();
    await listener.close(0);
  });
  const dial = (): Client => {
    const client = new Client(port);
    clients.push(client);
    return client;
  };
  return { listener, seen, dial };
}

class Client {
  readonly socket: Socket;
  text = "";
  isClosed = false;

  constructor(port: number) {
    this.socket = connect({ port, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
    this.socket.on("error", () => undefined);
    this.socket.on("data", (data) => (this.text += data.toString("latin1")));
    this.socket.on("end", () => this.socket.end());
    this.socket.once("close", () => (this.isClosed = true));
  }

  send(text: string): this {
    this.socket.write(text, "latin1");
    return this;
  }

  /** Bodies of the responses. */
  get bodies(): string[] {
    return [...this.text.matchAll(/\[[^\]]*\]/g)].map(([body]) => body);
  }

  async closed(): Promise<string> {
    await expect.poll(() => this.isClosed).toBe(true);
    return this.text;
  }
}

const get = (path: string, ...lines: string[]) =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\n${lines.map((line) => `${line}\r\n`).join("")}\r\n`;
const post = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const CHUNKED =
  "POST /chunked HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
const MIXED = [
  get("/1"),
  post("/2", "body"),
  post("/3", ""),
  CHUNKED,
  get("/5"),
  get("/6", "Connection: close"),
];

describe.each(["own", "node"] as const)("engine %s", (engine) => {
  it("answers plain and other requests of a connection in order, wherever its bytes are split", async () => {
    const { dial, seen } = await open(engine);
    const whole = MIXED.join("");
    const expected = await dial().send(whole).closed();
    expect(expected.match(/\[[^\]]*\]/g)).toEqual([
      "[GET /1 2 ]",
      "[POST /2 4 body]",
      "[POST /3 4 ]",
      "[POST /chunked 4 abcde]",
      "[GET /5 2 ]",
      "[GET /6 4 ]",
    ]);
    const clients = Array.from({ length: whole.length - 1 }, (_, i) => {
      const client = dial();
      client.send(whole.slice(0, i + 1));
      // The first part is read before the second one is sent.
      client.socket.once("connect", () => setTimeout(() => client.send(whole.slice(i + 1)), 30));
      return client;
    });
    const withoutDate = (text: string) => text.replaceAll(/^Date: .*$/gm, "");
    for (const client of clients) expect(withoutDate(await client.closed())).toBe(withoutDate(expected));
    if (engine === "own") expect(seen.plain).toBeGreaterThan(clients.length * 2);
    expect(seen.ended).toBe(seen.plain + seen.other);
  });

  it("a request that is not plain waits for the responses before it", async () => {
    const waiting: ServedResponse[] = [];
    const { dial, seen } = await open(engine, {
      handle: (request, response) =>
        request.url === "/late" ? void waiting.push(response) : echo(request, response),
    });
    const client = dial().send(get("/late") + CHUNKED + "NONSENSE\r\n\r\n");
    await expect.poll(() => waiting.length).toBe(1);
    waiting[0]?.writeHead(200, ["content-length", "6"]).end("[late]");
    expect(await client.closed()).toMatch(/\[late\][^]*\[POST \/chunked 4 abcde\][^]*400 malformed/);
    expect(seen.malformed).toBe(1);
  });

  it.each([
    ["is not plain", CHUNKED],
    ["is plain", get("/next")],
  ])("a request that %s does not run in the context of the one before it", async (_, next) => {
    const context = new AsyncLocalStorage<string>();
    const contexts: (string | undefined)[] = [];
    const { dial } = await open(engine, {
      handle: (request, response) => {
        contexts.push(context.getStore());
        // More than a socket takes at once, so that the connection is not read for a while.
        if (request.url === "/first")
          context.run("first", () => setImmediate(() => response.end(Buffer.alloc(20_000_000, "x"))));
        else echo(request, response);
      },
    });
    const client = dial().send(get("/first") + get("/second") + next + post("/last", "x".repeat(200_000)));
    await expect.poll(() => client.bodies.length).toBe(3);
    expect(contexts).toEqual([undefined, undefined, undefined, undefined]);
  });

  it("an upgrade behind plain requests has the bytes that follow it", async () => {
    const { dial, seen } = await open(engine);
    const client = dial().send(
      get("/1") + get("/ws", "Connection: Upgrade", "Upgrade: websocket") + "frames",
    );
    expect(await client.closed()).toMatch(/\[GET \/1 2 \][^]*101 Switching/);
    expect(seen.upgraded).toBe("/ws frames");
  });

  it("a client that ends in the middle of a request is told", async () => {
    const { dial, seen } = await open(engine);
    for (const part of [get("/").slice(0, 20), get("/").slice(0, 12), post("/", "body").slice(0, -1)]) {
      const client = dial().send(part);
      client.socket.end();
      expect(await client.closed()).toMatch(/^HTTP\/1.1 400 malformed/);
    }
    expect(seen.malformed).toBe(3);
  });

  it("a client that ends while it waits for a response has left", async () => {
    let response: ServedResponse | undefined;
    const { dial, seen } = await open(engine, { handle: (_, given) => (response = given) });
    const client = dial().send(get("/"));
    await expect.poll(() => response !== undefined).toBe(true);
    client.socket.end();
    await expect.poll(() => response?.destroyed).toBe(true);
    expect(response?.writableFinished).toBe(false);
    expect(seen.ended).toBe(1);
    expect(response?.write("late")).toBe(false);
    response?.end();
  });

  it("the head, the body and a connection without a request have their time", async () => {
    const { dial, seen } = await open(engine, { headerTimeoutMs: 300, bodyTimeoutMs: 300 });
    const clients = [dial(), dial().send(get("/").slice(0, 20)), dial().send(post("/", "body").slice(0, -1))];
    for (const client of clients) expect(await client.closed()).toMatch(/^HTTP\/1.1 400 too_slow/);
    expect(seen.malformed).toBe(3);
    // A pipelined one is refused behind the response to the first.
    const second = dial().send(get("/1") + post("/2", "body").slice(0, -1));
    expect(await second.closed()).toMatch(/\[GET \/1 2 \][^]*400 too_slow/);
  });

  it("a body that is refused as too slow is not kept while the connection ends", async () => {
    const requests: HttpRequest[] = [];
    const { dial } = await open(engine, {
      headerTimeoutMs: 2000,
      bodyTimeoutMs: 2000,
      handle: (request) => void requests.push(request),
    });
    // More than the system buffers, so that the connection is paused until the refusal.
    const client = dial().send(post("/", "x".repeat(32 * 1024 * 1024)));
    await client.closed();
    expect(requests.map(({ complete }) => complete)).toEqual([false]);
    const [request] = requests;
    if (request instanceof PlainRequest) expect(request.missing).toBeGreaterThan(31 * 1024 * 1024);
  });

  it("a response that has begun is cut when its request does not end in time", async () => {
    const { dial } = await open(engine, {
      headerTimeoutMs: 300,
      bodyTimeoutMs: 300,
      handle: (_, response) => void response.writeHead(200).write("begun"),
    });
    const text = await dial().send(post("/", "body").slice(0, -1)).closed();
    expect(text).toContain("begun");
    expect(text).not.toContain("too_slow");
  });

  it("an idle connection is closed, one with a slow response is not", async () => {
    const waiting: ServedResponse[] = [];
    const { dial } = await open(engine, {
      idleTimeoutMs: 100,
      headerTimeoutMs: 100,
      handle: (request, response) =>
        request.url === "/late" ? void waiting.push(response) : echo(request, response),
    });
    const slow = dial().send(get("/late"));
    const idle = dial().send(get("/"));
    expect(await idle.closed()).toMatch(/200 OK[^]*\[GET \/ 2 \]$/);
    expect(slow.isClosed).toBe(false);
    waiting[0]?.writeHead(200).end("[late]");
    expect(await slow.closed()).toContain("[late]");
  });

  it("a body that nobody reads is not read, and arrives whole when somebody does", async () => {
    let request: HttpRequest | undefined;
    let response: ServedResponse | undefined;
    const { dial } = await open(engine, {
      handle: (given, answer) => {
        if (given.url === "/quick") echo(given, answer);
        else [request, response] = [given, answer];
      },
    });
    const body = Buffer.alloc(64 * 1024 * 1024, "0123456789");
    const client = dial().send(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`);
    client.socket.write(body);
    await expect.poll(() => request !== undefined).toBe(true);
    const other = dial();
    for (let i = 1; i <= 50; i++) {
      other.send(get("/quick"));
      await expect.poll(() => other.bodies.length).toBe(i);
    }
    // What the buffers of both ends hold is the system's.
    expect((request?.socket as Socket | undefined)?.bytesRead).toBeLessThan(1024 * 1024);
    const hash = createHash("sha256");
    for await (const piece of request?.body ?? []) hash.update(piece as Buffer);
    expect(hash.digest("hex")).toBe(createHash("sha256").update(body).digest("hex"));
    expect(request?.complete).toBe(true);
    response?.end("[read]");
    await expect.poll(() => client.text).toContain("[read]");
  });

  it("a body that the response did not wait for is skipped", async () => {
    const { dial } = await open(engine, {
      handle: (request, response) => {
        if (request.url === "/early") response.end("[early]");
        else echo(request, response);
      },
    });
    const body = "x".repeat(3_000_000);
    const client = dial().send(post("/early", body) + get("/next"));
    await expect.poll(() => client.bodies).toEqual(["[early]", "[GET /next 2 ]"]);
  });

  it("a body is collected late, and in pieces", async () => {
    const { dial } = await open(engine, {
      handle: (request, response) => void setImmediate(() => setImmediate(echo, request, response)),
    });
    const client = dial().send(post("/1", "a".repeat(100_000)) + post("/2", "b"));
    await expect.poll(() => client.bodies.map((body) => body.length)).toEqual([100_012, 13]);
  });

  it("a client that reads slowly slows the response down", async () => {
    let drains = 0;
    const { dial } = await open(engine, {
      handle: (_, response) => {
        let pieces = 0;
        const fill = () => {
          while (pieces < 500) {
            pieces += 1;
            if (!response.write(Buffer.alloc(40_000, "x"))) {
              drains += 1;
              response.once("drain", fill);
              return;
            }
          }
          response.end("[done]");
        };
        response.writeHead(200);
        fill();
      },
    });
    const client = dial();
    client.socket.pause();
    client.send(get("/"));
    await expect.poll(() => drains).toBeGreaterThan(0);
    client.socket.resume();
    await expect.poll(() => client.text.endsWith("[done]\r\n0\r\n\r\n")).toBe(true);
    expect(client.text.length).toBeGreaterThan(20_000_000);
  });

  it("a connection with too many unanswered requests is cut, and all of them have ended", async () => {
    const { dial, seen } = await open(engine, { handle: () => undefined });
    await dial()
      .send(get("/").repeat(MAX_UNANSWERED + 1))
      .closed();
    expect(seen.plain + seen.other).toBe(MAX_UNANSWERED);
    await expect.poll(() => seen.ended).toBe(MAX_UNANSWERED);
  });

  it("a response that is destroyed cuts the connection in its turn", async () => {
    const responses: ServedResponse[] = [];
    const { dial, seen } = await open(engine, { handle: (_, response) => void responses.push(response) });
    const client = dial().send(get("/1") + get("/2"));
    await expect.poll(() => responses.length).toBe(2);
    responses[0]?.destroy();
    await client.closed();
    await expect.poll(() => seen.ended).toBe(2);
    expect(client.text).toBe("");
  });

  it("bytes behind the last request of a connection are not handled", async () => {
    const { dial, seen } = await open(engine);
    expect(
      await dial()
        .send(get("/1", "Connection: close") + get("/2"))
        .closed(),
    ).toContain("[GET /1 4 ]");
    expect(seen.plain + seen.other).toBe(1);
  });
});
