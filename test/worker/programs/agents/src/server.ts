/** Agents of the published package: state, calls, streams, SQL, schedules, queue, connections, routing hooks, sub-agents. */
import {
  Agent,
  type AgentContext,
  callable,
  type Connection,
  getAgentByName,
  getCurrentAgent,
  routeAgentRequest,
  type StreamingResponse,
} from "agents";

type CounterState = { count: number; log: string[] };

export class Counter extends Agent<Env, CounterState> {
  initialState: CounterState = { count: 0, log: [] };

  onStart() {
    this.sql`CREATE TABLE IF NOT EXISTS visit (id INTEGER PRIMARY KEY, who TEXT NOT NULL)`;
  }

  @callable()
  add(amount: number) {
    this.setState({ ...this.state, count: this.state.count + amount });
    return this.state.count;
  }

  @callable()
  fail() {
    throw new RangeError("as asked");
  }

  secret() {
    return "not callable";
  }

  @callable({ streaming: true })
  async countTo(stream: StreamingResponse, limit: number) {
    for (let i = 1; i <= limit; i += 1) {
      stream.send(i);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    stream.end("done");
  }

  @callable()
  visit(who: string) {
    this.sql`INSERT INTO visit (who) VALUES (${who})`;
    return this.sql<{ who: string }>`SELECT who FROM visit ORDER BY id`.map((row) => row.who);
  }

  @callable()
  async later(seconds: number, text: string) {
    const { id } = await this.schedule(seconds, "write", text);
    return { id, open: (await this.listSchedules()).length };
  }

  @callable()
  async enqueue(text: string) {
    await this.queue("write", text);
  }

  async write(text: string) {
    this.setState({ ...this.state, log: [...this.state.log, text] });
  }

  @callable()
  async visitOther(name: string, who: string) {
    const other = await getAgentByName<Env, Counter>(this.env.Counter, name);
    return other.visit(who);
  }

  @callable()
  current() {
    const { agent, connection } = getCurrentAgent();
    return { name: agent?.name, hasConnection: connection !== undefined };
  }

  @callable()
  async child(name: string, amount: number) {
    const child = await this.subAgent(Child, name);
    return child.add(amount);
  }

  @callable()
  children() {
    return this.listSubAgents(Child).map(({ name }) => name);
  }

  async onRequest(request: Request) {
    return Response.json({ name: this.name, method: request.method, count: this.state.count });
  }
}

export class Child extends Agent<Env, { total: number }> {
  initialState = { total: 0 };

  add(amount: number) {
    this.setState({ total: this.state.total + amount });
    return this.state.total;
  }
}

export class Room extends Agent<Env> {
  static options = { hibernate: true };

  onConnect(connection: Connection, ctx: AgentContext) {
    connection.setState({ user: new URL(ctx.request.url).searchParams.get("user") });
    this.broadcast(JSON.stringify({ joined: connection.state.user }), [connection.id]);
  }

  onMessage(connection: Connection, message: string | ArrayBuffer) {
    if (typeof message !== "string") return connection.send(message);
    this.broadcast(JSON.stringify({ from: connection.state.user, message }));
  }

  onClose(connection: Connection) {
    this.broadcast(JSON.stringify({ left: connection.state.user }));
  }

  @callable()
  count() {
    return [...this.getConnections()].length;
  }
}

export default {
  async fetch(request: Request, env: Env) {
    const url = new URL(request.url);
    if (url.pathname === "/by-name") {
      const agent = await getAgentByName<Env, Counter>(env.Counter, url.searchParams.get("name") ?? "");
      return Response.json({ count: await agent.add(1) });
    }
    const answer = await routeAgentRequest(request, env, {
      cors: true,
      onBeforeConnect: (request) =>
        new URL(request.url).searchParams.get("token") === "wrong"
          ? new Response("no", { status: 403 })
          : undefined,
      onBeforeRequest: (request) =>
        request.headers.get("x-refuse") === null ? undefined : new Response("refused", { status: 401 }),
    });
    return answer ?? new Response("not an agent", { status: 404 });
  },
};
