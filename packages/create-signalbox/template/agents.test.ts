import assert from "node:assert/strict";
import { test } from "node:test";
import { startAgents } from "signalbox/testing";
import { DeviceAgent } from "./agents.ts";

test("a device is online while it sends its temperature", async () => {
  await using agents = await startAgents({ agents: [DeviceAgent], config: "./signalbox.config.ts" });
  const boiler = agents.get(DeviceAgent, "boiler-7");

  await agents.webhook("generic", { entity: "boiler-7", payload: { temperature: 95 } });
  assert.equal((await boiler.state()).status, "too hot");

  await agents.webhook("generic", { entity: "boiler-7", payload: { temperature: 60 } });
  assert.equal(await boiler.call("report"), "boiler-7 is online (60 degrees, 2 events)");

  await agents.advance(15 * 60 * 1000);
  assert.equal((await boiler.state()).status, "offline");
});
