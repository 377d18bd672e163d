/**
 * A tour of the client in Node: create a gateway with authentication, call a model, read the log of the call, tag the gateway, and observe
 * an agent that receives an event. Uses the service at SIGNALBOX_URL with SIGNALBOX_TOKEN, or starts one in a temporary folder.
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

  // 1. A gateway that requires a token.
  const gateway = `tour-${Date.now().toString(36)}`;
  await account.gateways.create({ id: gateway, authentication: true });
  const { token } = await account.gateways.createToken(gateway, { name: "tour" });
  console.log(
    `gateway ${gateway}: without a token ${await callModel(url, gateway)}, with one ${await callModel(url, gateway, token)}`,
  );

  // 2. The gateway's log. Lists are async iterables; pages are requested on demand.
  for await (const call of account.logs(gateway).list()) {
    console.log(
      `call ${call.model}: ${call.status_code}, ${call.tokens_in} tokens in, ${call.tokens_out} out`,
    );
  }

  // 3. A tag, and all resources that have it.
  await account.tags.set({ resource_type: "ai_gateway", resource_id: gateway, tags: { made_by: "tour" } });
  const tagged = await account.tags.resources({ tag: ["made_by=tour"] }).all();
  console.log(`tagged: ${tagged.map(({ id }) => id).join(", ")}`);

  // 4. A connection to an agent: a webhook changes its state.
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

/** Calls the built-in model and resolves to the status of the response. */
async function callModel(url: string, gateway: string, token?: string): Promise<number> {
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
