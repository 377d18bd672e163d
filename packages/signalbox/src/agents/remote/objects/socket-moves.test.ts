/** WebSockets of objects whose clients are on another node, and of objects that move, over a real link. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { InstanceElsewhereError } from "../../../engines/instance-store/index.ts";
import type { ObjectContext } from "../../objects/object-context.ts";
import { WebSocketPair, type WorkerWebSocket } from "../../objects/web-socket.ts";
import { DurableObject } from "../../objects/workers-module.ts";
import { openTwoNodes, type TwoNodes } from "./two-nodes-fixture.ts";

const LOG: string[] = [];
/** Handlers that wait, by the message that they handle. */
const GATES = new Map<string, PromiseWithResolvers<void>>();

class Chat extends DurableObject<Record<string, never>> {
  declare readonly ctx: ObjectContext;

  async fetch(request: Request): Promise<Response> {
    LOG.push("fetch");
    const user = new URL(request.url).pathname.slice(1);
    const pair = new WebSocketPair();
    if (user === "awake") {
      pair[1].accept();
      pair[1].send("awake");
    } else {
      this.ctx.acceptWebSocket(pair[1], [user]);
      pair[1].serializeAttachment({ user, count: 0 });
      pair[1].send(`hello ${user}`);
    }
    return new Response(null, { status: 101, webSocket: pair[0] } as ResponseInit);
  }

  async webSocketMessage(socket: WorkerWebSocket, message: string | ArrayBuffer): Promise<void> {
    const text = typeof message === "string" ? message : "";
    const attachment = socket.deserializeAttachment() as { user: string; count: number };
    attachment.count += 1;
    socket.serializeAttachment(attachment);
    await GATES.get(text)?.promise;
    LOG.push(text);
    if (text === "close") socket.close(4000, "closed");
    else socket.send(`${attachment.user} ${attachment.count}: ${text}`);
  }

  webSocketClose(socket: WorkerWebSocket, code: number, reason: string, wasClean: boolean): void {
    const { user } = socket.deserializeAttachment() as { user: string };
    LOG.push(`${user} closed ${code} ${reason} ${wasClean}`);
  }

  async say(text: string): Promise<void> {
    LOG.push(`say ${text}`);
    await GATES.get(text)?.promise;
  }

  broadcast(text: string): number {
    const sockets = this.ctx.getWebSockets();
    for (const socket of sockets) socket.send(text);
    return sockets.length;
  }
}

let nodes: TwoNodes;
beforeAll(async () => {
  nodes = await openTwoNodes({ Chat });
});
afterAll(() => nodes.close());
beforeEach(() => {
  LOG.length = 0;
  GATES.clear();
  nodes.owner = "2";
});

interface Client {
  readonly socket: WorkerWebSocket;
  readonly received: string[];
}

let rooms = 0;
const newRoom = () => `room-${(rooms += 1)}`;
const stubOf = (room: string, from: TwoNodes = nodes) =>
  from.env["Chat"]?.getByName(room) as unknown as {
    fetch: typeof fetch;
    broadcast(text: string): Promise<number>;
    say(text: string): Promise<void>;
  };

async function connect(room: string, user: string, from: TwoNodes = nodes): Promise<Client> {
  const response = (await stubOf(room, from).fetch(`http://x/${user}`)) as Response & {
    webSocket: WorkerWebSocket;
  };
  expect(response.status).toBe(101);
  const socket = response.webSocket;
  const received: string[] = [];
  socket.addEventListener("message", (event) => received.push(String((event as MessageEvent).data)));
  socket.addEventListener("close", (event) => {
    const { code, reason, wasClean } = event as CloseEvent;
    received.push(`closed ${code} ${reason} ${wasClean}`);
  });
  socket.accept();
  return { socket, received };
}

test("frames and closes pass in both directions", async () => {
  const room = newRoom();
  const ann = await connect(room, "ann");
  await expect.poll(() => ann.received).toEqual(["hello ann"]);
  for (let i = 0; i < 100; i += 1) ann.socket.send(`m${i}`);
  await expect.poll(() => ann.received.length).toBe(101);
  expect(ann.received.slice(1)).toEqual(Array.from({ length: 100 }, (_, i) => `ann ${i + 1}: m${i}`));
  ann.socket.send("close");
  await expect.poll(() => ann.received.at(-1)).toBe("closed 4000 closed true");
  const bob = await connect(room, "bob");
  bob.socket.close(4001, "bye");
  await expect.poll(() => LOG).toContain("bob closed 4001 bye true");
  await expect.poll(() => bob.received.at(-1)).toBe("closed 4001 bye true");
});

test("when the client's node is lost, the object sees one close with 1006; when the object's node is, so does the client", async () => {
  const lost = await openTwoNodes({ Chat });
  try {
    const ann = await connect("lost", "ann", lost);
    await expect.poll(() => ann.received).toEqual(["hello ann"]);
    await lost.cut();
    await expect.poll(() => ann.received.at(-1)).toMatch(/^closed 1006/);
    await expect.poll(() => LOG.filter((line) => line.startsWith("ann closed"))).toHaveLength(1);
    expect(LOG.at(-1)).toMatch(/^ann closed 1006/);
  } finally {
    await lost.close();
  }
});

