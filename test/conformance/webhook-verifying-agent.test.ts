/** An agent without `onEvent` receives deliveries with their signatures, also when they are delivered again later. */
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { post } from "../support/webhook-sender.ts";

const SECRET = "a secret that the agent and the source share";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    environment: { HOOKS_WEBHOOK_SECRET: SECRET },
    file: {
      agents: { modules: [join(import.meta.dirname, "../fixtures/verifying-agents.ts")] },
      webhooks: { sources: { hooks: { scheme: "github", agent: "verifier" } } },
    },
  });
});
afterAll(() => server.stop());

const body = JSON.stringify({ repository: { full_name: "acme/widgets" } });
const headers = {
  "x-github-event": "push",
  "x-github-delivery": "d-1",
  "x-hub-signature-256": `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`,
  cookie: "session=1",
};
const state = async () =>
  (await server.api("GET", "/accounts/default/agents/verifier/instances")).body.result as { name: string }[];
const events = async () => {
  const [first] = await state();
  const name = encodeURIComponent(first?.name ?? "");
  return (await server.api("GET", `/accounts/default/agents/verifier/instances/${name}`)).body.result.state
    .events;
};

it("the agent verifies the signature of the sender; cookies are left out", async () => {
  const answer = await post(`${server.url}/webhooks/hooks`, body, headers);
  expect([answer.status, answer.body]).toEqual([200, { ok: true }]);
  expect(await events()).toEqual(["push "]);
});

it("a replayed delivery is signed again", async () => {
  const list = await server.api("GET", "/accounts/default/webhooks/deliveries");
  const [{ id }] = list.body.result as [{ id: string }];
  const replayed = await server.api("POST", `/accounts/default/webhooks/deliveries/${id}/replay`, {});
  expect(replayed.status).toBe(200);
  expect(await events()).toEqual(["push ", "push "]);
});
