import type { ClientFrame, RpcRequestFrame } from "@signalbox/protocol";
import { describe, expect, it } from "vitest";
import { eventually } from "../../test/eventually.ts";
import { respond, chunk, useConnectionBench } from "../../test/connection-bench.ts";
import type { FrameSocket } from "../../test/frame-server.ts";
import { AgentError } from "./agent-error.ts";

const bench = useConnectionBench();

function sendLetters(socket: FrameSocket, frame: ClientFrame): void {
  for (const letter of ["a", "b"]) chunk(socket, frame, letter);
  respond(socket, frame, 2);
}

describe("state", () => {
  it("shows an update at once and sends it", async () => {
    const connection = bench.connect();
    await connection.open().ready();
    const seen: unknown[] = [];
    connection.on("state", (state, source) => seen.push([state, source]));
    connection.setState({ count: 1 });
    expect(connection.state).toEqual({ count: 1 });
    expect(seen).toEqual([[{ count: 1 }, "client"]]);
    await eventually(() =>
      expect(bench.received("cf_agent_state")).toEqual([{ type: "cf_agent_state", state: { count: 1 } }]),
    );
  });

  it("reverts a rejected update", async () => {
    bench.server.onFrame = (socket) =>
      socket.send({ type: "cf_agent_state_error", error: "Connection is readonly" });
    const connection = bench.connect();
    await connection.open().ready();
    const errors: string[] = [];
    connection.on("stateError", (message) => errors.push(message));
    connection.setState({ count: 1 });
    await eventually(() => expect(errors).toEqual(["Connection is readonly"]));
    expect(connection.state).toEqual({ count: 0 });
  });

  it("keeps the later of two updates if the server rejects the earlier one", async () => {
    bench.server.onFrame = (socket, frame) => {
      if (frame.type !== "cf_agent_state" || (frame.state as { count: number }).count !== -1) return;
      socket.send(
        { type: "cf_agent_state_error", error: "State update rejected" },
        { type: "cf_agent_state", state: { count: 0 } },
      );
    };
    const connection = bench.connect();
    await connection.open().ready();
    const errors: string[] = [];
    connection.on("stateError", (message) => errors.push(message));
    connection.setState({ count: -1 });
    connection.setState({ count: 2 });
    await eventually(() => expect(errors).toHaveLength(1));
    await eventually(() => expect(connection.state).toEqual({ count: 2 }));
  });

  it("sends an offline update after receiving the server's state, and keeps showing the update", async () => {
    const connection = bench.connect();
    connection.setState({ count: 1 });
    connection.setState({ count: 2 });
    expect(connection.state).toEqual({ count: 2 });
    await connection.open().ready();
    expect(connection.state).toEqual({ count: 2 });
    await eventually(() =>
      expect(bench.received("cf_agent_state")).toEqual([{ type: "cf_agent_state", state: { count: 2 } }]),
    );
  });

  it("refuses undefined, which JSON cannot represent", () => {
    expect(() => bench.connect().setState(undefined as never)).toThrow(TypeError);
  });
});

