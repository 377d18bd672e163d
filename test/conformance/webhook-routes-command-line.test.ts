/** `signalbox webhooks …`: routes, events, replays and examples. */
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCommand } from "../support/run-cli.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";
import { SECRET, sendGeneric } from "../support/webhook-sender.ts";

let server: TestServer;
let status = 200;
const receiver = createServer((_request, response) => response.writeHead(status).end());

beforeAll(async () => {
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  server = await startTestServer({
    environment: { WEBHOOK_SECRET: SECRET },
    file: { outgoing: { allowPrivateHosts: true } },
  });
});
afterAll(async () => {
  await server.stop();
  receiver.closeAllConnections();
  receiver.close();
});

const cli = async (...words: string[]) => {
  const result = await runCommand(server, ["webhooks", ...words]);
  expect([words, result.code, result.err]).toEqual([words, 0, ""]);
  return result.out;
};
const json = async <T>(...words: string[]) => JSON.parse(await cli(...words, "--json")) as T;
const file = async (name: string, content: object) => {
  const path = join(server.dataDir, name);
  await writeFile(path, JSON.stringify(content));
  return path;
};

it("routes are saved, tried, paused and resumed; events are listed and replayed; deliveries get names", async () => {
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const retry = { strategy: "linear", intervalMs: 1000, count: 0 };
  const settings = { when: { body: { type: "paid" } }, to: { url }, retry };
  expect(await cli("put-route", "generic", "main", await file("route.json", settings))).toBe(
    `saved main: ${url}\n`,
  );
  status = 500;
  await sendGeneric(server.url, "entity", { id: "1", type: "paid" });
  await sendGeneric(server.url, "entity", { id: "2", type: "sent" });
  const failed = () =>
    json<{ id: string; delivery: string }[]>("events", "--route", "main", "--state", "failed");
  const [event] = await waitUntil(failed, (found) => found.length === 1, 50);
  expect(await cli("routes", "generic")).toMatch(/main .*running +0 +0 +1 +1/);
  expect(await cli("try", "generic", event?.delivery ?? "")).toBe(
    'main: would match, because body type is "paid" (= "paid")\n',
  );
  const filters = await file("filters.json", { body: { type: { $in: ["x"] } } });
  expect(await cli("try", "generic", event?.delivery ?? "", filters)).toBe(
    'would not match, because body type is "paid" ($in ["x"])\n',
  );
  expect(await cli("replay-events", "--dry-run")).toMatch(/^1 events, from .* to .*\ngeneric main: 1\n$/);
  expect(await cli("pause", "generic", "main")).toBe("paused main\n");
  status = 200;
  expect(await cli("replay-events", "--route", "main")).toMatch(/^replay \w+: 1 events\n$/);
  const [replay] = await json<{ id: string }[]>("replays");
  await waitUntil(
    () => json<unknown[]>("events", "--state", "held"),
    (found) => found.length === 1,
    50,
  );
  expect(await cli("resume", "generic", "main")).toBe("resumed main\n");
  await waitUntil(
    () => cli("replays", replay?.id ?? ""),
    (text) => text.includes("1 delivered"),
    50,
  );
  expect(await cli("event", event?.id ?? "")).toContain('"trigger": "bulk"');
  expect(await cli("name", event?.delivery ?? "", "paid")).toBe("saved paid\n");
  expect(await cli("trigger", "paid")).toMatch(/^202 \{"status":"queued"\} \w+\n$/);
  expect(await cli("examples")).toContain("paid");
  expect(await cli("delete-route", "generic", "main")).toBe("deleted main\n");
  expect(await cli("routes", "generic")).toBe("no routes\n");
});

it("issues are listed, acknowledged and resolved, and their events are replayed", async () => {
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const retry = { strategy: "linear", intervalMs: 1000, count: 0 };
  await cli("put-route", "generic", "failing", await file("failing.json", { to: { url }, retry }));
  status = 503;
  for (const id of ["i1", "i2"]) await sendGeneric(server.url, "entity", { id, type: "t" });
  const issues = (...words: string[]) =>
    json<{ id: string; count: number }[]>("issues", "--source", "generic", "--route", "failing", ...words);
  const [issue] = await waitUntil(issues, ([first]) => first?.count === 2, 50);
  const id = issue?.id ?? "";
  expect(await cli("issues", "--state", "open")).toMatch(
    /generic +failing +open +2 .*the receiver answered 503/,
  );
  expect(await cli("acknowledge", id)).toBe(`acknowledged ${id}\n`);
  expect(await issues("--state", "open")).toEqual([]);
  expect(await issues("--state", "acknowledged")).toMatchObject([{ id, count: 2 }]);
  expect(await json<unknown[]>("events", "--issue", id)).toHaveLength(2);
  status = 200;
  expect(await cli("replay-events", "--issue", id)).toMatch(/^replay \w+: 2 events\n$/);
  // Resolved by itself: the last of its events was delivered.
  await waitUntil(
    () => issues("--state", "resolved"),
    (found) => found.length === 1,
    50,
  );
  status = 503;
  await sendGeneric(server.url, "entity", { id: "i3", type: "t" });
  await waitUntil(
    () => issues("--state", "open"),
    (found) => found.length === 1,
    50,
  );
  expect(await cli("resolve", id)).toBe(`resolved ${id}\n`);
  expect(await cli("issues", "--state", "open")).toBe("no issues\n");
  const unknown = await runCommand(server, ["webhooks", "resolve", "01ABSENT"]);
  expect([unknown.code === 0, unknown.err]).toEqual([false, expect.stringContaining("Issue not found")]);
  await cli("delete-route", "generic", "failing");
});
