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

it("a redirect is not followed, to wherever it leads", async () => {
  const requests: string[] = [];
  const { started, port } = await start((request, response) => {
    requests.push(request.url ?? "");
    response.writeHead(307, { location: `http://127.0.0.1:${port}/secret` }).end();
  }, true);
  await started.api("PUT", `${ROUTES}/redirected`, {
    to: { url: `http://127.0.0.1:${port}/` },
    retry: NO_RETRIES,
  });
  await sendGeneric(started.url, "entity", { id: "1" });
  const { state, attempt } = await attemptOf(started, "redirected");
  expect([state, attempt["status"], requests]).toEqual(["failed", 307, ["/"]]);
});

it("filters of huge depth, number or size are refused when they are saved, and cost the service nothing", async () => {
  const { started } = await start((_request, response) => response.end(), true);
  const to = { url: "https://receiver.example/" };
  const nest = (depth: number, wrap: (inner: string) => string) => {
    let text = '{"a":1}';
    for (let i = 0; i < depth; i++) text = wrap(text);
    return text;
  };
  const bodies = [
    nest(17, (inner) => `{"a":${inner}}`),
    nest(5000, (inner) => `{"$or":[${inner}]}`),
    nest(5000, (inner) => `{"$not":${inner}}`),
    JSON.stringify({ $or: Array.from({ length: 501 }, (_, n) => ({ a: n })) }),
    JSON.stringify({ a: "x".repeat(17 * 1024) }),
    JSON.stringify({ a: { $regex: "(a+)+$" } }),
  ];
  for (const body of bodies) {
    const text = `{"to":${JSON.stringify(to)},"when":{"body":${body}}}`;
    expect((await started.api("PUT", `${ROUTES}/bad`, text)).status).toBe(400);
  }
  expect((await started.api("GET", `${ROUTES}/bad`)).status).toBe(404);
});

it("another account sees and changes neither routes, events, issues nor replays", async () => {
  const { started, port } = await start((_request, response) => response.writeHead(500).end(), true);
  await started.api("PUT", `${ROUTES}/own`, { to: { url: `http://127.0.0.1:${port}/` }, retry: NO_RETRIES });
  await sendGeneric(started.url, "entity", { id: "1" });
  await attemptOf(started, "own");
  const own = "/accounts/default/webhooks";
  const [event] = (await started.api("GET", `${own}/events`)).body.result as { id: string; issue: string }[];
  await started.api("POST", "/accounts", { id: "other" });
  const token = await started.token(["webhooks.read", "webhooks.edit"], { account: "other" });
  const other = "/accounts/other/webhooks";
  const ask = async (method: string, path: string, body?: object) =>
    (await started.api(method, path, body, token)).status;
  for (const base of [own, other]) {
    const refused = base === own ? 403 : 404;
    expect(await ask("GET", `${base}/events/${event?.id ?? ""}`)).toBe(refused);
    expect(await ask("POST", `${base}/events/${event?.id ?? ""}/replay`)).toBe(refused);
    expect(await ask("GET", `${base}/issues/${event?.issue ?? ""}`)).toBe(refused);
    expect(await ask("POST", `${base}/issues/${event?.issue ?? ""}/resolve`)).toBe(refused);
    expect(
      await ask("PUT", `${base}/sources/generic/routes/own`, { to: { url: "https://a.example/" } }),
    ).toBe(refused);
  }
  for (const list of ["events", "issues", "replays"])
    expect((await started.api("GET", `${other}/${list}`, undefined, token)).body.result).toEqual([]);
  expect((await started.api("POST", `${other}/replays`, { dry_run: true }, token)).body.result).toMatchObject(
    { count: 0 },
  );
});
