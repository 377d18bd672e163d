/** Agents for what the other programs leave out: read-only connections, props, hooks that change the request, fibers, work of every kind, nested agents. */
import { appendFileSync, readFileSync } from "node:fs";
import {
  Agent,
  callable,
  type Connection,
  type ConnectionContext,
  type FiberContext,
  type FiberRecoveryContext,
  getAgentByName,
  getCurrentAgent,
  routeAgentRequest,
  type StreamingResponse,
} from "agents";
import { DurableObject } from "cloudflare:workers";

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A document with viewers and editors. */
export class Document extends Agent<Env, { text: string }> {
  initialState = { text: "" };
  role = "none";

  onStart(props?: { role: string }) {
    // Only the first request has them, and the object may leave memory before the next one.
    if (props !== undefined) this.ctx.storage.kv.put("role", props.role);
    this.role = this.ctx.storage.kv.get("role") ?? this.role;
  }

  shouldConnectionBeReadonly(connection: Connection, ctx: ConnectionContext) {
    return new URL(ctx.request.url).searchParams.get("mode") === "view";
  }

  onConnect(connection: Connection, ctx: ConnectionContext) {
    connection.setState({ user: ctx.request.headers.get("x-user") });
  }

  getConnectionTags(connection: Connection, ctx: ConnectionContext) {
    return [new URL(ctx.request.url).searchParams.get("mode") ?? "edit"];
  }

  validateStateChange(next: { text: string }) {
    if (next.text.length > 20) throw new Error("the text is too long");
  }

  onStateChanged(state: { text: string }, source: Connection | "server") {
    if (source !== "server" && state.text === "shout") this.setState({ text: "SHOUT" });
  }

  @callable()
  write(text: string) {
    this.setState({ text });
    return this.state.text;
  }

  @callable()
  read() {
    return this.state.text;
  }

  @callable()
  lock(locked: boolean) {
    const { connection } = getCurrentAgent();
    this.setConnectionReadonly(connection, locked);
    return this.isConnectionReadonly(connection);
  }

  @callable()
  who() {
    const { connection } = getCurrentAgent();
    return { user: connection.state.user, role: this.role, viewers: [...this.getConnections("view")].length };
  }

  @callable({ streaming: true })
  async drip(stream: StreamingResponse, count: number) {
    for (let i = 0; i < count; i += 1) {
      if (!stream.send(i)) break;
      await pause(20);
    }
    this.setState({ text: "dripped" });
    stream.end("all");
  }

  onRequest(request: Request) {
    return Response.json({ user: request.headers.get("x-user"), role: this.role });
  }
}

/** Work that outlives the request, with everything that happened in one table. */
export class Jobs extends Agent<Env, { begun: string }> {
  static options = { keepAliveIntervalMs: 500, retry: { maxAttempts: 2, baseDelayMs: 10, maxDelayMs: 20 } };

  onStart() {
    this.sql`CREATE TABLE IF NOT EXISTS done (id INTEGER PRIMARY KEY, what TEXT NOT NULL)`;
  }

  note(what: string) {
    this.sql`INSERT INTO done (what) VALUES (${what})`;
  }

  @callable()
  done() {
    return this.sql<{ what: string }>`SELECT what FROM done ORDER BY id`.map(({ what }) => what);
  }

  @callable()
  async queueAll(items: string[]) {
    for (const item of items) await this.queue("work", item);
  }

  async work(item: string) {
    if (item.startsWith("slow")) {
      const runs = (this.ctx.storage.kv.get<number>(item) ?? 0) + 1;
      this.ctx.storage.kv.put(item, runs);
      this.setState({ begun: item });
      // The first run lasts until the process is killed, however late that is.
      await pause(runs === 1 ? 60_000 : 10);
    }
    if (item === "bad") {
      this.note("bad tried");
      throw new Error("bad");
    }
    this.note(item);
  }

  @callable()
  async plan() {
    const soon = await this.schedule(1, "work", "delayed");
    const at = await this.schedule(new Date(Date.now() + 86_400_000), "work", "dated");
    const cron = await this.schedule("0 0 1 1 *", "work", "cron");
    const every = await this.scheduleEvery(3600, "work", "every");
    const same = await this.schedule("0 0 1 1 *", "work", "cron", { idempotent: true });
    await this.cancelSchedule(at.id);
    const open = await this.listSchedules();
    return {
      types: open.map(({ type }) => type).toSorted(),
      canceled: await this.getScheduleById(at.id),
      same: same.id === cron.id,
      delayed: soon.type,
      every: every.type,
    };
  }