test("a link that breaks for a moment costs no frame, and runs nothing twice", async () => {
  const room = newRoom();
  const ann = await connect(room, "ann");
  const sent: string[] = [];
  const send = (text: string) => {
    sent.push(text);
    ann.socket.send(text);
  };
  for (let i = 0; i < 60; i += 1) {
    send(`m${i}`);
    if (i % 20 !== 10) continue;
    nodes.breakLink();
    // While there is no link, too.
    send(`n${i}`);
    await expect.poll(() => LOG.at(-1)).toBe(`n${i}`);
  }
  await expect.poll(() => ann.received.length).toBe(1 + sent.length);
  expect(LOG).toEqual(["fetch", ...sent]);
  expect(ann.received.slice(1)).toEqual(sent.map((text, i) => `ann ${i + 1}: ${text}`));
  expect(await stubOf(room).broadcast("still here")).toBe(1);
  await expect.poll(() => ann.received.at(-1)).toBe("still here");
  ann.socket.close(4001, "bye");
  await expect.poll(() => LOG.at(-1)).toBe("ann closed 4001 bye true");
  await expect.poll(() => ann.received.at(-1)).toBe("closed 4001 bye true");
});

test("a call that runs when the link breaks fails, and the WebSockets of its node go on", async () => {
  const room = newRoom();
  const ann = await connect(room, "ann");
  const gate = Promise.withResolvers<void>();
  GATES.set("slow", gate);
  const slow = stubOf(room).say("slow");
  await expect.poll(() => LOG).toContain("say slow");
  nodes.breakLink();
  await expect(slow).rejects.toMatchObject({ message: "Network connection lost.", retryable: true });
  gate.resolve();
  ann.socket.send("on");
  await expect.poll(() => ann.received.at(-1)).toBe("ann 1: on");
});

/** Moves the object as a hand-over does: the WebSockets first, then the instance. */
async function move(room: string, to: "1" | "2"): Promise<void> {
  const [from, node] = to === "1" ? [nodes.two, "1"] : [nodes.one, "2"];
  const ref = from.host.named("chat", room);
  if (ref === null) throw new Error("no such class");
  const release = async (wasQuiet: boolean) => {
    const settle = await from.directory.handOverHook?.leave(ref, node, wasQuiet);
    nodes.owner = to;
    settle?.();
    return new InstanceElsewhereError(node);
  };
  if ((await from.directory.find(ref)?.handOver(release)) !== true) await release(true);
}

test("a WebSocket follows its object to the client's node and back, without a new request", async () => {
  const room = newRoom();
  const ann = await connect(room, "ann");
  ann.socket.send("one");
  await expect.poll(() => ann.received).toEqual(["hello ann", "ann 1: one"]);
  await move(room, "1");
  expect(await stubOf(room).broadcast("at one")).toBe(1);
  ann.socket.send("two");
  await expect.poll(() => ann.received.slice(2)).toEqual(["at one", "ann 2: two"]);
  await move(room, "2");
  expect(await stubOf(room).broadcast("at two")).toBe(1);
  ann.socket.send("three");
  await expect.poll(() => ann.received.slice(4)).toEqual(["at two", "ann 3: three"]);
  await move(room, "1");
  await move(room, "2");
  ann.socket.send("close");
  await expect.poll(() => ann.received.at(-1)).toBe("closed 4000 closed true");
  await expect.poll(() => LOG.at(-1)).toMatch(/^ann closed 4000/);
  expect(LOG.filter((line) => line === "fetch")).toHaveLength(1);
  for (const { host } of [nodes.one, nodes.two]) {
    const ref = host.named("chat", room);
    expect(ref === null ? null : host.connectionCount(ref)).toBe(0);
  }
});

test("frames that arrive while the object moves are handled once, in order", async () => {
  const room = newRoom();
  const ann = await connect(room, "ann");
  const sent: string[] = [];
  for (let round = 0; round < 6; round += 1) {
    for (let i = 0; i < 5; i += 1) {
      sent.push(`${round}.${i}`);
      ann.socket.send(`${round}.${i}`);
    }
    const moved = move(room, round % 2 === 0 ? "1" : "2");
    for (let i = 5; i < 10; i += 1) {
      sent.push(`${round}.${i}`);
      ann.socket.send(`${round}.${i}`);
    }
    await moved;
  }
  await expect.poll(() => ann.received.length).toBe(1 + sent.length);
  expect(LOG.slice(1)).toEqual(sent);
  // The last frame is a close: it is an event of the new owner.
  const moved = move(room, "1");
  ann.socket.close(4003, "done");
  await moved;
  await expect.poll(() => LOG.at(-1)).toBe("ann closed 4003 done true");
  await expect.poll(() => ann.received.at(-1)).toBe("closed 4003 done true");
});

test("a client in the middle of an interrupted handler is cut", async () => {
  const room = newRoom();
  const ann = await connect(room, "ann");
  const gate = Promise.withResolvers<void>();
  GATES.set("slow", gate);
  ann.socket.send("slow");
  const ref = nodes.two.host.named("chat", room);
  await nodes.two.directory.handOverHook?.leave(ref ?? { account: "", agent: "", name: "" }, "1", false);
  await expect.poll(() => ann.received.at(-1)).toMatch(/^closed 1006/);
  gate.resolve();
});

test("a socket that was accepted without hibernation ends with the object in memory", async () => {
  const room = newRoom();
  const ann = await connect(room, "awake");
  await expect.poll(() => ann.received).toEqual(["awake"]);
  const ref = nodes.two.host.named("chat", room);
  if (ref !== null) nodes.two.directory.find(ref)?.abort(new Error("moved"));
  await expect.poll(() => ann.received.at(-1)).toMatch(/^closed 1006/);
});
