/** Agents that subscribe to tag changes. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { TEST_AGENTS } from "../support/agents.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let dataDir: string;
let server: TestServer;
const start = () =>
  startTestServer({
    dataDir,
    file: {
      agents: { modules: [TEST_AGENTS], tagChanges: [{ agent: "webhook-agent", name: "tag-watcher" }] },
    },
  });
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "signalbox-tag-changes-"));
  server = await start();
});
afterEach(async () => {
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
});

const setTags = (tags: object) =>
  server.api("PUT", "/accounts/default/tags", { resource_type: "ai_gateway", resource_id: "default", tags });
const seen = async () => {
  const { body } = await server.api("POST", "/agents/webhook-agent/tag-watcher/rpc/getEvents", []);
  return (body.result as { id: string; action: string; payload: string; actor: string }[]).toReversed();
};

it("a subscribed agent receives each change once, in order, with the actor and the tags before and after", async () => {
  await setTags({ env: "dev" });
  await setTags({ env: "prod" });
  await server.api("DELETE", "/accounts/default/tags?resource_type=ai_gateway&resource_id=default");
  await expect.poll(async () => (await seen()).length).toBe(3);
  const events = await seen();
  expect(events.map(({ action, actor }) => [action, actor])).toEqual([
    ["set", "root"],
    ["set", "root"],
    ["delete", "root"],
  ]);
  expect(JSON.parse(events[1]?.payload ?? "")).toMatchObject({
    before: { env: "dev" },
    after: { env: "prod" },
  });
});

it("after a restart the subscription continues at its position and repeats no change", async () => {
  await setTags({ n: "1" });
  await expect.poll(async () => (await seen()).length).toBe(1);
  await server.stop();
  server = await start();
  await setTags({ n: "2" });
  await expect.poll(async () => (await seen()).length).toBe(2);
  const ids = (await seen()).map(({ id }) => id);
  expect(new Set(ids).size).toBe(2);
});

it("a subscription of an unknown agent stops the start", async () => {
  const starting = startTestServer({ file: { agents: { tagChanges: [{ agent: "nobody" }] } } });
  await expect(starting).rejects.toThrow('agents.tagChanges: no agent is named "nobody"');
});