  @callable()
  later(seconds: number, item: string) {
    return this.schedule(seconds, "work", item);
  }

  @callable()
  async begin(steps: number) {
    const started = await this.startFiber("count", (fiber) => this.#count(fiber, 0, steps), {
      idempotencyKey: `count-${steps}`,
    });
    return { id: started.fiberId, accepted: started.accepted };
  }

  async #count(fiber: FiberContext | null, from: number, steps: number) {
    for (let step = from; step < steps; step += 1) {
      this.note(`step ${step}`);
      fiber?.stash({ next: step + 1, steps });
      // The first run stops in the middle until the process is killed, however late that is. A recovered one has no fiber.
      await pause(fiber !== null && step === 3 ? 60_000 : 100);
    }
    this.note("counted");
  }

  async onFiberRecovered(ctx: FiberRecoveryContext) {
    const { next, steps } = ctx.snapshot as { next: number; steps: number };
    this.note(`recovered ${ctx.name}`);
    await this.#count(null, next, steps);
    return { status: "completed" as const };
  }

  @callable()
  async fiber(id: string) {
    return (await this.inspectFiber(id))?.status;
  }

  @callable()
  async tryAgain() {
    let tries = 0;
    const result = await this.retry(async () => {
      tries += 1;
      if (tries < 2) throw new Error("not yet");
      return "then";
    });
    return { tries, result };
  }

  @callable()
  alive() {
    return this.keepAliveWhile(async () => {
      await pause(600);
      return "alive";
    });
  }
}

/** Agents under an agent. */
export class Team extends Agent<Env> {
  async onBeforeSubAgent(request: Request, { name }: { name: string }) {
    if (name === "private") return new Response("not this one", { status: 403 });
  }

  @callable()
  async assign(name: string, task: string) {
    const member = await this.dynamicAgents.get(Member, name);
    return member.take(task);
  }

  @callable()
  async dismiss(name: string) {
    await this.dynamicAgents.delete(Member, name);
    return this.listSubAgents(Member).map((member) => member.name);
  }

  motto() {
    return `motto of ${this.name}`;
  }
}

export class Member extends Agent<Env, { tasks: string[] }> {
  initialState = { tasks: [] as string[] };

  @callable()
  async take(task: string) {
    this.setState({ tasks: [...this.state.tasks, task] });
    const parent = await this.parentAgent(Team);
    return { tasks: this.state.tasks, motto: await parent.motto() };
  }
}

/** An object whose alarm ends the process each time. */
export class Bomb extends DurableObject<Env> {
  async arm() {
    await this.ctx.storage.setAlarm(Date.now());
  }

  alarm({ retryCount }: { retryCount: number }) {
    appendFileSync(this.env.BOMB_FILE, `${retryCount}\n`);
    process.kill(process.pid, "SIGKILL");
  }
}

export default {
  async fetch(request: Request, env: Env) {
    const url = new URL(request.url);
    if (url.pathname === "/bomb") {
      await env.Bomb.getByName("one").arm();
      return new Response("armed");
    }
    if (url.pathname === "/bombs") return new Response(readFileSync(env.BOMB_FILE));
    if (url.pathname === "/named") {
      const agent = await getAgentByName(env.Document, "named", { props: { role: "by name" } });
      return agent.fetch(request);
    }
    const named = (request: Request) => {
      const user = new URL(request.url).searchParams.get("user");
      if (user === "nobody") return new Response("who are you", { status: 401 });
      const headers = new Headers(request.headers);
      headers.set("x-user", user ?? "guest");
      return new Request(request, { headers });
    };
    const options = { onBeforeConnect: named, onBeforeRequest: named, props: { role: "reader" } };
    return (
      (await routeAgentRequest(request, env, {
        ...options,
        cors: { "access-control-allow-origin": "https://app.example" },
      })) ??
      (await routeAgentRequest(request, env, { ...options, prefix: "api" })) ??
      new Response("nothing here", { status: 404 })
    );
  },
};
