/**
 * The agents of the benchmarks, written for the `agents` package and served by bare workerd. Plain JavaScript, because the platform's types
 * are not a dependency.
 *
 *   /agents/counter-agent/{name}   HTTP and WebSocket, by the package's own routing
 *   POST /webhooks/github          passed to the agent of the repository, which verifies it
 *
 * The compared methods write one row and no state, because a change of state would be sent to every open socket.
 */
import { Agent, callable, getAgentByName, routeAgentRequest } from "agents";

export class CounterAgent extends Agent {
  initialState = { text: "" };

  onStart() {
    this.sql`CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY, value INTEGER NOT NULL)`;
    this.sql`INSERT OR IGNORE INTO counter (id, value) VALUES (1, 0)`;
  }

  /** Reads only. */
  @callable()
  get() {
    return this.sql`SELECT value FROM counter WHERE id = 1`[0].value;
  }

  /** One durable write. */
  @callable()
  increment() {
    return this.sql`UPDATE counter SET value = value + 1 WHERE id = 1 RETURNING value`[0].value;
  }

  /** Changes the state, which is sent to every open socket. */
  @callable()
  announce(text) {
    this.setState({ text });
  }

  onRequest(request) {
    return Response.json({ value: request.method === "POST" ? this.increment() : this.get() });
  }
}

/** The minimum of a webhook handler: verify the raw body, accept each delivery once, store the event, update the state. */
export class RepositoryAgent extends Agent {
  initialState = { lastEvent: null, eventCount: 0 };

  onStart() {
    this.sql`CREATE TABLE IF NOT EXISTS events (
      id TEXT PRIMARY KEY, type TEXT NOT NULL, action TEXT, title TEXT NOT NULL, description TEXT, url TEXT, actor TEXT,
      payload TEXT, timestamp TEXT NOT NULL)`;
    this.sql`CREATE INDEX IF NOT EXISTS events_by_time ON events (timestamp DESC)`;
  }

  async onRequest(request) {
    if (request.method !== "POST") return new Response("Method not allowed", { status: 405 });
    const body = await request.text();
    const signature = request.headers.get("x-hub-signature-256");
    if (!(await isSigned(body, signature, this.env.GITHUB_WEBHOOK_SECRET)))
      return new Response("Invalid signature", { status: 401 });
    const id = request.headers.get("x-github-delivery") ?? crypto.randomUUID();
    const type = request.headers.get("x-github-event") ?? "unknown";
    if (this.sql`SELECT 1 FROM events WHERE id = ${id}`.length > 0) return new Response("OK");
    const event = JSON.parse(body);
    const timestamp = new Date().toISOString();
    this.sql`INSERT INTO events (id, type, action, title, actor, payload, timestamp)
      VALUES (${id}, ${type}, ${event.action ?? null}, ${type}, ${event.sender?.login ?? null}, ${body}, ${timestamp})`;
    this.sql`DELETE FROM events WHERE id NOT IN (SELECT id FROM events ORDER BY timestamp DESC LIMIT 100)`;
    this.setState({ lastEvent: { type, timestamp }, eventCount: this.state.eventCount + 1 });
    return new Response("OK");
  }

  @callable()
  getEvents(limit = 20) {
    return this.sql`SELECT * FROM events ORDER BY timestamp DESC LIMIT ${limit}`;
  }
}

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/healthz") return new Response("ok");
    if (request.method === "POST" && pathname === "/webhooks/github") {
      const { repository } = await request.clone().json();
      if (repository?.full_name === undefined) return new Response("Missing repository", { status: 400 });
      const name = repository.full_name.toLowerCase().replaceAll("/", "-");
      return (await getAgentByName(env.WebhookAgent, name)).fetch(request);
    }
    return (await routeAgentRequest(request, env)) ?? new Response("Not found", { status: 404 });
  },
};

async function isSigned(body, header, secret) {
  if (header === null || !/^sha256=[0-9a-f]{64}$/.test(header)) return false;
  const encoder = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), algorithm, false, ["verify"]);
  const signature = Uint8Array.from(header.slice(7).match(/../g), (pair) => Number.parseInt(pair, 16));
  return crypto.subtle.verify("HMAC", key, signature, encoder.encode(body));
}
