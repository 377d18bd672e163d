/**
 * The rival's side of the webhook and agent benchmarks: an agent of the public `agents` package on bare workerd that does what the built-in
 * `WebhookAgent` does. It verifies the raw body in the worker, then the instance looks up the delivery id, stores the event, keeps the
 * newest 100, and sets its state. Written the way that package's own webhook guide shows.
 */
import { Agent, callable, getAgentByName, routeAgentRequest } from "agents";

export class WebhookAgent extends Agent {
  initialState = { lastEvent: null, eventCount: 0 };

  onStart() {
    this.sql`CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, type TEXT NOT NULL, action TEXT, title TEXT NOT NULL,
      description TEXT, url TEXT, actor TEXT, payload TEXT, timestamp TEXT NOT NULL)`;
    this.sql`CREATE INDEX IF NOT EXISTS events_by_timestamp ON events (timestamp DESC)`;
  }

  async onRequest(request) {
    if (request.method !== "POST") return new Response("Method not allowed", { status: 405 });
    const body = await request.text();
    const id = request.headers.get("x-github-delivery");
    const type = request.headers.get("x-github-event") ?? "unknown";
    if (this.sql`SELECT id FROM events WHERE id = ${id}`.length > 0)
      return Response.json({ status: "duplicate" });
    const payload = JSON.parse(body);
    const timestamp = new Date().toISOString();
    const title = `${payload.sender.login} ${type}`;
    this.sql`INSERT INTO events (id, type, action, title, description, url, actor, payload, timestamp)
      VALUES (${id}, ${type}, ${payload.action ?? null}, ${title}, ${payload.head_commit?.message ?? null},
              ${payload.compare ?? null}, ${payload.sender.login}, ${body}, ${timestamp})`;
    this.sql`DELETE FROM events WHERE id NOT IN (SELECT id FROM events ORDER BY timestamp DESC LIMIT 100)`;
    this.setState({
      lastEvent: { id, type, title, timestamp },
      eventCount: this.state.eventCount + 1,
    });
    return Response.json({ status: "processed" });
  }

  getEvents(limit = 20) {
    return this.sql`SELECT * FROM events ORDER BY timestamp DESC LIMIT ${limit}`;
  }

  increment(by = 1) {
    this.setState({ ...this.state, eventCount: this.state.eventCount + by });
    return this.state.eventCount;
  }

  echo(value) {
    return value;
  }

  static {
    for (const name of ["getEvents", "increment", "echo"])
      callable()(this.prototype[name], { kind: "method", name });
  }
}

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    if (url.pathname === "/webhooks/github") {
      const raw = await request.clone().arrayBuffer();
      if (!(await isGenuine(env.WEBHOOK_SECRET, raw, request.headers.get("x-hub-signature-256")))) {
        return new Response("Invalid signature", { status: 401 });
      }
      const repository = JSON.parse(new TextDecoder().decode(raw)).repository?.full_name;
      if (!repository) return new Response("Missing repository", { status: 400 });
      const agent = await getAgentByName(env.WebhookAgent, repository.toLowerCase().replace("/", "-"));
      return agent.fetch(request);
    }
    return (await routeAgentRequest(request, env)) ?? new Response("Not found", { status: 404 });
  },
};

let importedKey;

async function isGenuine(secret, body, signature) {
  if (!signature?.startsWith("sha256=")) return false;
  importedKey ??= crypto.subtle.importKey(
    "raw",
    new TextEncoder().encode(secret),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["verify"],
  );
  const bytes = Uint8Array.from(signature.slice(7).match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  return crypto.subtle.verify("HMAC", await importedKey, bytes, body);
}
