import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import fc from "fast-check";
import { afterEach, expect, it } from "vitest";
import { UpstreamClient } from "./upstream-client.ts";
import { NO_BODY, type RequestBody } from "../../core/request-body.ts";
import { toOrigin, type UpstreamExchange, type UpstreamFailure } from "./upstream.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A server that passes each connection to the test. */
async function listen(onConnection: (socket: Socket, index: number) => void): Promise<number> {
  let count = 0;
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    onConnection(socket, count++);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as { port: number }).port;
}

function client(timeouts: Partial<ConstructorParameters<typeof UpstreamClient>[0]> = {}): UpstreamClient {
  const made = new UpstreamClient({
    connectTimeoutMs: 30_000,
    firstByteTimeoutMs: 30_000,
    stallTimeoutMs: 30_000,
    idleTimeoutMs: 30_000,
    ...timeouts,
  });
  closers.push(() => made.close());
  return made;
}

interface Result {
  status: number;
  body: string;
  failure: UpstreamFailure | null;
}

function send(
  upstream: UpstreamClient,
  port: number,
  body: RequestBody = NO_BODY,
  onExchange: (exchange: UpstreamExchange) => void = () => undefined,
  headers: readonly string[] = [],
): Promise<Result> {
  return new Promise((resolve) => {
    const result: Result = { status: 0, body: "", failure: null };
    const exchange = upstream.send(
      {
        origin: toOrigin(new URL(`http://127.0.0.1:${port}`), true),
        method: body.kind === "none" ? "GET" : "POST",
        target: "/x",
        headers,
        body,
      },
      {
        onHead: ({ status }) => (result.status = status),
        onBody(chunk, isLast) {
          result.body += chunk.toString();
          if (isLast) resolve(result);
        },
        onReadEnd: () => undefined,
        onFailure(failure) {
          result.failure = failure;
          resolve(result);
        },
      },
    );
    onExchange(exchange);
  });
}

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

it("sends one request after another over one connection", async () => {
  let connections = 0;
  const port = await listen((socket) => {
    connections += 1;
    socket.on("data", () => socket.write(OK));
  });
  const upstream = client();
  expect((await send(upstream, port)).body).toBe("ok");
  expect((await send(upstream, port)).body).toBe("ok");
  expect(connections).toBe(1);
});

it("does not send a request again when a new connection is closed before the response", async () => {
  let requests = 0;
  const port = await listen((socket) =>
    socket.on("data", () => {
      requests += 1;
      socket.destroy();
    }),
  );
  const result = await send(client(), port);
  expect(result.failure?.kind).toBe("broken");
  expect(requests).toBe(1);
});

it("does not send a request again after a byte of the response arrived", async () => {
  let requests = 0;
  const port = await listen((socket) =>
    socket.on("data", () => {
      requests += 1;
      if (requests === 1) socket.write(OK);
      else socket.write("H", () => socket.destroy());
    }),
  );
  const upstream = client();
  await send(upstream, port);
  expect((await send(upstream, port)).failure?.kind).toBe("broken");
  expect(requests).toBe(2);
});

it("does not reuse a connection after unexpected bytes", async () => {
  let connections = 0;
  const port = await listen((socket) => {
    connections += 1;
    socket.on("data", () => socket.write(`${OK}HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil`));
  });
  const upstream = client();
  await send(upstream, port);
  expect((await send(upstream, port)).body).toBe("ok");
  expect(connections).toBe(2);
});

/** Responses to a request that names its number; the last two are damaged. */
const FRAMINGS: readonly ((body: string) => string)[] = [
  (body) => `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  (body) =>
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  (body) => `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  (body) => `HTTP/1.1 200 OK\r\ncontent-length: ${body.length - 1}\r\n\r\n${body}`,
  (body) => `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n${body}\r\n0\r\n\r\n`,
];

