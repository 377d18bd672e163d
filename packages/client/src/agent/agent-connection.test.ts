import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { eventually } from "../../test/eventually.ts";
import { respond, statusIs, useConnectionBench } from "../../test/connection-bench.ts";
import { greet, startFrameServer } from "../../test/frame-server.ts";
import { AgentConnection } from "./agent-connection.ts";
import { AgentError } from "./agent-error.ts";

const bench = useConnectionBench();

describe("connecting", () => {
  it("opens no socket before open(), and one socket for repeated open() calls", async () => {
    const connection = bench.connect();
    expect(connection.status).toBe("idle");
    await connection.open().open().ready();
    connection.open();
    expect(connection.snapshot).toEqual({
      status: "open",
      state: { count: 0 },
      identity: { agent: "counter", name: "one" },
      error: null,
    });
    expect(bench.server.sockets).toHaveLength(1);
  });

  it("addresses the instance by kebab-case class, encoded name, own query and connection id", async () => {
    const connection = bench.connect({ agent: "GitHubAgent", name: "a b/c?", query: { view: "full" } });
    await connection.open().ready();
    const target = new URL(bench.server.sockets[0]?.request.url ?? "", bench.server.url);
    expect(target.pathname).toBe("/agents/git-hub-agent/a%20b%2Fc%3F");
    expect(Object.fromEntries(target.searchParams)).toEqual({ view: "full", _pk: connection.id });
    expect(connection.httpUrl.href).toBe(`${bench.server.url}/agents/git-hub-agent/a%20b%2Fc%3F?view=full`);
  });

  it("sends the token in a header on Node, and calls a token function before every attempt", async () => {
    let number = 0;
    const connection = bench.connect({ token: async () => `token-${++number}` });
    await connection.open().ready();
    bench.server.sockets[0]?.cut();
    await eventually(() => expect(bench.server.sockets).toHaveLength(2));
    expect(bench.server.sockets.map(({ request }) => request.headers.authorization)).toEqual([
      "Bearer token-1",
      "Bearer token-2",
    ]);
    expect(bench.server.sockets[0]?.request.url).not.toContain("token");
  });

  it("waits and tries again if the token function fails", async () => {
    let number = 0;
    const connection = bench.connect({
      token: () => {
        if (++number < 3) throw new Error("no token yet");
        return "now";
      },
    });
    const errors: (string | undefined)[] = [];
    connection.on(
      "status",
      (status) => status === "waiting" && errors.push(connection.snapshot.error?.message),
    );
    await connection.open().ready();
    expect(errors).toEqual(["no token yet", "no token yet"]);
  });

  it.each(["", ".", ".."])("refuses the instance name %j, which a URL cannot contain", (name) => {
    expect(() => bench.connect({ name })).toThrow(TypeError);
  });

  it("refuses an address that is not http, and a missing address outside a browser", () => {
    expect(() => bench.connect({ url: "ftp://example.test" })).toThrow("http or https");
    expect(() => new AgentConnection({ agent: "Counter" }).open()).toThrow("url is required");
  });

  it("ends an attempt that does not open in time, and tries again", async () => {
    // Accepts the connection and never responds.
    const attempts: Socket[] = [];
    const mute = createServer((socket) => void attempts.push(socket));
    await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(mute.address() as AddressInfo).port}`;
    const connection = bench.connect({ url, connectTimeoutMs: 50 });
    connection.open();
    await eventually(() => expect(attempts.length).toBeGreaterThan(2));
    expect(connection.snapshot.error?.message).toContain("no connection within 50 ms");
    connection.close();
    for (const socket of attempts) socket.destroy();
    await new Promise((resolve) => mute.close(resolve));
  });

  it("is usable after a delay if the server sends no identity", async () => {
    bench.server.onConnect = () => {};
    bench.server.onFrame = (socket, frame) => respond(socket, frame, 7);
    expect(await bench.connect().open().call("add", [7])).toBe(7);
  });

  it("stops waiting for ready when the signal aborts", async () => {
    const controller = new AbortController();
    const ready = bench.connect().ready(controller.signal);
    controller.abort(new Error("enough"));
    await expect(ready).rejects.toThrow("enough");
  });
});

describe("reconnection", () => {
  it("reconnects with the same id, receives the new state and handles new calls", async () => {
    const connection = bench.connect();
    await connection.open().ready();
    bench.server.onConnect = (socket) => greet(socket, { count: 5 });
    bench.server.onFrame = (socket, frame) => respond(socket, frame, 6);
    bench.server.sockets[0]?.cut();
    await eventually(() => expect(connection.state).toEqual({ count: 5 }));
    expect(await connection.stub.add(1)).toBe(6);
    const ids = bench.server.sockets.map(({ request }) =>
      new URL(request.url ?? "", bench.server.url).searchParams.get("_pk"),
    );
    expect(ids).toEqual([connection.id, connection.id]);
  });

  it.each([1000, 1001, 1011, 1012, 3000])("reconnects after close code %i", async (code) => {
    const connection = bench.connect();
    await connection.open().ready();
    bench.server.sockets[0]?.close(code);
    await eventually(() => expect(bench.server.sockets).toHaveLength(2));
    await connection.ready();
  });

  it.each([1008, 4000, 4401, 4999])(
    "does not reconnect after close code %i and reports the reason",
    async (code) => {
      const connection = bench.connect();
      await connection.open().ready();
      bench.server.sockets[0]?.close(code, "go away");
      await statusIs(connection, "closed");
      expect(connection.snapshot.error).toMatchObject({ reason: "final", closeCode: code });
      expect(connection.snapshot.error?.message).toContain("go away");
      await expect(connection.ready()).rejects.toThrow(`${code}`);
      await expect(connection.call("add", [1])).rejects.toThrow(`${code}`);
      expect(() => connection.setState({ count: 1 })).toThrow(`${code}`);
      expect(() => connection.send("x")).toThrow(`${code}`);
      expect(bench.server.sockets).toHaveLength(1);
      await connection.open().ready();
      expect(bench.server.sockets).toHaveLength(2);
    },
  );

  it("reconnects to a server that was down for a while", async () => {
    const connection = bench.connect();
    await connection.open().ready();
    await bench.server.stop();
    await statusIs(connection, "waiting");
    bench.server = await startFrameServer(Number(new URL(bench.server.url).port));
    await connection.ready();
    expect(bench.server.sockets).toHaveLength(1);
  });

  it("ends a delay early on request", async () => {
    const connection = bench.connect({ backoff: { baseDelayMs: 3_600_000, maxDelayMs: 3_600_000 } });
    await connection.open().ready();
    bench.server.sockets[0]?.cut();
    await statusIs(connection, "waiting");
    connection.reconnectNow();
    await connection.ready();
    expect(bench.server.sockets).toHaveLength(2);
  });

  it("opens no further socket after close(), in any state", async () => {
    const beforeToken = bench.connect({
      token: () => new Promise((resolve) => setTimeout(resolve, 20, "late")),
    });
    beforeToken.open().close();
    const connecting = bench.connect();
    connecting.open().close();
    const waiting = bench.connect({ backoff: { baseDelayMs: 3_600_000, maxDelayMs: 3_600_000 } });
    await waiting.open().ready();
    const count = bench.server.sockets.length;
    bench.server.sockets.at(-1)?.cut();
    await statusIs(waiting, "waiting");
    waiting.close();
    expect([beforeToken.status, connecting.status, waiting.status]).toEqual(["closed", "closed", "closed"]);
    // After a round trip of another client, an earlier attempt would have arrived.
    await bench.connect().open().ready();
    expect(bench.server.sockets.filter((socket) => socket.isOpen)).toHaveLength(1);
    expect(bench.server.sockets.length).toBeLessThanOrEqual(count + 2);
  });

  it("changes nothing if close() gets an invalid code", async () => {
    const connection = bench.connect();
    await connection.open().ready();
    expect(() => connection.close(1001)).toThrow("code");
    expect(connection.status).toBe("open");
  });
});

describe("the queue while offline", () => {
  it("is limited in number: above the limit calls reject, and setState and send throw and change nothing", async () => {
    const connection = bench.connect({ outbox: { maxMessages: 2 } });
    connection.setState({ count: 1 });
    connection.send('{"type":"marker"}');
    await expect(connection.call("add", [1])).rejects.toMatchObject({ reason: "buffer_full" });
    expect(() => connection.send("x")).toThrow("limit of 2 waiting messages");
    expect(() => connection.setState({ count: 2 })).toThrow(AgentError);
    expect(connection.state).toEqual({ count: 1 });
    await connection.open().ready();
    await eventually(() => expect(bench.server.sockets[0]?.received).toHaveLength(2));
    expect(bench.server.sockets[0]?.received.map(({ type }) => type)).toEqual(["cf_agent_state", "marker"]);
  });

  it("is limited in size, and accepts entries again after an abort", async () => {
    const connection = bench.connect({ outbox: { maxCharacters: 200 } });
    const controller = new AbortController();
    const big = connection.call("add", ["x".repeat(120) as never], { signal: controller.signal });
    await expect(connection.call("add", ["y".repeat(120) as never])).rejects.toMatchObject({
      reason: "buffer_full",
    });
    controller.abort();
    await expect(big).rejects.toMatchObject({ name: "AbortError" });
    expect(() => connection.send("z".repeat(200))).not.toThrow();
  });
});

describe("a network that is slower than the client", () => {
  it("makes further sends fail instead of using more memory", async () => {
    const connection = bench.connect();
    await connection.open().ready();
    bench.server.sockets[0]?.pause();
    const fill = () => {
      for (let n = 0; n < 500; n++) connection.send("x".repeat(1_000_000));
    };
    expect(fill).toThrow("bytes are waiting");
    await expect(connection.call("add", [1], { timeoutMs: 50 })).rejects.toBeInstanceOf(AgentError);
  });
});

describe("listeners", () => {
  it("receive the agent's messages as text and can be removed", async () => {
    const connection = bench.connect();
    const received: string[] = [];
    const stop = connection.on("message", (text) => received.push(text));
    await connection.open().ready();
    bench.server.sockets[0]?.sendText('{"type":"chat","text":"hi"}');
    await eventually(() => expect(received).toEqual(['{"type":"chat","text":"hi"}']));
    stop();
    bench.server.sockets[0]?.sendText("again");
    bench.server.sockets[0]?.send({ type: "cf_agent_state", state: { count: 9 } });
    await eventually(() => expect(connection.state).toEqual({ count: 9 }));
    expect(received).toHaveLength(1);
  });
});
