/** The client of the differential test: what a server answers, as transcripts with a name each. */
import { once } from "node:events";
import { expect } from "vitest";
import { WebSocket } from "ws";

export type Transcript = readonly (readonly [step: string, value: unknown])[];

/** A server that runs the program. */
export interface Side {
  readonly url: string;
}

/** Cases that the program runs by itself. */
const PATHS: Readonly<Record<string, string>> = {
  keys: "/call/Store.keys/keys",
  sql: "/call/Store.sql/sql",
  counters: "/call/Store.counters/counters",
  "schema and settings": "/call/Store.guard/guard",
  "deferred references": "/call/Store.deferred/deferred",
  transactions: "/call/Store.transactions/transactions",
  alarms: "/call/Order.alarms/alarms",
  order: "/order",
  sockets: "/call/Socket.pair/pair",
  calls: "/remote",
};

export const CASES: Readonly<Record<string, (side: Side) => Promise<Transcript>>> = {
  ...Object.fromEntries(
    Object.entries(PATHS).map(([name, path]) => [
      name,
      async (side: Side) => (await (await fetch(side.url + path)).json()) as Transcript,
    ]),
  ),
  "a throw without rollback": throwWithoutRollback,
  "an alarm that rings": ringingAlarm,
  "hibernating sockets": hibernatingSockets,
  "accepted sockets": acceptedSockets,
  "close codes": closeCodes,
  "agent frames": agentFrames,
  "agent calls": agentCalls,
  "agent work": agentWork,
  "agent requests": agentRequests,
};

async function call(side: Side, object: string, method: string, ...args: unknown[]): Promise<unknown> {
  const query = new URLSearchParams({ args: JSON.stringify(args) });
  return (await fetch(`${side.url}/call/${object}/${method}?${String(query)}`)).json();
}

async function throwWithoutRollback(side: Side): Promise<Transcript> {
  return [
    ["throws", await call(side, "Store.throwing", "writeAndThrow")],
    ["kept", await call(side, "Store.throwing", "kept")],
  ];
}

async function ringingAlarm(side: Side): Promise<Transcript> {
  await call(side, "Order.ringing", "ring");
  const read = async () => (await call(side, "Order.ringing", "read")) as unknown[];
  // The retry comes two seconds after the failure.
  await expect.poll(async () => (await read()).length).toBe(6);
  return [["log", await read()]];
}

/** A WebSocket with everything that arrived. */
class Recorder {
  readonly frames: string[] = [];
  readonly socket: WebSocket;
  readonly closed: Promise<unknown>;

  constructor(side: Side, path: string, protocols: string[] = []) {
    this.socket = new WebSocket(side.url.replace("http", "ws") + path, protocols);
    this.socket.on("message", (data: Buffer, isBinary) => {
      this.frames.push(isBinary ? `bytes ${data.toString("hex")}` : data.toString());
    });
    this.socket.on("error", () => undefined);
    this.closed = once(this.socket, "close").then(([code, reason]) => [code, String(reason)]);
  }

  async opened(): Promise<this> {
    if (this.socket.readyState !== WebSocket.OPEN) await once(this.socket, "open");
    return this;
  }

  /** Sends, and resolves when as many frames have arrived in all. */
  async exchange(message: string | Uint8Array, frames: number): Promise<void> {
    this.socket.send(message);
    await this.arrived(frames);
  }

  async arrived(frames: number): Promise<void> {
    await expect.poll(() => this.frames.length).toBeGreaterThanOrEqual(frames);
  }

  take(): string[] {
    return this.frames.splice(0);
  }
}

async function hibernatingSockets(side: Side): Promise<Transcript> {
  const one = await new Recorder(side, "/socket/room/in?tag=red&tag=big", ["chat", "other"]).opened();
  await one.arrived(1);
  const two = await new Recorder(side, "/socket/room/in?tag=red").opened();
  await two.arrived(1);
  const steps: [string, unknown][] = [
    ["protocol", one.socket.protocol],
    ["greetings", [one.take(), two.take()]],
  ];
  const messages = [
    "attachment",
    "tags:red",
    "tags:big",
    "state",
    "binary",
    "auto",
    "ping",
    "answered",
    "large:16384",
    "large:16370",
    "object",
    "function",
    "unknown",
  ];
  for (const message of messages) {
    // What `send` makes of an object comes first.
    await one.exchange(message, message === "object" ? 2 : 1);
    steps.push([`answer to ${message}`, one.take()]);
  }
  await one.exchange(new Uint8Array([5, 6]), 1);
  steps.push(["answer to bytes", one.take()]);
  one.socket.send("throw");
  await one.exchange("state", 1);
  steps.push(["after a handler that throws", one.take()]);
  two.socket.send("all:hi");
  await Promise.all([one.arrived(1), two.arrived(1)]);
  steps.push(["to all", [one.take(), two.take()]]);
  two.socket.close(4002, "bye é");
  steps.push(["closed by the client", await two.closed]);
  steps.push(["its log", await logOf(side, "room", 3)]);
  steps.push(["open", await call(side, "Socket.room", "open")]);
  one.socket.terminate();
  steps.push(["log of a broken connection", await logOf(side, "room", 3)]);
  return steps;
}

