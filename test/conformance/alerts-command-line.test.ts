/** `signalbox alerts` against a running server, and alerts on webhook deliveries. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { runCommand } from "../support/run-cli.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { SECRET, sendGeneric } from "../support/webhook-sender.ts";
import { waitUntil } from "../support/wait-until.ts";

let server: TestServer;
let receiver: ProviderPeer;
beforeAll(async () => {
  receiver = await startProvider((_, response) => sendJson(response, 200, {}));
  server = await startTestServer({
    environment: { OBEY_WEBHOOK_SECRET: SECRET },
    file: {
      agents: { modules: [join(import.meta.dirname, "../fixtures/webhook-agents.ts")] },
      webhooks: { sources: { obey: { scheme: "generic", agent: "obedient-agent" } } },
      outgoing: { allowPrivateHosts: true },
      alerts: { checkIntervalMs: 20 },
    },
  });
});
afterAll(async () => {
  await server.stop();
  await receiver.close();
});

const cli = (...args: string[]) => runCommand(server, args);

it("an alert is created, listed, tested, changed and deleted, and fires for failed deliveries", async () => {
  const rule = [
    "--name",
    "Deliveries",
    "--metric",
    "failed_deliveries",
    "--threshold",
    "2",
    "--source",
    "obey",
  ];
  const target = ["--webhook", `${receiver.url}/hook`, "--secret", "a-secret-of-the-tests"];
  const created = await cli("alerts", "create", ...rule, ...target, "--json");
  const { id } = JSON.parse(created.out) as { id: string };
  expect((await cli("alerts", "list")).out).toContain("failed_deliveries");
  await cli("alerts", "test", id);
  expect(receiver.requests).toHaveLength(1);
  for (let n = 0; n < 2; n++) {
    const { status } = await sendGeneric(server.url, "obey/x", { id: `e-${n}`, type: "t", do: "throw" });
    expect(status).toBe(500);
  }
  await waitUntil(
    () => receiver.requests,
    (all) => all.length === 2,
  );
  expect(JSON.parse(receiver.requests[1]?.body ?? "{}")).toMatchObject({
    type: "alert.firing",
    data: { value: 2, source: "obey" },
  });
  expect((await cli("alerts", "notices", id)).out).toContain("firing");
  const settings = {
    name: "Other",
    metric: "dead_letters",
    threshold: 1,
    receivers: [{ type: "slack", url: `${receiver.url}/slack` }],
  };
  await writeFile(join(server.dataDir, "alert.json"), JSON.stringify(settings));
  expect((await cli("alerts", "update", id, "alert.json")).out).toContain("saved Other");
  expect((await cli("alerts", "delete", id)).out).toBe("deleted Other\n");
  expect((await cli("alerts", "list")).out).toContain("no alerts");
});

it("says what is missing", async () => {
  expect((await cli("alerts", "create", "--name", "x")).code).toBe(2);
});
