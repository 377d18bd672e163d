import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { eventually } from "../../test/eventually.ts";
import { answer, statusIs, useConnectionBench } from "../../test/connection-bench.ts";
import { greet, startFrameServer } from "../../test/frame-server.ts";
import { AgentConnection } from "./agent-connection.ts";
import { AgentError } from "./agent-error.ts";

const bench = useConnectionBench();

describe("connecting", () => {
  it("opens nothing before open(), and one socket however often open() is called", async () => {
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

  it("sends the token in a header on Node, and asks a function for it before every attempt", async () => {
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

  it("waits and tries again when the token cannot be had", async () => {
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

  it.each(["", ".", ".."])("refuses the instance name %j, which no URL can carry", (name) => {
    expect(() => bench.connect({ name })).toThrow(TypeError);
  });

  it("refuses an address that is not http, and a missing one outside a browser", () => {
    expect(() => bench.connect({ url: "ftp://example.test" })).toThrow("http or https");
    expect(() => new AgentConnection({ agent: "Counter" }).open()).toThrow("url is required");
  });

  it("gives an attempt up that does not open in time, and tries again", async () => {
    // Takes the connection and never says a word.
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

  it("is usable after a pause when the server never introduces itself", async () => {
    bench.server.onConnect = () => {};
    bench.server.onFrame = (socket, frame) => answer(socket, frame, 7);
    expect(await bench.connect().open().call("add", [7])).toBe(7);
  });

  it("stops waiting for ready when the signal aborts", async () => {
    const controller = new AbortController();
    const ready = bench.connect().ready(controller.signal);
    controller.abort(new Error("enough"));
    await expect(ready).rejects.toThrow("enough");
  });
});

describe("coming back", () => {
  it("returns after a cut with the same id, takes the new state and answers new calls", async () => {
    const connection = bench.connect();
    await connection.open().ready();
    bench.server.onConnect = (socket) => greet(socket, { count: 5 });
    bench.server.onFrame = (socket, frame) => answer(socket, frame, 6);
    bench.server.sockets[0]?.cut();
    await eventually(() => expect(connection.state).toEqual({ count: 5 }));
    expect(await connection.stub.add(1)).toBe(6);
    const ids = bench.server.sockets.map(({ request }) =>
      new URL(request.url ?? "", bench.server.url).searchParams.get("_pk"),
    );
    expect(ids).toEqual([connection.id, connection.id]);
  });

  it.each([1000, 1001, 1011, 1012, 3000])("comes back after close code %i", async (code) => {
    const connection = bench.connect();
    await connection.open().ready();
    bench.server.sockets[0]?.close(code);
    await eventually(() => expect(bench.server.sockets).toHaveLength(2));
    await connection.ready();
  });

  it.each([1008, 4000, 4401, 4999])("stays away after close code %i and says why", async (code) => {
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
  });

  it("finds a server that was down for a while on the same port", async () => {
    const connection = bench.connect();
    await connection.open().ready();
    await bench.server.stop();
    await statusIs(connection, "waiting");
    bench.server = await startFrameServer(Number(new URL(bench.server.url).port));
    await connection.ready();
    expect(bench.server.sockets).toHaveLength(1);
  });

  it("ends a pause early when asked", async () => {
    const connection = bench.connect({ backoff: { baseDelayMs: 3_600_000, maxDelayMs: 3_600_000 } });
    await connection.open().ready();
    bench.server.sockets[0]?.cut();
    await statusIs(connection, "waiting");
    connection.reconnectNow();
    await connection.ready();
    expect(bench.server.sockets).toHaveLength(2);
  });

  it("opens no further socket after close(), whatever it was doing", async () => {
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
    // A full round trip of another client: what was going to arrive has arrived.
    await bench.connect().open().ready();
    expect(bench.server.sockets.filter((socket) => socket.isOpen)).toHaveLength(1);
    expect(bench.server.sockets.length).toBeLessThanOrEqual(count + 2);
  });

  it("leaves everything as it is when close() gets a code that cannot be sent", async () => {
    const connection = bench.connect();
    await connection.open().ready();
    expect(() => connection.close(1001)).toThrow("code");
    expect(connection.status).toBe("open");
  });
});

describe("what waits while offline", () => {
  it("is bounded in number: over the bound calls reject, and setState and send throw and change nothing", async () => {
    const connection = bench.connect({ outbox: { maxMessages: 2 } });
    connection.setState({ count: 1 });
    connection.send('{"type":"marker"}');
    await expect(connection.call("add", [1])).rejects.toMatchObject({ reason: "buffer_full" });
    expect(() => connection.send("x")).toThrow("more than 2 messages");
    expect(() => connection.setState({ count: 2 })).toThrow(AgentError);
    expect(connection.state).toEqual({ count: 1 });
    await connection.open().ready();
    await eventually(() => expect(bench.server.sockets[0]?.received).toHaveLength(2));
    expect(bench.server.sockets[0]?.received.map(({ type }) => type)).toEqual(["cf_agent_state", "marker"]);
  });

  it("is bounded in size, and has room again after an abort", async () => {
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

describe("a network that is slower than this side", () => {
  it("makes further sending fail clearly instead of filling the memory", async () => {
    const connection = bench.connect();
    await connection.open().ready();
    bench.server.sockets[0]?.pause();
    const fill = () => {
      for (let n = 0; n < 500; n++) connection.send("x".repeat(1_000_000));
    };
    expect(fill).toThrow("the network has not taken");
    await expect(connection.call("add", [1], { timeoutMs: 50 })).rejects.toBeInstanceOf(AgentError);
  });
});

describe("listeners", () => {
  it("hear the agent's own messages as text and can be removed", async () => {
    const connection = bench.connect();
    const heard: string[] = [];
    const stop = connection.on("message", (text) => heard.push(text));
    await connection.open().ready();
    bench.server.sockets[0]?.sendText('{"type":"chat","text":"hi"}');
    await eventually(() => expect(heard).toEqual(['{"type":"chat","text":"hi"}']));
    stop();
    bench.server.sockets[0]?.sendText("again");
    bench.server.sockets[0]?.send({ type: "cf_agent_state", state: { count: 9 } });
    await eventually(() => expect(connection.state).toEqual({ count: 9 }));
    expect(heard).toHaveLength(1);
  });
});
