/**
 * A tour of the client from Node: guard a gateway, call a model through it, read the call's log, tag the gateway, and watch an agent
 * receive an event. Uses the service at SIGNALBOX_URL with SIGNALBOX_TOKEN; without them, one of its own in a temporary folder.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { SignalboxClient } from "@signalbox/client";
import { startSignalbox } from "./start-signalbox.ts";

const service = await startSignalbox();
try {
  await tour(new SignalboxClient({ url: service.url, token: service.token }), service.url);
} finally {
  await service.stop();
}

async function tour(client: SignalboxClient, url: string): Promise<void> {
  const account = client.account("default");

  // 1. A gateway that lets nobody through without a token.
  const gateway = `tour-${Date.now().toString(36)}`;
  await account.gateways.create({ id: gateway, authentication: true });
  const { token } = await account.gateways.createToken(gateway, { name: "tour" });
  console.log(
    `gateway ${gateway}: without a token ${await ask(url, gateway)}, with one ${await ask(url, gateway, token)}`,
  );

  // 2. What the gateway wrote down. Lists are async iterables; pages are fetched as they are needed.
  for await (const call of account.logs(gateway).list()) {
    console.log(
      `call ${call.model}: ${call.status_code}, ${call.tokens_in} tokens in, ${call.tokens_out} out`,
    );
  }

  // 3. A label, and everything that bears it.
  await account.tags.set({ resource_type: "ai_gateway", resource_id: gateway, tags: { made_by: "tour" } });
  const tagged = await account.tags.resources({ tag: ["made_by=tour"] }).all();
  console.log(`tagged: ${tagged.map(({ id }) => id).join(", ")}`);

  // 4. An agent, live: its state changes here because a webhook arrived there.
  interface Watched {
    state: { eventCount: number; lastEvent: { type: string; title: string } | null };
    getEvents(limit: number): { type: string; title: string }[];
  }
  using agent = client.agent<Watched>({ agent: "WebhookAgent", name: gateway }).open();
  await agent.ready();
  const changed = new Promise<void>((resolve) => agent.on("state", () => resolve()));
  await account.webhooks.sendTest("generic", { entity: gateway });
  await Promise.race([changed, sleep(10_000, undefined, { ref: false })]);
  const events = await agent.stub.getEvents(5);
  console.log(
    `agent ${gateway}: ${agent.state?.eventCount} event, ${events.map(({ type }) => type).join(", ")}`,
  );

  await account.gateways.delete(gateway);
  console.log("done");
}

/** Asks the built-in model; resolves with the answer's status. */
async function ask(url: string, gateway: string, token?: string): Promise<number> {
  const response = await fetch(`${url}/v1/default/${gateway}/echo/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token === undefined ? {} : { "gw-aig-authorization": `Bearer ${token}` }),
    },
    body: JSON.stringify({ model: "echo", messages: [{ role: "user", content: "Hello from Node" }] }),
  });
  await response.text();
  return response.status;
}
