/** Routes of an account that does not mean well, and receivers that do not. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";
import { SECRET, sendGeneric } from "../support/webhook-sender.ts";

let server: TestServer | undefined;
let receiver: Server | undefined;

afterEach(async () => {
  await server?.stop();
  receiver?.closeAllConnections();
  receiver?.close();
});

const ROUTES = "/accounts/default/webhooks/sources/generic/routes";
const NO_RETRIES = { strategy: "linear", intervalMs: 1000, count: 0 };

async function start(answers: Parameters<typeof createServer>[1], allowPrivateHosts: boolean) {
  receiver = createServer(answers);
  await new Promise<void>((resolve) => receiver?.listen(0, "127.0.0.1", resolve));
  server = await startTestServer({
    environment: { WEBHOOK_SECRET: SECRET },
    file: { outgoing: { allowPrivateHosts } },
  });
  return { started: server, port: (receiver.address() as AddressInfo).port };
}

const attemptOf = async (started: TestServer, route: string) => {
  const [event] = await waitUntil(
    async () =>
      (await started.api("GET", `/accounts/default/webhooks/events?route=${route}`)).body.result as {
        id: string;
        state: string;
      }[],
    ([first]) => first?.state === "failed" || first?.state === "delivered",
  );
  const { body } = await started.api("GET", `/accounts/default/webhooks/events/${event?.id}`);
  return { state: event?.state, attempt: body.result.attempt_list[0] as Record<string, unknown> };
};

it("a receiver that is private by name or by address gets nothing, and both look the same to the account", async () => {
  let requests = 0;
  const { started, port } = await start((_request, response) => {
    requests += 1;
    response.end();
  }, false);
  const direct = await started.api("PUT", `${ROUTES}/direct`, { to: { url: `http://127.0.0.1:${port}/` } });
  expect(direct.status).toBe(400);
  for (const url of [
    `http://[::ffff:7f00:1]:${port}/`,
    `http://2130706433:${port}/`,
    `http://0x7f.1:${port}/`,
  ])
    expect((await started.api("PUT", `${ROUTES}/direct`, { to: { url } })).status).toBe(400);
  // Names are looked up when the connection is opened.
  const to = { byname: `http://localhost.:${port}/`, unknown: "http://no-such-host.invalid/" };
  for (const [name, url] of Object.entries(to))
    await started.api("PUT", `${ROUTES}/${name}`, { to: { url }, retry: NO_RETRIES });
  const routes = (await started.api("GET", ROUTES)).body.result as { name: string }[];
  expect((await sendGeneric(started.url, "entity", { id: "1" })).status).toBeLessThan(300);
  const errors = [];
  for (const { name } of routes) errors.push((await attemptOf(started, name)).attempt["error"]);
  expect(new Set(errors)).toEqual(new Set(["the receiver has no public address"]));
  expect(requests).toBe(0);
});

it("an answer without end is cut, and counts as its status says", async () => {
  const { started, port } = await start((_request, response) => {
    response.writeHead(200, { "content-type": "text/plain" });
    const write = () => {
      while (!response.destroyed && response.write("x".repeat(16_384)));
    };
    response.on("drain", write);
    write();
  }, true);
  await started.api("PUT", `${ROUTES}/endless`, {
    to: { url: `http://127.0.0.1:${port}/` },
    retry: NO_RETRIES,
  });
  await sendGeneric(started.url, "entity", { id: "1" });
  const { state, attempt } = await attemptOf(started, "endless");
  expect(state).toBe("delivered");
  expect((attempt["response"] as { body: string }).body).toHaveLength(4096);
});

it("a receiver that never answers ends at the time limit, and other routes are not delayed by it", async () => {
  const { started, port } = await start((request, response) => {
    if (request.url === "/quick") response.end();
  }, true);
  const url = `http://127.0.0.1:${port}`;
  await started.api("PUT", `${ROUTES}/silent`, {
    to: { url: `${url}/silent`, timeoutMs: 1000 },
    retry: NO_RETRIES,
  });
  await started.api("PUT", `${ROUTES}/quick`, { to: { url: `${url}/quick` } });
  await sendGeneric(started.url, "entity", { id: "1" });
  expect((await attemptOf(started, "quick")).state).toBe("delivered");
  expect((await attemptOf(started, "silent")).attempt["error"]).toBe("the receiver did not respond in time");
});
