/** How realtime sessions end: by the provider, the client, the operator, their limits or the end of the service. */
import { expect, it } from "vitest";
import { readLogs } from "../support/gateway.ts";
import { own, useRealtimeGateway } from "../support/realtime-gateway.ts";
import { openSession, refusedSession } from "../support/realtime.ts";
import { startTestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const gateway = useRealtimeGateway();
const { mint, rowsSoFar, openRows } = gateway;

it.each([1000, 1011, 3000, 4999])("passes the provider's close code %i on, with its reason", async (code) => {
  const { token } = await mint();
  gateway.peer.serve = ({ socket }) => socket.on("message", () => socket.close(code, "because"));
  const client = await openSession(gateway.url, own(token));
  client.send({ type: "session.update" });
  expect(await client.closed).toEqual({ code, reason: "because" });
});

it("passes the client's close code on", async () => {
  const { token } = await mint();
  const client = await openSession(gateway.url, own(token));
  const session = await waitUntil(
    () => gateway.peer.sessions[0],
    (found) => found !== undefined,
  );
  const closed = new Promise((resolve) =>
    session?.socket.on("close", (code, reason) => resolve([code, String(reason)])),
  );
  client.socket.close(4001, "bye");
  expect(await closed).toEqual([4001, "bye"]);
});

it("a provider whose connection breaks ends the session with 1014", async () => {
  const { token } = await mint();
  const before = await rowsSoFar();
  gateway.peer.serve = ({ socket }) => socket.on("message", () => socket.terminate());
  const client = await openSession(gateway.url, own(token));
  client.send({ type: "session.update" });
  expect((await client.closed).code).toBe(1014);
  expect((await openRows(before + 1))[0]).toMatchObject({ success: false });
});

it("a revoked token ends its sessions with 4401, here and at the provider", async () => {
  const { id, token } = await mint();
  const client = await openSession(gateway.url, own(token));
  await client.event("session.created");
  const atProvider = new Promise((resolve) => gateway.peer.sessions[0]?.socket.on("close", resolve));
  await gateway.server.api("DELETE", `/accounts/default/tokens/${id}`);
  expect((await client.closed).code).toBe(4401);
  await atProvider;
});

it("a deleted gateway ends its sessions, and leaves no row", async () => {
  await gateway.server.api("POST", "/accounts/default/ai-gateway/gateways", { id: "short" });
  const client = await openSession(gateway.url.replace("/default/default/", "/default/short/"), {
    headers: { authorization: "Bearer sk" },
  });
  await gateway.server.api("DELETE", "/accounts/default/ai-gateway/gateways/short");
  expect((await client.closed).code).toBe(1008);
  await gateway.server.api("POST", "/accounts/default/ai-gateway/gateways", { id: "short" });
  expect(await readLogs(gateway.server, "short")).toEqual([]);
});

it("closes idle and old sessions, and all of them when the service stops", async () => {
  const start = (realtime: object) =>
    startTestServer({
      file: {
        providers: { openai: { baseUrl: `${gateway.peer.url}/v1` } },
        gateway: { realtime: { maxSessions: 1, ...realtime } },
      },
    });
  const urlOf = ({ url }: { url: string }) => `${url}/v1/default/default/openai?model=gpt-realtime`;
  const options = { headers: { authorization: "Bearer sk" } };
  // Without a short limit, or the first session could be closed before the second one is refused.
  const full = await start({});
  const only = await openSession(urlOf(full), options);
  expect((await refusedSession(urlOf(full), options)).status).toBe(503);
  const ended = full.stop();
  expect((await only.closed).code).toBe(1001);
  await ended;
  const limited = await start({ idleTimeoutMs: 300 });
  const at = urlOf(limited);
  const idle = await openSession(at, options);
  expect(await idle.closed).toMatchObject({ code: 1008, reason: "No message for 0.3 s" });
  const last = await waitUntil(
    () => openSession(at, options).catch(() => null),
    (found) => found !== null,
  );
  const stopped = limited.stop();
  expect((await last?.closed)?.code).toBeOneOf([1001, 1008]);
  await stopped;
});
