/** Objects that tell which process runs them. */
import { DurableObject } from "cloudflare:workers";

interface Env {
  readonly Room: DurableObjectNamespace<Room>;
  readonly Desk: DurableObjectNamespace<Desk>;
}

/** Newer than the published types. */
interface Snapshots {
  snapshot(): Promise<unknown>;
  onNextSessionRestore(snapshot: unknown): Promise<string>;
}

export class Room extends DurableObject<Env> {
  #hasHanging = false;
  #release = (): void => undefined;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
  }

  where(): number {
    return process.pid;
  }

  add(by: number): { pid: number; count: number } {
    const count = (this.ctx.storage.kv.get<number>("count") ?? 0) + by;
    this.ctx.storage.kv.put("count", count);
    return { pid: process.pid, count };
  }

  /** Calls back before and after a write. */
  async count(to: number, onStep: (step: number) => Promise<void>): Promise<number> {
    for (let step = 1; step <= to; step += 1) {
      this.add(1);
      await onStep(step);
    }
    return process.pid;
  }

  async wakeIn(ms: number): Promise<void> {
    await this.ctx.storage.setAlarm(Date.now() + ms);
  }

  async alarm(): Promise<void> {
    const rings = this.ctx.storage.kv.get<number[]>("rings") ?? [];
    this.ctx.storage.kv.put("rings", [...rings, process.pid]);
    for (const socket of this.ctx.getWebSockets()) socket.send(`alarm ${process.pid}`);
  }

  rings(): number[] {
    return this.ctx.storage.kv.get<number[]>("rings") ?? [];
  }

  tick(time: number): void {
    this.add(1);
    this.ctx.storage.kv.put("ticks", [...this.ticks(), time]);
  }

  ticks(): number[] {
    return this.ctx.storage.kv.get<number[]>("ticks") ?? [];
  }

  closes(): unknown[] {
    return this.ctx.storage.kv.get<unknown[]>("closes") ?? [];
  }

  broadcast(text: string, tag?: string): number {
    const sockets = this.ctx.getWebSockets(tag);
    for (const socket of sockets) socket.send(text);
    return sockets.length;
  }

  async inChild(name: string): Promise<{ parent: number; child: number; count: number }> {
    const child = this.ctx.facets.get(name, () => ({ class: this.ctx.exports.Child })) as unknown as Child;
    const { pid, count } = await child.add();
    return { parent: process.pid, child: pid, count };
  }

  mark(): Promise<string> {
    return this.ctx.storage.getCurrentBookmark();
  }

  share(): Promise<unknown> {
    return (this.ctx.storage as unknown as Snapshots).snapshot();
  }

  async goBack(bookmark: string): Promise<void> {
    await this.ctx.storage.onNextSessionRestoreBookmark(bookmark);
    this.ctx.abort("restore");
  }

  async copy(room: string): Promise<void> {
    const snapshot = await this.env.Room.getByName(room).share();
    await (this.ctx.storage as unknown as Snapshots).onNextSessionRestore(snapshot);
    this.ctx.abort("restore");
  }

  hang(): Promise<void> {
    this.#hasHanging = true;
    return new Promise(() => undefined);
  }

  hasHanging(): boolean {
    return this.#hasHanging;
  }

  /** Works until another call releases it. */
  async workOn(): Promise<number> {
    this.#hasHanging = true;
    await new Promise<void>((resolve) => (this.#release = resolve));
    return process.pid;
  }

  release(): void {
    this.#release();
  }

  /** Works for some time. */
  async work(ms: number): Promise<number> {
    this.#hasHanging = true;
    await new Promise((resolve) => setTimeout(resolve, ms));
    return process.pid;
  }

  override async fetch(request: Request): Promise<Response> {
    const url = new URL(request.url);
    if (request.headers.get("upgrade") === "websocket") {
      const [client, server] = Object.values(new WebSocketPair()) as [WebSocket, WebSocket];
      const user = url.searchParams.get("user") ?? "";
      this.ctx.acceptWebSocket(server, [user, "all"]);
      server.serializeAttachment({ user, messages: 0 });
      server.send(`welcome ${user}`);
      return new Response(null, { status: 101, webSocket: client });
    }
    if (url.pathname.endsWith("/upload")) {
      let bytes = 0;
      for await (const piece of request.body ?? []) bytes += (piece as Uint8Array).length;
      return Response.json({ pid: process.pid, bytes });
    }
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    void (async () => {
      for (let i = 0; i < 5; i += 1) await writer.write(new TextEncoder().encode(`line ${i}\n`));
      await writer.close();
    })();
    return new Response(readable, { headers: { "x-pid": String(process.pid) } });
  }

  override async webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): Promise<void> {
    const attachment = socket.deserializeAttachment() as { user: string; messages: number };
    attachment.messages += 1;
    socket.serializeAttachment(attachment);
    if (message === "die") process.kill(process.pid, "SIGKILL");
    if (message === "bye") socket.close(4001, "as you wish");
    else if (typeof message !== "string") socket.send(message);
    else
      socket.send(
        JSON.stringify({
          pid: process.pid,
          ...attachment,
          message,
          tags: this.ctx.getTags(socket),
          count: this.add(1).count,
        }),
      );
  }

  override webSocketClose(socket: WebSocket, code: number, reason: string, wasClean: boolean): void {
    const { user } = socket.deserializeAttachment() as { user: string };
    this.ctx.storage.kv.put("closes", [...this.closes(), { user, code, reason, wasClean }]);
  }
}

export class Child extends DurableObject<Env> {
  add(): { pid: number; count: number } {
    const count = (this.ctx.storage.kv.get<number>("count") ?? 0) + 1;
    this.ctx.storage.kv.put("count", count);
    return { pid: process.pid, count };
  }
}

/** Calls rooms from an object, which may be on another node than they are. */
export class Desk extends DurableObject<Env> {
  async visit(room: string, steps: number): Promise<unknown> {
    const stub = this.env.Room.getByName(room);
    const seen: number[] = [];
    const there = await stub.count(steps, async (step) => {
      this.ctx.storage.kv.put("last", step);
      seen.push(step);
    });
    return { here: process.pid, there, seen, last: this.ctx.storage.kv.get("last") };
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const url = new URL(request.url);
    const [, kind = "", name = "", method = ""] = url.pathname.split("/");
    if (kind === "pid") return Response.json({ pid: process.pid });
    const namespace = kind === "desk" ? env.Desk : env.Room;
    const stub = namespace.getByName(name) as unknown as Record<string, (...args: unknown[]) => unknown> & {
      fetch: typeof fetch;
    };
    if (kind === "fetch") return stub.fetch(request);
    const args = JSON.parse((await request.text()) || "[]") as unknown[];
    try {
      const result = await stub[method]?.(...args);
      return Response.json(result ?? null);
    } catch (error) {
      const { message, retryable, overloaded } = error as Error & {
        retryable?: boolean;
        overloaded?: boolean;
      };
      return Response.json({ error: message, retryable, overloaded }, { status: 500 });
    }
  },
  async scheduled(event: ScheduledController, env: Env): Promise<void> {
    await env.Room.getByName("crons").tick(event.scheduledTime);
  },
} satisfies ExportedHandler<Env>;