it("never gives a request the response of another, also after damaged responses", async () => {
  let script: readonly { readonly framing: number; readonly cut: number }[] = [];
  const port = await listen((socket) => {
    socket.setNoDelay(true).on("data", (data) => {
      const i = Number(/^n: (\d+)/m.exec(data.toString())?.[1]);
      const { framing = 0, cut = 0 } = script[i] ?? {};
      const wire = FRAMINGS[framing]?.(`body-of-${i}`) ?? "";
      socket.write(wire.slice(0, cut % wire.length));
      setImmediate(() => socket.write(wire.slice(cut % wire.length)));
    });
  });
  const upstream = client();
  const step = fc.record({ framing: fc.nat({ max: FRAMINGS.length - 1 }), cut: fc.nat({ max: 200 }) });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
      script = steps;
      for (const [i, { framing }] of steps.entries()) {
        const { body, failure } = await send(upstream, port, NO_BODY, undefined, ["n", String(i)]);
        if (framing < 3) expect({ body, failure }).toEqual({ body: `body-of-${i}`, failure: null });
        else expect(`body-of-${i}`.startsWith(body)).toBe(true);
      }
    }),
    { numRuns: 25 },
  );
});

it("reports a closed port as unreachable", async () => {
  const port = await listen(() => undefined);
  for (const close of closers.splice(0)) close();
  expect((await send(client(), port)).failure?.kind).toBe("unreachable");
});

it("times out without a first byte, and in the middle of a response", async () => {
  const silent = await listen(() => undefined);
  expect((await send(client({ firstByteTimeoutMs: 30 }), silent)).failure?.kind).toBe("timeout");
  const stalling = await listen((socket) =>
    socket.on("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")),
  );
  const result = await send(client({ stallTimeoutMs: 30 }), stalling);
  expect(result).toMatchObject({ status: 200, body: "half" });
  expect(result.failure?.kind).toBe("timeout");
});

it("closes the connection when a call is aborted", async () => {
  const { promise: closed, resolve: onClosed } = Promise.withResolvers<void>();
  const { promise: requested, resolve: onRequest } = Promise.withResolvers<void>();
  const port = await listen((socket) => {
    socket.on("close", () => onClosed());
    socket.on("data", () =>
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", () => onRequest()),
    );
  });
  let running: UpstreamExchange | undefined;
  void send(client(), port, NO_BODY, (exchange) => (running = exchange));
  await requested;
  running?.abort();
  await closed;
});

it("streams a body of unknown length in chunks, and one of known length without", async () => {
  const port = await listen((socket) => {
    let text = "";
    socket.on("data", (data) => {
      text += data.toString();
      if (!text.endsWith("0\r\n\r\n") && !text.endsWith("restEND")) return;
      const echo = text.slice(text.indexOf("\r\n\r\n") + 4);
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${echo.length}\r\n\r\n${echo}`);
    });
  });
  const rest = new PassThrough();
  const chunked = send(client(), port, {
    kind: "streamed",
    start: Buffer.from("start"),
    rest,
    length: null,
  });
  rest.write("more");
  rest.end("end");
  expect((await chunked).body).toBe("5\r\nstart\r\n4\r\nmore\r\n3\r\nend\r\n0\r\n\r\n");
  const whole = new PassThrough();
  const fixed = send(client(), port, {
    kind: "streamed",
    start: Buffer.from("start"),
    rest: whole,
    length: 12,
  });
  whole.end("restEND");
  expect((await fixed).body).toBe("startrestEND");
});

it("refuses addresses that are not public where only public ones are allowed", async () => {
  const port = await listen(() => undefined);
  const upstream = client();
  for (const host of ["127.0.0.1", "localhost", "[::1]", "10.0.0.1", "[::ffff:127.0.0.1]"]) {
    const failure = await new Promise<UpstreamFailure>((resolve) =>
      upstream.send(
        {
          origin: toOrigin(new URL(`http://${host}:${port}`), false),
          method: "GET",
          target: "/",
          headers: [],
          body: NO_BODY,
        },
        { onHead: () => undefined, onBody: () => undefined, onReadEnd: () => undefined, onFailure: resolve },
      ),
    );
    expect(failure.kind).toBe("unreachable");
  }
});
