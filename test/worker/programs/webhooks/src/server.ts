/** Webhooks as the originals' guide has them: the worker picks the agent by the path, and the agent verifies the signature itself. Also email. */
import { DurableObject } from "cloudflare:workers";
import { EventWebhook, EventWebhookHeader } from "@sendgrid/eventwebhook";
import { Agent, callable, getAgentByName, routeAgentEmail, routeAgentRequest } from "agents";
import { createAddressBasedEmailResolver } from "agents/email";

async function isSigned(body: string, header: string | null, secret: string) {
  const encoder = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), algorithm, false, ["sign"]);
  const digest = new Uint8Array(await crypto.subtle.sign("HMAC", key, encoder.encode(body)));
  const expected = encoder.encode(
    `sha256=${[...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`,
  );
  const given = encoder.encode(header ?? "");
  return given.length === expected.length && crypto.subtle.timingSafeEqual(given, expected);
}

export class RepoAgent extends Agent<Env, { events: string[] }> {
  initialState = { events: [] as string[] };

  async onRequest(request: Request) {
    const body = await request.text();
    if (!(await isSigned(body, request.headers.get("x-hub-signature-256"), this.env.GITHUB_WEBHOOK_SECRET)))
      return new Response("bad signature", { status: 401 });
    const id = request.headers.get("x-github-delivery");
    this.sql`CREATE TABLE IF NOT EXISTS deliveries (id TEXT PRIMARY KEY)`;
    if (this.sql`SELECT 1 FROM deliveries WHERE id = ${id}`.length > 0)
      return Response.json({ stored: this.state.events.length, repeated: true });
    this.sql`INSERT INTO deliveries (id) VALUES (${id})`;
    const event = `${request.headers.get("x-github-event")} ${JSON.parse(body).repository.full_name}`;
    this.setState({ events: [...this.state.events, event] });
    // The test ends the process while the answer is due.
    if (id === "held") await scheduler.wait(600_000);
    return Response.json({ stored: this.state.events.length });
  }

  async onEmail(email: { from: string; getRaw(): Promise<Uint8Array> }) {
    const text = new TextDecoder().decode(await email.getRaw());
    this.setState({ events: [...this.state.events, `email ${email.from} ${text.length}`] });
  }

  @callable()
  events() {
    return this.state.events;
  }
}

/** Accepts what the vendor's own verifier accepts. Only SendGrid has the key that signs. */
export class MailObject extends DurableObject<Env> {
  async fetch(request: Request) {
    const verifier = new EventWebhook();
    const key = verifier.convertPublicKeyToECDSA(this.env.SENDGRID_WEBHOOK_SECRET);
    const signature = request.headers.get(EventWebhookHeader.SIGNATURE()) ?? "";
    const time = request.headers.get(EventWebhookHeader.TIMESTAMP()) ?? "";
    const body = await request.text();
    if (signature === "" || !verifier.verifySignature(key, body, signature, time))
      return new Response("bad signature", { status: 401 });
    // Its first delivery is refused for the moment, so that it comes again from what is stored.
    const seen = (await this.ctx.storage.get<number>("seen")) ?? 0;
    await this.ctx.storage.put("seen", seen + 1);
    return new Response(null, { status: seen === 0 ? 503 : 204 });
  }
}

export default {
  async fetch(request: Request, env: Env) {
    const [, first, provider, owner, repo] = new URL(request.url).pathname.split("/");
    if (first === "webhooks" && provider === "github" && request.method === "POST") {
      const agent = await getAgentByName<Env, RepoAgent>(env.RepoAgent, `${owner}-${repo}`.toLowerCase());
      return agent.fetch(request);
    }
    if (first === "events")
      return Response.json(await (await getAgentByName<Env, RepoAgent>(env.RepoAgent, provider)).events());
    return (await routeAgentRequest(request, env)) ?? new Response("none", { status: 404 });
  },
  async email(message: ForwardableEmailMessage, env: Env) {
    await routeAgentEmail(message, env, { resolver: createAddressBasedEmailResolver("RepoAgent") });
  },
};
