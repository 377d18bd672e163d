/** Schemes of senders that sign with their own key, send a token or the secret itself, or are known by their addresses. */
import { generateKeyPairSync, sign } from "node:crypto";
import { SignJWT } from "jose";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";
import { post, SECRET } from "../support/webhook-sender.ts";

const sendgrid = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
const KEY = sendgrid.publicKey.export({ format: "der", type: "spki" }).toString("base64");
const url = (text: string) => ({ to: { url: text } });

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({
    environment: {
      SENDGRID_WEBHOOK_SECRET: KEY,
      TOKENS_WEBHOOK_SECRET: SECRET,
      BASIC_WEBHOOK_SECRET: "user:password",
      KEYED_WEBHOOK_SECRET: SECRET,
      LISTED_WEBHOOK_SECRET: SECRET,
    },
    file: {
      webhooks: {
        sources: {
          sendgrid: {
            batch: true,
            routes: [{ name: "main", ...url("http://192.0.2.1/"), paused: true }],
          },
          tokens: { scheme: { type: "jwt", issuer: "sender" }, entity: "fixed:tokens" },
          basic: { scheme: { type: "basic" }, entity: "fixed:basic" },
          keyed: {
            scheme: { type: "apiKey", parameter: "key" },
            entity: "fixed:keyed",
            routes: [{ name: "main", ...url("http://192.0.2.1/"), paused: true }],
          },
          listed: {
            scheme: { type: "apiKey", header: "X-Door" },
            addresses: ["192.0.2.0/24"],
            entity: "fixed:listed",
          },
          local: {
            scheme: { type: "addresses" },
            addresses: ["127.0.0.0/8", "::1"],
            entity: "fixed:local",
          },
        },
      },
    },
  });
});

afterAll(() => server.stop());

const send = async (path: string, headers: Record<string, string> = {}, body = '{"type":"t"}') =>
  (await post(`${server.url}/webhooks/${path}`, body, headers)).status;

const deliveries = async (source: string) =>
  (await server.api("GET", `/accounts/default/webhooks/deliveries?source=${source}`)).body.result as {
    reason: string;
    request: unknown;
    id: string;
  }[];

it("sendgrid: a signed list is divided into the events of its receivers", async () => {
  const body = JSON.stringify([
    { email: "a@example.com", event: "delivered", sg_event_id: "1" },
    { email: "b@example.com", event: "bounce", sg_event_id: "2" },
  ]);
  const time = String(Math.floor(Date.now() / 1000));
  const signature = sign("sha256", Buffer.from(time + body), sendgrid.privateKey).toString("base64");
  const headers = {
    "x-twilio-email-event-webhook-signature": signature,
    "x-twilio-email-event-webhook-timestamp": time,
  };
  expect(await send("sendgrid", headers, body)).toBe(202);
  expect(await send("sendgrid", headers, body.replace("bounce", "bounces"))).toBe(401);
  const { body: events } = await server.api("GET", "/accounts/default/webhooks/events?source=sendgrid");
  const shown = (events.result as { type: string; entity: string }[]).map(({ type, entity }) => [
    type,
    entity,
  ]);
  expect(shown.toSorted(([a = ""], [b = ""]) => a.localeCompare(b))).toEqual([
    ["bounce", "b@example.com"],
    ["delivered", "a@example.com"],
  ]);
});

it("jwt: a token of the issuer is accepted, one of another issuer or without a valid signature is not", async () => {
  const token = (issuer: string, secret: string) =>
    new SignJWT({})
      .setProtectedHeader({ alg: "HS256" })
      .setIssuer(issuer)
      .setIssuedAt()
      .sign(Buffer.from(secret));
  const bearer = (text: string) => ({ authorization: `Bearer ${text}` });
  expect(await send("tokens", bearer(await token("sender", SECRET)))).toBe(200);
  expect(await send("tokens", bearer(await token("other", SECRET)), '{"n":2}')).toBe(401);
  expect(await send("tokens", bearer(await token("sender", "wrong")), '{"n":3}')).toBe(401);
  expect(await send("tokens")).toBe(401);
});

it("basic: user name and password are compared, and neither is shown", async () => {
  const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString("base64")}` });
  expect(await send("basic", basic("user:password"))).toBe(200);
  expect(await send("basic", basic("user:wrong"))).toBe(401);
  await waitUntil(
    () => deliveries("basic"),
    (rows) => rows.length === 2,
  );
  expect(
    JSON.stringify(await server.api("GET", "/accounts/default/webhooks/deliveries?source=basic")),
  ).not.toContain(Buffer.from("user:").toString("base64").slice(0, 6));
});

it("apiKey: a key in the address is accepted, and is not stored with the delivery", async () => {
  expect(await send(`keyed?tenant=1&key=${SECRET}`)).toBe(202);
  expect(await send("keyed?key=wrong")).toBe(401);
  const { body } = await server.api("GET", "/accounts/default/webhooks/events?source=keyed");
  const [event] = body.result as { id: string }[];
  const shown = await server.api("GET", `/accounts/default/webhooks/events/${event?.id ?? ""}`);
  expect(JSON.stringify(shown.body)).toContain("/webhooks/keyed?tenant=1");
  expect(JSON.stringify(shown.body)).not.toContain(SECRET);
});

it("addresses: a sender from another address is refused although it has the secret, and the list says why", async () => {
  expect(await send("listed", { "x-door": SECRET })).toBe(401);
  await waitUntil(
    () => deliveries("listed"),
    (rows) => rows.length === 1,
  );
  const [rejected] = await deliveries("listed");
  expect(rejected?.reason).toBe("address_refused");
  const shown = await server.api("GET", `/accounts/default/webhooks/deliveries/${rejected?.id ?? ""}`);
  expect(JSON.stringify(shown.body)).not.toContain(SECRET.slice(0, 6));
});

it("addresses: a sender from a listed address needs nothing else", async () => {
  expect(await send("local")).toBe(200);
  const { body } = await server.api("POST", "/accounts/default/webhooks/sources/local/test", {});
  expect((body.result as { status: number }).status).toBe(200);
});