/** What the object logged, when it has at least as many entries. */
async function logOf(side: Side, object: string, entries: number): Promise<unknown[]> {
  const log: unknown[] = [];
  await expect
    .poll(async () => {
      log.push(...((await call(side, `Socket.${object}`, "takeLog")) as unknown[]));
      return log.length;
    })
    .toBeGreaterThanOrEqual(entries);
  return log;
}

async function acceptedSockets(side: Side): Promise<Transcript> {
  const steps: [string, unknown][] = [];
  const socket = await new Recorder(side, "/socket/plain/accepted").opened();
  await socket.exchange("one", 1);
  await socket.exchange("two", 2);
  steps.push(["frames", socket.take()]);
  socket.socket.send("close");
  steps.push(["closed by the object", await socket.closed]);
  steps.push(["its log", await logOf(side, "plain", 1)]);
  const other = await new Recorder(side, "/socket/plain/accepted").opened();
  other.socket.close(4003, "client");
  steps.push(["closed by the client", await other.closed]);
  steps.push(["log", await logOf(side, "plain", 1)]);
  const failed = await new Recorder(side, "/socket/failing/accepted").opened();
  failed.socket.send("throw");
  failed.socket.send("after");
  await Promise.race([failed.closed, failed.arrived(1)]);
  const isOpen = failed.socket.readyState === WebSocket.OPEN;
  steps.push(["after a listener that throws", [failed.take(), isOpen ? "open" : await failed.closed]]);
  failed.socket.terminate();
  const refused = await fetch(`${side.url}/socket/plain/in`);
  steps.push(["without an upgrade", [refused.status, await refused.text()]]);
  return steps;
}

async function closeCodes(side: Side): Promise<Transcript> {
  const steps: [string, unknown][] = [];
  for (const code of ["1000,done", "1000", "", "1001,away", "1011,failed", "3000,x", "4999,é"]) {
    const socket = await new Recorder(side, "/socket/codes/in").opened();
    await socket.arrived(1);
    socket.socket.send(`close:${code}`);
    steps.push([`close ${code}`, await socket.closed]);
    steps.push([`log of ${code}`, await logOf(side, "codes", 4)]);
  }
  for (const code of ["1005,x", "1006", "999", "5000", `1000,${"x".repeat(124)}`]) {
    const socket = await new Recorder(side, "/socket/codes/in").opened();
    await socket.arrived(1);
    // Its greeting, what the object sent after the refused close, and the refusal.
    await socket.exchange(`close:${code}`, 3);
    steps.push([`refused ${code.slice(0, 10)}`, socket.take()]);
    steps.push([`log of refused ${code.slice(0, 10)}`, await logOf(side, "codes", 1)]);
    socket.socket.close();
    steps.push([`then ${code.slice(0, 10)}`, [await socket.closed, await logOf(side, "codes", 3)]]);
  }
  return steps;
}

/** Frames of an agent; random ids become the same text everywhere. */
function readable(frames: readonly string[]): unknown[] {
  return frames.map((frame) => {
    const plain = frame.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "ID");
    try {
      return JSON.parse(plain) as unknown;
    } catch {
      return plain;
    }
  });
}

const rpc = (method: string, ...args: unknown[]) => JSON.stringify({ type: "rpc", id: "1", method, args });

