/** A class of the program may have the name of an agent that is part of the server: the two live side by side. */
import { createHmac } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { connectAgent } from "./support/agent-client.ts";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";

const SECRET = "a secret of the sender";

let server: WorkerServer;
// Each try has a server of its own, with no instances yet.
beforeEach(async () => {
  server = await startWorker("names/src/server.ts", {
    env: { GITHUB_WEBHOOK_SECRET: SECRET },
    // The sender is answered 200 also if the machine pauses.
    file: { webhooks: { answerWithinMs: 60_000 } },
  });
});
afterEach(() => server.remove());

interface Shown {
  readonly name: string;
  readonly class_name: string;
  readonly kind: string;
  readonly instance_count: number;
}

async function api<T>(path: string): Promise<T> {
  const response = await fetch(`${server.url}/accounts/default/agents${path}`, {
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  return ((await response.json()) as { result: T }).result;
}

async function deliver(): Promise<number> {
  const body = JSON.stringify({ repository: { full_name: "acme/plan" }, action: "opened" });
  const response = await fetch(`${server.url}/webhooks/github`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-hub-signature-256": `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`,
      "x-github-event": "issues",
      "x-github-delivery": "d1",
    },
    body,
  });
  await response.text();
  return response.status;
}

test("the path is the program's, deliveries go to the built-in agent, and each keeps its instances", async () => {
  const client = connectAgent<{ seen: number }>(server, "WebhookAgent", "plan");
  await client.ready;
  expect(await client.call("see")).toBe(1);
  expect(await (await fetch(`${server.url}/agents/webhook-agent/plan`)).json()).toEqual({
    mine: true,
    seen: 1,
  });
  expect(await deliver()).toBe(200);
  server = await server.killAndRestart();
  await client.ready;
  expect(await client.call("see")).toBe(2);
  client.close();

  const classes = await api<Shown[]>("");
  expect(
    classes.map(({ name, kind, instance_count: count }) => `${name} ${kind} ${count}`).toSorted(),
  ).toEqual(["webhook-agent agent 1", "webhook-agent:object object 1"]);
  expect(await api("/webhook-agent/instances")).toMatchObject([{ agent: "webhook-agent" }]);
  expect(await api("/webhook-agent:object/instances")).toMatchObject([{ object_name: "plan" }]);
});