describe("calls", () => {
  it("matches responses by id, in any order", async () => {
    const frames: { id: string; args: readonly unknown[] }[] = [];
    bench.server.onFrame = (socket, frame) => {
      if (frame.type !== "rpc") return;
      frames.push(frame);
      if (frames.length < 2) return;
      for (const { id, args } of frames.toReversed())
        socket.send({ type: "rpc", id, success: true, done: true, result: args[0] });
    };
    const connection = bench.connect();
    connection.open();
    expect(await Promise.all([connection.call("add", [1]), connection.stub.add(2)])).toEqual([1, 2]);
  });

  it("fails with the agent's own message", async () => {
    bench.server.onFrame = (socket, frame) =>
      frame.type === "rpc" &&
      socket.send({ type: "rpc", id: frame.id, success: false, error: "no such thing" });
    const failure = bench.connect().open().call("add", [1]);
    await expect(failure).rejects.toThrow(new AgentError("call_failed", "no such thing"));
    await expect(failure).rejects.toMatchObject({ reason: "call_failed" });
  });

  it("fails after its timeout and ignores a late response", async () => {
    const connection = bench.connect({ callTimeoutMs: 20 });
    await connection.open().ready();
    await expect(connection.call("slow", [])).rejects.toMatchObject({ reason: "timeout" });
    // On a busy machine the call may time out before the server has read it.
    await eventually(() => expect(bench.received("rpc")).toHaveLength(1));
    const [frame] = bench.received("rpc");
    bench.server.sockets[0]?.send({
      type: "rpc",
      id: (frame as RpcRequestFrame).id,
      success: true,
      done: true,
    });
    bench.server.onFrame = (socket, frame) => respond(socket, frame, 1);
    expect(await connection.call("add", [1], { timeoutMs: 0 })).toBe(1);
  });

  it("rejects when aborted; an unsent call is never sent", async () => {
    const connection = bench.connect();
    const controller = new AbortController();
    const call = connection.call("add", [1], { signal: controller.signal });
    controller.abort(new Error("changed my mind"));
    await expect(call).rejects.toThrow("changed my mind");
    await expect(connection.call("add", [2], { signal: controller.signal })).rejects.toThrow(
      "changed my mind",
    );
    await connection.open().ready();
    connection.send('{"type":"marker"}');
    await eventually(() => expect(bench.received("marker")).toHaveLength(1));
    expect(bench.received("rpc")).toEqual([]);
  });

  it("fails calls that were sent on a lost connection, and sends unsent calls exactly once", async () => {
    const connection = bench.connect({ backoff: { baseDelayMs: 50, maxDelayMs: 50 } });
    await connection.open().ready();
    const sent = connection.call("add", [1]);
    sent.catch(() => {});
    await eventually(() => expect(bench.received("rpc")).toHaveLength(1));
    bench.server.sockets[0]?.cut();
    await expect(sent).rejects.toMatchObject({ reason: "closed" });
    const waiting = connection.call("add", [2]);
    bench.server.onFrame = (socket, frame) => respond(socket, frame, 2);
    expect(await waiting).toBe(2);
    expect(bench.received("rpc").map((frame) => (frame as RpcRequestFrame).args)).toEqual([[1], [2]]);
  });

  it("fails sent and waiting calls when closed", async () => {
    const connection = bench.connect();
    await connection.open().ready();
    const sent = connection.call("slow", []);
    const offline = bench.connect();
    const never = offline.call("slow", []);
    connection.close();
    offline.close();
    await expect(sent).rejects.toMatchObject({ reason: "final" });
    await expect(never).rejects.toMatchObject({ reason: "final" });
  });

  it("rejects arguments that JSON cannot represent, without a pending call", async () => {
    const connection = bench.connect();
    await expect(connection.call("add", [1n as unknown as number])).rejects.toThrow(TypeError);
  });

  it("has a stub that can be awaited and printed", async () => {
    const { stub } = bench.connect();
    expect(await Promise.resolve(stub)).toBe(stub);
    expect(stub.add).toBe(stub.add);
    expect(Object.prototype.toString.call(stub)).toBe("[object Object]");
  });
});

describe("streams", () => {
  it("yields the chunks in order and ends with the method's result", async () => {
    bench.server.onFrame = (socket, frame) => sendLetters(socket, frame);
    const stream = bench.connect().open().stream<string, number>("letters", ["b"]);
    const chunks: string[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks).toEqual(["a", "b"]);
    expect(await stream.result).toBe(2);
    expect(bench.received("rpc")).toEqual([{ type: "rpc", id: "1", method: "letters", args: ["b"] }]);
  });

  it("fails in the loop if the connection is lost, after the received chunks", async () => {
    bench.server.onFrame = (socket, frame) => {
      chunk(socket, frame, "a");
      socket.close(1011);
    };
    const chunks: string[] = [];
    const reading = (async () => {
      for await (const chunk of bench.connect().open().stream<string>("letters", ["z"])) chunks.push(chunk);
    })();
    await expect(reading).rejects.toMatchObject({ reason: "closed", closeCode: 1011 });
    expect(chunks).toEqual(["a"]);
  });

  it("can be stopped early and by signal", async () => {
    bench.server.onFrame = (socket, frame) => chunk(socket, frame, "a");
    const connection = bench.connect().open();
    const left = connection.stream<string>("letters", ["z"]);
    for await (const chunk of left) {
      expect(chunk).toBe("a");
      break;
    }
    await expect(left.result).rejects.toThrow("left before its end");
    const controller = new AbortController();
    const stream = connection.stream<string>("letters", ["z"], { signal: controller.signal });
    expect(await stream.next()).toEqual({ done: false, value: "a" });
    controller.abort(new Error("stop"));
    await expect(stream.next()).rejects.toThrow("stop");
  });

  it("fails if the reader is too slow", async () => {
    bench.server.onFrame = (socket, frame) => {
      for (let n = 0; n <= 10_000; n++) chunk(socket, frame, n);
    };
    const stream = bench.connect().open().stream("letters", ["z"]);
    await expect(stream.result).rejects.toMatchObject({ reason: "buffer_full" });
  });
});