async function agentFrames(side: Side): Promise<Transcript> {
  const steps: [string, unknown][] = [];
  const one = await new Recorder(side, "/agents/desk/frames?user=one").opened();
  await one.arrived(4);
  steps.push(["greeting", readable(one.take())]);
  const two = await new Recorder(side, "/agents/desk/frames?user=two&readonly").opened();
  await two.arrived(4);
  steps.push(["greeting of a read-only connection", readable(two.take())]);
  const both = async (name: string, from: Recorder, message: string, counts: readonly [number, number]) => {
    from.socket.send(message);
    await Promise.all([one.arrived(counts[0]), two.arrived(counts[1])]);
    // A call at the end: everything before it has arrived when it is answered.
    for (const recorder of [one, two]) {
      recorder.socket.send(rpc("connections"));
      await expect.poll(() => recorder.frames.at(-1)).toContain('"result":2');
    }
    steps.push([name, [readable(one.take()), readable(two.take())]]);
  };
  const state = (value: unknown) => JSON.stringify({ type: "cf_agent_state", state: value });
  await both("state of a client", one, state({ count: 5, log: [] }), [0, 1]);
  await both("state of a read-only client", two, state({ count: 6, log: [] }), [0, 1]);
  await both("a refused state", one, state({ count: -1, log: [] }), [1, 0]);
  await both("a state that the class reacts to", one, state({ count: 100, log: [] }), [1, 2]);
  await both("a call that sets state", one, rpc("add", 1), [2, 1]);
  await both("the same of a read-only connection", two, rpc("add", 1), [0, 1]);
  await both("a call without state", two, rpc("echo", 1, null), [0, 1]);
  await both("a message", one, "text", [1, 0]);
  await both("JSON of another kind", one, JSON.stringify({ type: "other" }), [1, 0]);
  await both("a message that fails", one, "throw", [1, 1]);
  one.socket.send(new Uint8Array([1, 2]));
  await one.arrived(1);
  steps.push(["bytes", readable(one.take())]);
  for (const recorder of [one, two]) recorder.socket.close();
  return steps;
}

async function agentCalls(side: Side): Promise<Transcript> {
  const steps: [string, unknown][] = [];
  const socket = await new Recorder(side, "/agents/desk/calls?user=x").opened();
  await socket.arrived(4);
  socket.take();
  const isLast = (frame: string | undefined) =>
    frame !== undefined && frame.includes('"type":"rpc"') && !frame.includes('"done":false');
  const send = async (name: string, message: string) => {
    socket.socket.send(message);
    await expect.poll(() => isLast(socket.frames.at(-1))).toBe(true);
    steps.push([name, readable(socket.take())]);
  };
  await send("values", rpc("echo", 1, "é", null, { a: [true] }));
  await send("no arguments", rpc("echo"));
  await send("special values", rpc("special"));
  await send("a cyclic value", rpc("cyclic"));
  for (const kind of ["range", "empty", "text"]) await send(`an error: ${kind}`, rpc("fail", kind));
  await send("a missing method", rpc("missing"));
  await send("a method that is not callable", rpc("hidden"));
  await send("a method of every object", rpc("toString"));
  await send("a stream", rpc("countTo", 3));
  await send("a stream that fails", rpc("streamAndFail"));
  await send("a stream's own error", rpc("streamError"));
  await send("an error after writing", rpc("failAfterWriting"));
  await send("SQL", rpc("notes"));
  await send("wrong SQL", rpc("badSql"));
  await send("other agents", rpc("other", "calls-other"));
  await send("names of callable methods", rpc("callables"));
  await send("a wrong call", JSON.stringify({ type: "rpc", id: "1", method: "echo", args: [1, 2, 3] }));
  socket.socket.close();
  return steps;
}

async function agentWork(side: Side): Promise<Transcript> {
  const steps: [string, unknown][] = [];
  const socket = await new Recorder(side, "/agents/desk/work?user=x").opened();
  await socket.arrived(4);
  socket.take();
  await socket.exchange(rpc("schedules"), 1);
  steps.push(["schedules", readable(socket.take())]);
  await socket.exchange(rpc("badSchedules"), 1);
  steps.push(["wrong schedules", readable(socket.take())]);
  socket.socket.send(rpc("soon"));
  await expect.poll(() => socket.frames.some((frame) => frame.includes('"scheduled"'))).toBe(true);
  steps.push(["schedule and queue", readable(socket.take()).at(-1)]);
  socket.socket.close();
  return steps;
}

async function agentRequests(side: Side): Promise<Transcript> {
  const requests: [string, string, RequestInit][] = [
    ["get", "/agents/desk/http/sub/path?q=1", {}],
    ["post", "/agents/desk/http", { method: "POST", body: "sent" }],
    ["a request that fails", "/agents/desk/http", { method: "DELETE" }],
    ["an unknown agent", "/agents/unknown/http", {}],
    ["no name", "/agents/desk", {}],
    ["odd letters", `/agents/desk/${encodeURIComponent("é %")}`, {}],
    ["another path", "/other", {}],
  ];
  const steps: [string, unknown][] = [];
  for (const [name, path, init] of requests) {
    const response = await fetch(side.url + path, init);
    steps.push([name, [response.status, response.headers.get("content-type"), await response.text()]]);
  }
  return steps;
}
